package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/admin"
	"optimist/internal/config"
	"optimist/internal/obs"
	"optimist/internal/upstream"
)

// greetTimeout is how long the first question to the engine may take.
const greetTimeout = 10 * time.Second

var (
	errDraining = errors.New("draining: optimist is about to end")
	errUnknown  = errors.New("starting: no node of the engine has answered yet")
)

// reachEngine makes the connections' pool. Nodes that are down now are no reason not to start: they may come.
func (s *service) reachEngine(*config.Config) error {
	cfg, err := upstreamConfig(&s.current.Load().Upstream)
	if err != nil {
		return err
	}
	cfg.Hooks = s.upstreamHooks()
	s.nodes, err = upstream.New(cfg)
	if err != nil {
		return err
	}
	s.metrics.WatchNodes(func() []obs.Node {
		var nodes []obs.Node
		for _, n := range s.nodes.Nodes() {
			nodes = append(nodes, obs.Node{Name: n.URL, Up: n.Alive, Open: n.Open, Idle: n.Idle})
		}
		return nodes
	})
	return nil
}

// greet asks the engine who it is, once, after the start: until then nobody knows whether a node is there, and nodes that aren't are
// found out by it before clients find them. What it logs is true already: who reads it may go on.
func (s *service) greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	resp, err := s.nodes.Do(ctx, &upstream.Request{Method: "GET", Target: []byte("/"), Own: true, Repeatable: true})
	if err != nil {
		s.greeted.Store(true)
		if ctx.Err() == nil {
			s.log.Warn("the engine doesn't answer; it will be tried again", obs.KeyError, err.Error())
		}
		return
	}
	defer resp.Release()
	s.door.Learn(&resp.Head)
	s.greeted.Store(true)
	v := gjson.GetManyBytes(resp.Payload, "version.distribution", "version.number", "cluster_name")
	s.log.Info("the engine answers", obs.KeyNode, resp.Node, obs.KeyStatus, resp.Status, "distribution", v[0].String(),
		obs.KeyVersion, v[1].String(), "cluster", v[2].String())
}

// ready says why requests shouldn't be sent here, or nil.
func (s *service) ready() error {
	if s.draining.Load() {
		return errDraining
	}
	if !s.greeted.Load() {
		return errUnknown
	}
	if s.current.Load().Upstream.HealthInterval == 0 {
		return nil // a node that is left out comes back by requests only: they must come
	}
	var last error
	for _, n := range s.nodes.Nodes() {
		if n.Alive {
			return nil
		}
		last = n.Err
	}
	return fmt.Errorf("no node of the engine answers: %w", last)
}

func (s *service) nodeStates() []admin.Node {
	var nodes []admin.Node
	for _, n := range s.nodes.Nodes() {
		state := admin.Node{URL: n.URL, Alive: n.Alive}
		if n.Err != nil {
			state.Error = n.Err.Error()
		}
		nodes = append(nodes, state)
	}
	return nodes
}
