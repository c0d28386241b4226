package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/obs"
	"optimist/internal/upstream"
)

// Options are what a Server needs. Upstream is the only one without a default.
type Options struct {
	// Upstream is the engine. The Server doesn't close it.
	Upstream *upstream.Set
	// Limits bound what clients can cost.
	Limits Limits
	// Sniffing says what becomes of the addresses in the answers to GET /_nodes/http and the like.
	Sniffing Sniffing
	// Advertise is the host:port that SniffRewrite puts there. Default: what the client's request has as its Host.
	Advertise string
	// Intercept is asked about every request, in the goroutine of its connection. It returns true if it has taken the request:
	// it has then called Forward, Answer or Fail. On false the request is forwarded as it is; it may have been read with Body.
	// Nil takes none.
	Intercept func(*Exchange) bool
	// Metrics is told what happens. Nil: nobody.
	Metrics Metrics
	// Logger gets one line a request at debug, and nothing that holds credentials, bodies or query strings. Nil: none.
	Logger *slog.Logger
}

// Server is the door. Its methods may be called by any goroutine.
type Server struct {
	upstream  *upstream.Set
	limits    Limits
	ticks     ticks
	sniffing  Sniffing
	advertise string
	intercept func(*Exchange) bool
	metrics   Metrics
	log       *slog.Logger

	ctx      context.Context // ends with Close
	cancel   context.CancelCauseFunc
	draining atomic.Bool
	product  atomic.Bool // the engine names its product in its answers
	wg       sync.WaitGroup
	crowd    chan struct{} // places for clients that are being turned away

	mu        sync.Mutex
	conns     []*conn
	listeners map[net.Listener]bool
	closed    bool
	drained   chan struct{} // closed when Drain has nothing left to wait for; nil before Drain
	watching  bool
}

// maxTurnedAway is how many clients over Limits.MaxConnections are told so at once; those above are just disconnected.
const maxTurnedAway = 64

// turnAwayTime is how long such a client may take to hear it.
const turnAwayTime = time.Second

// New returns a Server. It does nothing before Serve. Close it.
func New(o Options) (*Server, error) {
	if o.Upstream == nil {
		return nil, errors.New("proxy: no upstream")
	}
	s := &Server{
		upstream: o.Upstream, limits: o.Limits.withDefaults(), sniffing: o.Sniffing, advertise: o.Advertise,
		intercept: o.Intercept, metrics: o.Metrics, log: o.Logger,
		crowd: make(chan struct{}, maxTurnedAway), listeners: make(map[net.Listener]bool),
	}
	if s.metrics == nil {
		s.metrics = nobody{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ticks = s.limits.ticks()
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// Serve accepts connections from ln until Drain or Close, and then returns nil. It closes ln. Several listeners may be
// served at once.
func (s *Server) Serve(ln net.Listener) error {
	if !s.adopt(ln) {
		_ = ln.Close()
		return nil
	}
	defer s.orphan(ln)
	var pause time.Duration
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.welcome(nc)
		case s.draining.Load() || s.ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Out of file descriptors, mostly: some become free when requests end.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("accept failed", obs.KeyError, err.Error(), slog.Duration("pause", pause))
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	}
}

// adopt takes a listener on, and starts the watcher with the first.
func (s *Server) adopt(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.draining.Load() {
		return false
	}
	s.listeners[ln] = true
	if !s.watching {
		s.watching = true
		s.wg.Go(s.watch)
	}
	return true
}

func (s *Server) orphan(ln net.Listener) {
	_ = ln.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
	s.checkDrained()
}

// welcome starts to serve a connection, or turns it away.
func (s *Server) welcome(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	full := s.limits.MaxConnections >= 0 && len(s.conns) >= s.limits.MaxConnections
	switch {
	case s.closed:
		c.cancel(ErrStopped)
		_ = nc.Close()
	case full:
		s.wg.Add(1)
		go s.turnAway(c)
	default:
		c.index = len(s.conns)
		s.conns = append(s.conns, c)
		s.wg.Add(1)
		go c.serve()
	}
	s.mu.Unlock()
}

// forget removes a connection that has ended.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.conns) - 1
	s.conns[c.index] = s.conns[last]
	s.conns[c.index].index = c.index
	s.conns[last] = nil
	s.conns = s.conns[:last]
	s.checkDrained()
}

// turnAway tells a client that there is no place for it.
func (s *Server) turnAway(c *conn) {
	defer s.wg.Done()
	defer c.nc.Close()
	defer c.cancel(ErrStopped)
	s.metrics.Failed(TypeCrowded)
	select {
	case s.crowd <- struct{}{}:
	default:
		return
	}
	defer func() { <-s.crowd }()
	stop := context.AfterFunc(s.ctx, c.stop)
	defer stop()
	_ = c.nc.SetDeadline(time.Now().Add(turnAwayTime))
	c.last = true
	c.x.Fail(errCrowded)
	c.part()
}

// watch looks at all connections once a tick, until Close.
func (s *Server) watch() {
	tick := time.NewTicker(s.limits.Tick)
	defer tick.Stop()
	var conns []*conn
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		conns = append(conns[:0], s.conns...)
		s.mu.Unlock()
		draining := s.draining.Load()
		for i, c := range conns {
			c.inspect(&s.ticks, draining)
			conns[i] = nil
		}
	}
}

// Connections returns how many clients are connected and how many of them have a request under way.
func (s *Server) Connections() (open, active int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if phase(c.state.reading.Load()&(1<<phaseBits-1)) != idle {
			active++
		}
	}
	return len(s.conns), active
}

// backlog is how long connections that the kernel has accepted already are still taken in at Drain: closing the listener
// would reset them.
const backlog = 20 * time.Millisecond

// Drain stops accepting connections, closes idle ones, and waits until the requests under way have been answered; their
// answers end their connections. It returns nil when no connection is left, or the context's error; the rest goes on then
// until Close.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.drained == nil {
		s.drained = make(chan struct{})
		s.draining.Store(true)
		for ln := range s.listeners {
			if d, ok := ln.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Now().Add(backlog)) != nil {
				_ = ln.Close()
			}
		}
		s.checkDrained()
	}
	drained := s.drained
	s.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkDrained is called with the lock held whenever something has gone that Drain waits for.
func (s *Server) checkDrained() {
	if s.drained == nil || len(s.conns) > 0 || len(s.listeners) > 0 {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

// Close ends everything at once: listeners, connections and the requests on them. It returns when all goroutines have
// ended; an interceptor that doesn't heed Exchange.Context holds it up.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel(ErrStopped)
	for ln := range s.listeners {
		_ = ln.Close()
	}
	for _, c := range s.conns {
		c.stop()
	}
	s.mu.Unlock()
	s.wg.Wait()
}
