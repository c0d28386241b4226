package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/admin"
	"optimist/internal/coding"
	"optimist/internal/config"
	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/timer"
	"optimist/internal/upstream"
)

const (
	greetTimeout = 10 * time.Second // for the first question to the engine
	greetAgain   = 10 * time.Second // until it is asked again, if the engine refuses the credentials
	maxGreeting  = 1 << 20          // bytes that a compressed answer to it becomes
)

var (
	errDraining = errors.New("draining: optimist is about to end")
	errUnknown  = errors.New("starting: no node of the engine has answered yet")

	// ErrCredentials reports that optimist's own credentials are wrong, or lack the cluster privilege monitor.
	ErrCredentials = errors.New("the engine refuses optimist's own credentials (upstream.auth)")
)

// reachEngine makes the connections' pool. Nodes that are down now are no reason not to start: they may come.
func (a *App) reachEngine(*config.Config) error {
	cfg, err := UpstreamConfig(&a.current.Load().Upstream)
	if err != nil {
		return err
	}
	cfg.Hooks, cfg.TLS.Log = a.upstreamHooks(), a.log
	a.nodes, err = upstream.New(cfg)
	if err != nil {
		return err
	}
	a.metrics.WatchNodes(func() []obs.Node {
		var nodes []obs.Node
		for _, n := range a.nodes.Nodes() {
			nodes = append(nodes, obs.Node{Name: n.URL, Up: n.Alive, AuthRefused: n.Refusal != 0, Open: n.Open, Idle: n.Idle})
		}
		return nodes
	})
	return nil
}

// greet asks the engine who it is, after the start: until then nobody knows whether a node is there, and nodes that aren't are
// found out by it before clients find them. It asks again only while the engine refuses optimist's credentials.
func (a *App) greet(ctx context.Context) {
	for a.greetOnce(ctx) && timer.Sleep(ctx, a.o.GreetAgain) == nil {
	}
}

// greetOnce reports whether the engine refuses optimist's credentials. Its log lines hold already: a reader of the log may go on.
func (a *App) greetOnce(ctx context.Context) (refused bool) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	resp, err := a.nodes.Do(ctx, &upstream.Request{Method: "GET", Target: []byte("/"), Own: true, Repeatable: true})
	if err != nil {
		a.greeted.Store(true)
		if !errors.Is(ctx.Err(), context.Canceled) { // as at the end of the process
			a.log.Warn("the engine doesn't answer; it will be tried again", obs.KeyError, err.Error())
		}
		return false
	}
	defer resp.Release()
	a.door.LearnProduct(&resp.Head)
	body, _ := coding.Decode(resp.Payload, resp.Get("Content-Encoding"), maxGreeting)
	a.questions.LearnTypes(body)
	a.greeted.Store(true)
	if ownAuth := a.current.Load().Upstream.Auth != (config.Auth{}); ownAuth && (resp.Status == 401 || resp.Status == 403) {
		return true // the upstream's hook has logged it
	}
	v := gjson.GetManyBytes(body, "version.distribution", "version.number", "cluster_name")
	switch {
	case resp.Status == 401 || resp.Status == 403:
		a.log.Warn("the engine asks for credentials, and upstream.auth names none. So optimist asks what an index is with the credentials of "+
			"each client. Where these lack the privileges monitor and view_index_metadata, it merges nothing: conflicts are answered with 409, "+
			"and some with 504", obs.KeyNode, resp.Node, obs.KeyStatus, resp.Status)
	case v[1].Exists():
		a.log.Info("the engine answers", obs.KeyNode, resp.Node, obs.KeyStatus, resp.Status, "distribution", v[0].String(),
			obs.KeyVersion, v[1].String(), "cluster", v[2].String())
	case resp.Status >= 500:
		a.log.Warn("the engine isn't ready, or what stands before it", obs.KeyNode, resp.Node, obs.KeyStatus, resp.Status)
	default:
		a.log.Warn("the node answers GET / not as an engine does; perhaps upstream.urls names another server, or the port speaks TLS "+
			"(https://, and not http://). optimist doctor looks further", obs.KeyNode, resp.Node, obs.KeyStatus, resp.Status)
	}
	if another, _ := es.IsOptimist(ctx, a.nodes, resp.Node); another { // whatever else becomes of the question, clients find out
		a.log.Warn("the upstream is another optimist: both carry out the steps of their rules, the second one takes all clients for one, and if "+
			"it sends its requests back here, they go round. Name the engine in upstream.urls", obs.KeyNode, resp.Node)
	}
	return false
}

// Ready says why requests shouldn't be sent here, or nil.
func (a *App) Ready() error {
	if a.draining.Load() {
		return errDraining
	}
	if !a.greeted.Load() {
		return errUnknown
	}
	// Without checks a node that is left out comes back by requests only: they must come.
	unchecked := a.current.Load().Upstream.HealthInterval == 0
	var dead, refused error
	for _, n := range a.nodes.Nodes() {
		switch {
		case n.Refusal != 0:
			refused = fmt.Errorf("%w: %s answers %d", ErrCredentials, n.URL, n.Refusal)
		case n.Alive || unchecked:
			return nil
		default:
			dead = n.Err
		}
	}
	if refused != nil {
		return refused
	}
	return fmt.Errorf("no node of the engine answers: %w", dead)
}

func (a *App) nodeStates() []admin.Node {
	var nodes []admin.Node
	for _, n := range a.nodes.Nodes() {
		state := admin.Node{URL: n.URL, Alive: n.Alive}
		if n.Err != nil {
			state.Error = n.Err.Error()
		} else if n.Refusal != 0 {
			state.Error = fmt.Sprintf("it refuses optimist's own credentials (upstream.auth): %d", n.Refusal)
		}
		nodes = append(nodes, state)
	}
	return nodes
}
