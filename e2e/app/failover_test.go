package app_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// TestKilledPrimaryHasNoChangeCountedTwice: the node of the primary is killed under load, again and again. A write that it had passed on to
// a replica, and not yet answered, is tried again by the engine itself, on the new primary, and conflicts there with its own first try.
// Whoever takes that for somebody else's write, and merges into it, counts it twice.
func TestKilledPrimaryHasNoChangeCountedTwice(t *testing.T) {
	engine.Long(t)
	const kills = 4
	for _, k := range engine.All() {
		t.Run(k.String(), func(t *testing.T) {
			f := newFailing(t, k)
			var all app.Result
			for n := range kills {
				f.kill(t, fmt.Sprintf("killed-%d", n), &all)
				t.Logf("after %d kills: %s", n+1, &all)
			}
			if all.Unknown == 0 {
				t.Error("nobody noticed: nothing was tested")
			}
		})
	}
}

// failing is a cluster whose nodes are killed, behind two proxies.
type failing struct {
	cluster *engine.Cluster
	proxies []string
}

func newFailing(t *testing.T, k engine.Kind) *failing {
	t.Helper()
	c, err := engine.StartCluster(t.Context(), k, 3, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	f := &failing{cluster: c}
	var nodes []string
	for _, n := range c.Nodes {
		nodes = append(nodes, n.URL)
	}
	for range 2 {
		f.proxies = append(f.proxies, optimist.Start(t, optimist.Options{Upstream: nodes, Config: sum}).URL)
	}
	return f
}

// kill has applications work on documents of a new index, and kills its primary's node in the midst of it. What they found is added up.
func (f *failing) kill(t *testing.T, index string, all *app.Result) {
	t.Helper()
	const documents, workers, rounds = 12, 4, 150
	first := target{url: f.cluster.Nodes[0].URL}
	first.send(t, http.StatusOK, http.MethodPut, "/"+index,
		`{"settings":{"number_of_shards":1,"number_of_replicas":1},"mappings":{"dynamic":false}}`)
	f.await(t, 0)
	victim, err := f.cluster.Primary(t.Context(), 0, index)
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Int64
	now := make(chan struct{})
	apps := make([]*app.Application, documents)
	for i := range apps {
		apps[i] = &app.Application{
			URLs: f.proxies, Store: f.cluster.Nodes[(victim+1)%3].URL, Path: fmt.Sprintf("/%s/_doc/%d", index, i),
			Shape: []app.Shape{app.Counter, app.List}[i%2], Workers: workers, Rounds: rounds, Sessions: app.Named,
			Round: func() {
				if ended.Add(1) == documents*workers*rounds/4 {
					close(now)
				}
			},
		}
		if err := apps[i].Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tallies := make([]*app.Tally, documents)
	var wg sync.WaitGroup
	for i, a := range apps {
		wg.Go(func() { tallies[i] = work(t, a) })
	}
	<-now
	f.cluster.Nodes[victim].Kill()
	wg.Wait()
	for i, a := range apps {
		r := count(t, a, tallies[i])
		lossless(t, &r)
		add(all, &r)
	}
	if err := f.cluster.Restart(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	f.await(t, victim)
}

func (f *failing) await(t *testing.T, node int) {
	t.Helper()
	if err := f.cluster.Await(t.Context(), node, "green", len(f.cluster.Nodes)); err != nil {
		t.Fatal(err)
	}
}

func add(all, r *app.Result) {
	all.Rounds += r.Rounds
	all.Acknowledged += r.Acknowledged
	all.Found += r.Found
	all.Lost += r.Lost
	all.Invented += r.Invented
	all.Refused += r.Refused
	all.Unknown += r.Unknown
}
