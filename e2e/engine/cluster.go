package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Cluster is several nodes, each a process of its own, so that one can be killed while the others go on. Its methods must not be
// called at the same time.
type Cluster struct {
	// Nodes are all nodes, also those that were killed.
	Nodes []*Engine

	plans    []plan
	settings [][]string
	home     string
}

// StartCluster brings up a cluster of n nodes and waits until all have joined. Three take about 10 s on two idle cores.
func StartCluster(ctx context.Context, k Kind, n int, o Options) (*Cluster, error) {
	home, err := os.MkdirTemp("", "optimist-"+k.String()+"-cluster-")
	if err != nil {
		return nil, fmt.Errorf("folder for a cluster of %s: %w", k.Title(), err)
	}
	c := &Cluster{Nodes: make([]*Engine, n), home: home}
	if err := c.plan(k, n, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.Nodes[0].await(ctx, "green", n); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// plan decides on names, folders and ports, which have to be known to all nodes before the first starts.
func (c *Cluster) plan(k Kind, n int, o Options) error {
	ports, err := freePorts(2 * n)
	if err != nil {
		return err
	}
	var seeds, names []string
	for i := range n {
		names = append(names, "node-"+strconv.Itoa(i+1))
		seeds = append(seeds, "127.0.0.1:"+ports[n+i])
	}
	for i, name := range names {
		p := plan{kind: k, options: o, home: filepath.Join(c.home, name), cluster: filepath.Base(c.home), name: name}
		if err := os.Mkdir(p.home, 0o700); err != nil {
			return err
		}
		c.plans = append(c.plans, p)
		c.settings = append(c.settings, []string{
			"discovery.type=" + k.recipe().several,
			"http.port=" + ports[i],
			"transport.port=" + ports[n+i],
			"discovery.seed_hosts=" + strings.Join(seeds, ","),
			k.recipe().managers + "=" + strings.Join(names, ","),
		})
	}
	return nil
}

// startAll starts the nodes together: one counts as up only when enough others are there to elect a manager. For the same reason
// the first that fails ends the start of the others.
func (c *Cluster) startAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, p := range c.plans {
		all.Go(func() {
			var err error
			if c.Nodes[i], err = p.start(ctx, c.settings[i]...); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Restart brings a node that was killed or stopped back with its data, under the same URL, and waits until it has joined.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	c.Nodes[i].Kill()
	e, err := c.plans[i].start(ctx, c.settings[i]...)
	if err != nil {
		return err
	}
	c.Nodes[i] = e
	return e.await(ctx, "yellow", len(c.Nodes))
}

// Await returns once the cluster, asked through node i, has the status ("yellow", "green") and as many nodes.
func (c *Cluster) Await(ctx context.Context, i int, status string, nodes int) error {
	return c.Nodes[i].await(ctx, status, nodes)
}

// Primary returns the position in Nodes of the node that holds the primary of the index's first shard, asked through node i.
func (c *Cluster) Primary(ctx context.Context, i int, index string) (int, error) {
	a, err := c.Nodes[i].Do(ctx, http.MethodGet, "/_cat/shards/"+index+"?format=json&h=shard,prirep,node", "")
	if err != nil {
		return 0, err
	}
	var shards []struct{ Shard, Prirep, Node string }
	if err := json.Unmarshal(a.Body, &shards); err != nil {
		return 0, fmt.Errorf("shards of %s: %d %s: %w", index, a.Status, a.Body, err)
	}
	for _, s := range shards {
		for n, node := range c.Nodes {
			if s.Shard == "0" && s.Prirep == "p" && s.Node == node.Name {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("no primary of %s on a node of ours: %s", index, a.Body)
}

// Stop ends all nodes and removes their data.
func (c *Cluster) Stop() error {
	var all sync.WaitGroup
	for _, e := range c.Nodes {
		if e != nil {
			all.Go(func() { _ = e.Stop() }) // the whole folder goes below
		}
	}
	all.Wait()
	return os.RemoveAll(c.home)
}

// freePorts finds ports that are free now. They lie below those that the system gives to outgoing connections, which the tests
// use up by the thousand while a killed node's port waits for its restart.
func freePorts(n int) ([]string, error) {
	const low, high = 20000, 32000
	var ports []string
	for range 100 * n {
		port := strconv.Itoa(low + rand.IntN(high-low))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue // taken
		}
		defer func() { _ = l.Close() }() // only at the end, so that none is found twice
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d", n, low, high)
}
