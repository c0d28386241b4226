package upstream

import (
	"context"
	"fmt"
	"time"
)

// New checks cfg, reads its files and starts the health checks. It doesn't connect: nodes may come up later.
func New(cfg Config) (*Set, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Set{cfg: cfg, epoch: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return nil, err
	}
	for i, u := range cfg.URLs {
		n, err := newNode(s, i, u, tlsConfig)
		if err != nil {
			return nil, fmt.Errorf("upstream %d: %w", i+1, err)
		}
		if s.nodeByURL(n.url) != nil {
			return nil, fmt.Errorf("upstream %d: %s is there twice", i+1, n.url)
		}
		s.nodes = append(s.nodes, n)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.watch()
	return s, nil
}

// HangUp ends all exchanges that are under way, those that outlast their clients, too. The engine may carry out what was sent: such
// exchanges fail as Lost, with ErrClosed as their reason. New ones fail with ErrClosed. Close is still to be called.
func (s *Set) HangUp() {
	s.cancel()
	for _, n := range s.nodes {
		n.hangUp()
	}
}

// Close ends the health checks and closes idle connections. Exchanges under way go on; their connections are closed when
// they finish. New ones fail with ErrClosed.
func (s *Set) Close() {
	s.cancel()
	<-s.done
	for _, n := range s.nodes {
		n.close()
	}
}
