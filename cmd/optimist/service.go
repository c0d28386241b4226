package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/admin"
	"optimist/internal/config"
	"optimist/internal/embedded"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/compat"
	"optimist/proxy"
)

// service is a running optimist: all that serve starts, and ends in the opposite order.
type service struct {
	log     *slog.Logger
	level   *slog.LevelVar
	load    func() (*config.Config, *rule.Set, error) // reads the configuration again
	changes <-chan struct{}                           // of its file
	unwatch func()
	now     func() time.Time
	metrics *obs.Metrics
	sw      *rule.Switch
	current atomic.Pointer[config.Config] // in force, but for the mode: the switch has it

	engine     *embedded.Engine // nil unless --embedded
	nodes      *upstream.Set
	locks      *lockrouter.Router // nil if switched off
	compat     *compat.Compat     // nil unless an index is configured for it
	door       *proxy.Server
	data       net.Listener
	admin      *admin.Server
	adminPlace net.Listener // nil if switched off
	draining   atomic.Bool
	greeted    atomic.Bool // the first question to the engine has its answer, or none
	greetAgain time.Duration
	ctx        context.Context
	cancel     context.CancelFunc // ends what runs beside requests
	beside     sync.WaitGroup
	failed     chan error // what ends the service without being told to
}

// start makes everything that the configuration names, and listens. Nothing is served before serve.
func start(c *config.Config, rules *rule.Set, inMemory bool, log *slog.Logger) (*service, error) {
	s := &service{log: log, level: new(slog.LevelVar), now: time.Now, unwatch: func() {}, failed: make(chan error, 3),
		greetAgain: greetAgain, metrics: obs.NewMetrics(build()), sw: rule.NewSwitch(rule.ModeOf(c.Mode), rules)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.current.Store(c)
	s.metrics.Mode(s.sw.Mode().String(), modes()...)
	s.metrics.Reloaded(true, s.now())
	for _, step := range []func(*config.Config) error{s.listen, s.reachEngine, s.openLocks, s.openDoor, s.openAdmin} {
		if inMemory && s.engine == nil {
			if err := s.startEngine(); err != nil {
				return nil, err
			}
		}
		if err := step(c); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func modes() []string { return []string{rule.Guard.String(), rule.Observe.String(), rule.Off.String()} }

// startEngine serves the engine in memory on a port of its own, so that it is reached as a real one is.
func (s *service) startEngine() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.engine = embedded.New(embedded.Options{})
	c := *s.current.Load()
	c.Upstream.URLs = []string{"http://" + l.Addr().String()}
	s.current.Store(&c)
	go func() { s.failed <- s.engine.Serve(l) }()
	s.log.Warn("the engine is in memory: everything is lost when optimist ends", obs.KeyAddr, l.Addr().String())
	return nil
}

func (s *service) listen(c *config.Config) (err error) {
	if s.data, err = net.Listen("tcp", c.Listen); err != nil {
		return fmt.Errorf("the data port can't be opened (listen: %s): %w", c.Listen, err)
	}
	if c.Admin == "" {
		return nil
	}
	if s.adminPlace, err = net.Listen("tcp", c.Admin); err != nil {
		return fmt.Errorf("the admin listener can't be opened (admin: %s): %w", c.Admin, err)
	}
	return nil
}

func (s *service) openDoor(c *config.Config) (err error) {
	s.door, err = proxy.New(proxy.Options{
		Upstream:  s.nodes,
		Limits:    limits(&c.Limits),
		Sniffing:  sniffing(c.Sniffing.Answer),
		Advertise: c.Sniffing.Advertise,
		Intercept: s.intercept(c),
		Metrics:   doorMetrics{s.metrics},
		Logger:    s.log,
	})
	if err == nil {
		s.metrics.WatchConnections(func() int { open, _ := s.door.Connections(); return open })
	}
	return err
}

func (s *service) openAdmin(c *config.Config) error {
	s.metrics.WatchReady(func() bool { return s.ready() == nil })
	if s.adminPlace == nil {
		return nil
	}
	var hosts []string
	if host, _, err := net.SplitHostPort(c.Admin); err == nil && host != "" {
		hosts = []string{host}
	}
	var locks admin.Locks
	if s.locks != nil {
		locks = s.operateLocks
	}
	s.admin = admin.New(admin.Options{
		Locks: locks,
		Build: build(), Metrics: s.metrics.Gatherer(), Switch: s.sw, Config: s.inForce, Nodes: s.nodeStates, Ready: s.ready,
		Changed: func(m rule.Mode) { s.metrics.Mode(m.String(), modes()...) }, Hosts: hosts, Log: s.log,
	})
	if addr := s.adminPlace.Addr().String(); !loopback(addr) {
		s.log.Warn("THE ADMIN LISTENER IS NOT ON A LOOPBACK ADDRESS: it asks for no credentials; "+
			"whoever reaches it can switch guarding off, release locks and read profiles", obs.KeyAddr, addr)
	}
	return nil
}

// serve begins to answer.
func (s *service) serve() {
	s.beside.Go(func() { s.greet(s.ctx) })
	if s.admin != nil {
		go func() {
			if err := s.admin.Serve(s.adminPlace); err != nil {
				s.failed <- fmt.Errorf("admin listener: %w", err)
			}
		}()
	}
	go func() {
		if err := s.door.Serve(s.data); err != nil {
			s.failed <- fmt.Errorf("data port: %w", err)
		}
	}()
	c, adminAddr := s.current.Load(), "off"
	if s.adminPlace != nil {
		adminAddr = s.adminPlace.Addr().String()
	}
	s.log.Info("serving", obs.KeyAddr, s.data.Addr().String(), "admin", adminAddr, "upstream", strings.Join(c.Upstream.URLs, ","),
		obs.KeyMode, s.sw.Mode().String(), obs.KeyRules, len(s.sw.Rules().All()), obs.KeyVersion, build().Version)
}

// close ends whatever was started.
func (s *service) close() {
	s.cancel()
	s.beside.Wait()
	if s.door != nil {
		s.door.Close()
	}
	if s.locks != nil {
		s.locks.Close()
	}
	if s.admin != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.admin.Shutdown(ctx) // a profile that somebody is reading needn't be waited for
	}
	for _, l := range []net.Listener{s.data, s.adminPlace} {
		if l != nil {
			_ = l.Close() // closed already, mostly
		}
	}
	if s.nodes != nil {
		s.nodes.Close()
	}
	if s.engine != nil {
		_ = s.engine.Close() // it holds nothing that could be lost by it
	}
}

func (s *service) setMode(m config.Mode) {
	s.sw.SetMode(rule.ModeOf(m))
	s.metrics.Mode(s.sw.Mode().String(), modes()...)
}

// inForce is the configuration with the mode that was last set, from wherever.
func (s *service) inForce() ([]byte, error) {
	c := *s.current.Load()
	c.Mode = config.Mode(s.sw.Mode().String())
	return c.JSON()
}

// loopback reports whether an address can only be reached from this machine.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}
