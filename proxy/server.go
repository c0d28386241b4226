package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/budget"
	"optimist/internal/obs"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Options are what a Server needs. Upstream is the only one without a default.
type Options struct {
	// Upstream is the engine. The Server doesn't close it.
	Upstream *upstream.Set
	// Limits bound what clients can cost.
	Limits Limits
	// Sniffing says what happens to the addresses in the answers to GET /_nodes/http and the like.
	Sniffing Sniffing
	// Advertise is the host:port that SniffRewrite puts there. Default: the Host of the client's request.
	Advertise string
	// TLS is that of the data port. Nil: it speaks HTTP without TLS.
	TLS *tls.Config
	// Identity are the fields that identify the client or the tenant of a request: a client can't remove one of them by naming it in
	// Connection. Nil: wire.DefaultIdentity.
	Identity *wire.Names
	// Address tells where a request comes from, by its fields and the address of its connection: behind balancers these differ. Nil: the
	// connection's.
	Address func(fields []wire.Field, peer netip.Addr) netip.Addr
	// Shared reports whether the connections from an address are of many clients: those of a balancer. Nil: none are.
	Shared func(peer netip.Addr) bool
	// Intercept is called for every request, in the goroutine of its connection. If it returns true it must have called Forward,
	// Answer or Fail. If it returns false the request is forwarded as it is; Intercept may have read it with Body. Nil: all
	// requests are forwarded.
	Intercept func(*Exchange) bool
	// Budget is where requests take the bytes that they hold from. Nil: there is no limit. Owner is asked for whom: nil means by the
	// connection's address alone.
	Budget *budget.Budget
	Owner  func(*Exchange) budget.Owner
	// Metrics counts what happens. Nil: nothing is counted.
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
	tls       *tls.Config // nil without TLS
	identity  *wire.Names
	address   func(fields []wire.Field, peer netip.Addr) netip.Addr
	shared    func(peer netip.Addr) bool
	seed      maphash.Seed
	intercept func(*Exchange) bool
	budget    *budget.Budget
	owner     func(*Exchange) budget.Owner
	metrics   Metrics
	log       *slog.Logger

	ctx       context.Context // ends with Close
	cancel    context.CancelCauseFunc
	draining  atomic.Bool
	product   atomic.Bool    // the engine names its product in its answers
	wg        sync.WaitGroup // all goroutines of the Server
	rejecting chan struct{}  // a place for each client that is being rejected

	unaccepted obs.Seldom // connections that the system didn't give

	mu        sync.Mutex
	conns     []*conn
	listeners map[net.Listener]bool
	closed    bool
	drained   chan struct{} // closed when Drain has nothing to wait for any more; nil before Drain
	watching  bool
}

// maxRejecting is how many clients over Limits.MaxConnections can get a 503 at the same time. Further ones are disconnected
// without an answer.
const maxRejecting = 64

// rejectTime is how long such a client may take to read its 503.
const rejectTime = time.Second

// New returns a Server. It does nothing before Serve. Close it.
func New(o Options) (*Server, error) {
	if o.Upstream == nil {
		return nil, errors.New("proxy: no upstream")
	}
	s := &Server{
		upstream: o.Upstream, limits: o.Limits.withDefaults(), sniffing: o.Sniffing, advertise: o.Advertise, tls: o.TLS,
		identity: o.Identity, address: o.Address, shared: o.Shared, seed: maphash.MakeSeed(),
		intercept: o.Intercept, budget: o.Budget, owner: o.Owner, metrics: o.Metrics, log: o.Logger,
		rejecting: make(chan struct{}, maxRejecting), listeners: make(map[net.Listener]bool),
	}
	if s.owner == nil {
		s.owner = func(x *Exchange) budget.Owner { return budget.Owner{Address: x.Client().Addr()} }
	}
	if s.metrics == nil {
		s.metrics = new(obs.Metrics)
	}
	s.log = cmp.Or(s.log, slog.New(slog.DiscardHandler))
	s.ticks = s.limits.ticks()
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// Serve accepts connections from ln until Drain or Close, and then returns nil. It closes ln. Several listeners may be
// served at once.
func (s *Server) Serve(ln net.Listener) error {
	if !s.addListener(ln) {
		_ = ln.Close()
		return nil
	}
	defer s.removeListener(ln)
	var pause time.Duration
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accept(nc)
		case s.draining.Load() || s.ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Out of file descriptors, mostly: some become free when requests end.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			if n, tell := s.unaccepted.Count(); tell {
				s.log.Warn("accept failed", obs.KeyCount, n, obs.KeyError, err.Error(), slog.Duration("pause", pause))
			}
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	}
}

// addListener adds a listener, and starts the watcher with the first one.
func (s *Server) addListener(ln net.Listener) bool {
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

func (s *Server) removeListener(ln net.Listener) {
	_ = ln.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
	s.checkDrained()
}

// accept starts to serve a connection, or to reject it.
func (s *Server) accept(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	full := !s.hasPlace(c.client.Addr())
	switch {
	case s.closed:
		c.cancel(ErrStopped)
		_ = nc.Close()
	case full:
		s.wg.Add(1)
		go s.reject(c)
	default:
		c.index = len(s.conns)
		s.conns = append(s.conns, c)
		s.wg.Add(1)
		go c.serve()
	}
	s.mu.Unlock()
}

// hasPlace reports whether one more client may connect from an address: nobody gets all places. s.mu is locked.
func (s *Server) hasPlace(addr netip.Addr) bool {
	total, taken := s.limits.MaxConnections, len(s.conns)
	switch {
	case total < 0:
		return true
	case !share.Crowded(total, taken), s.shared != nil && s.shared(addr):
		return taken < total
	}
	client, same := share.Of(addr, 0), 0
	for _, c := range s.conns {
		if share.Of(c.client.Addr(), 0) == client {
			same++
		}
	}
	return share.Fits(total, taken, same, 0)
}

// remove removes a connection that has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.conns) - 1
	s.conns[c.index] = s.conns[last]
	s.conns[c.index].index = c.index
	s.conns[last] = nil
	s.conns = s.conns[:last]
	s.checkDrained()
}

// reject answers a client with 503 because too many are connected.
func (s *Server) reject(c *conn) {
	defer s.wg.Done()
	defer c.nc.Close()
	defer c.cancel(ErrStopped)
	s.metrics.Failed(TypeCrowded)
	select {
	case s.rejecting <- struct{}{}:
	default:
		return
	}
	defer func() { <-s.rejecting }()
	stop := context.AfterFunc(s.ctx, c.stop)
	defer stop()
	_ = c.nc.SetDeadline(time.Now().Add(rejectTime))
	c.lastRequest = true
	c.x.Fail(errCrowded)
	c.finish()
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

// backlogTime is how long Drain still accepts connections that the kernel has accepted already. Closing the listener at once
// would reset them.
const backlogTime = 20 * time.Millisecond

// Drain stops accepting connections, closes idle ones, and waits until the requests under way have been answered; their
// answers end their connections. It returns nil when no connection is left, or the context's error; the rest goes on then
// until Close.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.drained == nil {
		s.drained = make(chan struct{})
		s.draining.Store(true)
		for ln := range s.listeners {
			if d, ok := ln.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Now().Add(backlogTime)) != nil {
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

// checkDrained ends Drain's wait if nothing is left to wait for. It is called with the lock held.
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

// Stop ends everything at once: listeners, connections and the requests on them. It waits for nothing. Clients get their answers while
// Close waits.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cancel(ErrStopped)
	for ln := range s.listeners {
		_ = ln.Close()
	}
	for _, c := range s.conns {
		c.stop()
	}
}

// Close is Stop, and returns when all goroutines have ended. An interceptor that doesn't heed Exchange.Context holds it up, and so does a
// write that is out at the engine: Set.HangUp ends that.
func (s *Server) Close() {
	s.Stop()
	s.wg.Wait()
}
