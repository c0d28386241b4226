// Package app puts optimist together: the door, what happens behind it, locks, the admin listener. It is the same for the
// command, for users' tests of their rules, and for tests.
//
// It knows neither flags nor signals, and decides nothing about requests.
package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/admin"
	"optimist/internal/budget"
	"optimist/internal/config"
	"optimist/internal/deadletter"
	"optimist/internal/embedded"
	"optimist/internal/es"
	"optimist/internal/idempotency"
	"optimist/internal/intercept"
	"optimist/internal/learn"
	"optimist/internal/notes"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/undo"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/lockrouter"
	"optimist/lockrouter/compat"
	"optimist/proxy"
)

// Options are what an App is made of. Config and Rules are required.
type Options struct {
	Config *config.Config
	Rules  *rule.Set // those of Config
	Build  obs.Build
	// InMemory has it serve an engine in memory, and forward to that instead of Config's upstream.
	InMemory bool
	// Log gets what is worth knowing. Default: nobody does.
	Log *slog.Logger
	// GreetAgain is how long it waits before it asks again an engine that refuses optimist's own credentials. Default 10 seconds.
	GreetAgain time.Duration

	// The rest is for tests.

	// Now is the time that rules see. Default time.Now.
	Now func() time.Time
	// Settled says that what a client hasn't read through this App it hasn't read at all. Otherwise it may have, before the start.
	Settled bool
}

// App is optimist, all that serve starts, and ends in the opposite order. Its methods may be called by any goroutine, New's and
// Close's work aside.
type App struct {
	o       Options
	log     *slog.Logger
	metrics *obs.Metrics
	rules   *rule.Switch
	current atomic.Pointer[config.Config] // in force, but for the mode: the switch has it

	engine      *embedded.Engine // nil unless it is in memory
	nodes       *upstream.Set
	budget      *budget.Budget
	sessions    *session.Store
	notes       *notes.Book // nil: there is none
	learner     *learn.Learner
	letters     *deadletter.Desk
	undo        *undo.Store // nil: nothing is undone
	atEnd       []func()    // called by Close, the last one first
	interceptor *intercept.Interceptor
	locks       *lockrouter.Router // nil if switched off
	compat      *compat.Compat     // nil unless an index is configured for it
	door        *proxy.Server
	data        net.Listener
	dataTLS     *tls.Config // nil: HTTP without TLS
	admin       *admin.Server
	adminPlace  net.Listener // nil if switched off
	access      admin.Access
	draining    atomic.Bool
	overloads   overloads
	greeted     atomic.Bool // the first question to the engine has its answer, or none
	ctx         context.Context
	cancel      context.CancelFunc // ends what runs beside requests
	beside      sync.WaitGroup
	failed      chan error
}

// New makes everything that the configuration names, and listens. Nothing is served before Serve. Close it.
func New(o Options) (*App, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.GreetAgain = cmp.Or(o.GreetAgain, greetAgain)
	a := &App{o: o, log: o.Log, failed: make(chan error, 3), metrics: obs.NewMetrics(o.Build),
		rules: rule.NewSwitch(rule.ModeOf(o.Config.Mode), o.Rules)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.current.Store(o.Config)
	a.metrics.Mode(a.rules.Mode().String(), modes()...)
	a.metrics.Reloaded(true, time.Now())
	steps := []func(*config.Config) error{a.startEngine, a.listen, a.secure, a.reachEngine, a.openBudget, a.openLetters,
		a.openUndo, a.openSessions, a.openLocks, a.openDoor, a.openAdmin}
	for _, step := range steps {
		if err := step(a.current.Load()); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

func modes() []string { return []string{rule.Guard.String(), rule.Observe.String(), rule.Off.String()} }

// startEngine serves the engine in memory on a port of its own, so that it is reached as a real one is.
func (a *App) startEngine(c *config.Config) error {
	if !a.o.InMemory {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a.engine = embedded.New(embedded.Options{})
	in := *c
	in.Upstream.URLs = []string{"http://" + l.Addr().String()}
	a.current.Store(&in)
	go func() { a.failed <- a.engine.Serve(l) }()
	a.log.Warn("the engine is in memory: everything is lost when optimist ends", obs.KeyAddr, l.Addr().String())
	return nil
}

func (a *App) listen(c *config.Config) (err error) {
	if a.data, err = net.Listen("tcp", c.Listen); err != nil {
		return fmt.Errorf("the data port can't be opened (listen: %s): %w", c.Listen, err)
	}
	if c.Admin == "" {
		return nil
	}
	if a.adminPlace, err = net.Listen("tcp", c.Admin); err != nil {
		return fmt.Errorf("the admin listener can't be opened (admin: %s): %w", c.Admin, err)
	}
	return nil
}

// settledFor is how long the sessions of a settled App have been there when it starts: longer than anything is remembered.
const settledFor = 1000 * time.Hour

// openSessions makes what remembers reads and performs writes.
func (a *App) openSessions(c *config.Config) error {
	var writes *write.Service
	o := session.Options{MaxAge: c.Sessions.MaxAge.Std(), Memory: c.Sessions.Memory.Bytes(), Left: wire.PeerClosed,
		Renewed: func(who session.Credentials, index string) { writes.IndexRenewed(who, index) },
		Others: func(index string, who session.Credentials) []session.Credentials {
			return writes.Catalog().Others(index, who)
		}}
	var ahead atomic.Int64
	if a.o.Settled {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	if a.openNotes(c); a.notes != nil {
		o.Notes = a.notes
	}
	a.sessions = session.New(o)
	ahead.Store(int64(settledFor))
	a.metrics.WatchSessions(func() obs.Sessions { return sessionNumbers(a.sessions.Stats()) })
	a.learner = learn.New(learn.Options{ShowClients: c.Learning.Clients == config.ClientsShown, Log: a.log,
		EqualMove: a.metrics.EqualMove, Blind: a.metrics.Blind})
	engine := &es.Client{Upstream: a.nodes}
	carrier := a.carrier(&c.Upstream)
	writes = write.New(write.Options{
		Upstream: a.nodes, Writes: carrier, Engine: engine, Sessions: a.sessions, Events: a.writeEvents(), Log: a.log,
		OwnAuth: c.Upstream.Auth != (config.Auth{}), Now: a.o.Now, MaxBody: c.Limits.MaxGuardedBody.Bytes(),
		Locks:   a.writeLocks(c),
		Letters: letterbox{a.letters, wire.NewNames(c.Identity.Fields)},
	})
	var keys *idempotency.Store
	if k := &c.Idempotency; k.Index != "" {
		keys = idempotency.New(idempotency.Options{Upstream: a.nodes, Index: k.Index, Keep: k.Keep.Std(),
			MaxAnswer: k.MaxAnswer.Bytes(), Log: a.log})
		a.beside.Go(func() { keys.CleanEvery(a.ctx, cleanEvery) })
	}
	doors := intercept.Options{
		Rules: a.rules, Upstream: a.nodes, Carrier: carrier, Documents: engine, Writes: writes, Sessions: a.sessions,
		Identity: readIdentity(&c.Sessions, &c.Identity), Metrics: a.metrics,
		Keys:    keys,
		Learner: a.learner, MaxBody: c.Limits.MaxGuardedBody.Bytes(), Unlisted: a.unlisted(),
	}
	if a.undo != nil {
		doors.Journals = a.journals
	}
	a.interceptor = intercept.New(doors)
	return nil
}

func (a *App) openDoor(c *config.Config) (err error) {
	a.door, err = proxy.New(proxy.Options{
		Upstream:  a.nodes,
		TLS:       a.dataTLS,
		Limits:    limits(&c.Limits),
		Sniffing:  sniffing(c.Sniffing.Answer),
		Advertise: c.Sniffing.Advertise,
		Identity:  fieldNames(&c.Identity),
		Address:   a.interceptor.Identity.Place,
		Shared:    a.interceptor.Identity.Trusts,
		Intercept: func(x *proxy.Exchange) bool { return a.lock(x) || a.interceptor.Intercept(x) },
		Budget:    a.budget,
		Owner:     a.interceptor.Owner,
		Metrics:   a.metrics,
		Logger:    a.log,
	})
	if err == nil {
		a.metrics.WatchConnections(func() int { open, _ := a.door.Connections(); return open })
	}
	return err
}

func (a *App) openAdmin(c *config.Config) error {
	a.metrics.WatchReady(func() bool { return a.Ready() == nil })
	if a.adminPlace == nil {
		return nil
	}
	var hosts []string
	if host, _, err := net.SplitHostPort(c.Admin); err == nil && host != "" {
		hosts = []string{host}
	}
	var locks admin.Locks
	if a.locks != nil {
		locks = a.operateLocks
	}
	a.admin = admin.New(admin.Options{
		Locks: locks, Letters: a.operateLetters, Undo: a.operateUndo, Hot: a.hot, Suggestions: a.suggestions,
		Build: a.o.Build, Metrics: a.metrics.Gatherer(), Switch: a.rules, Config: a.inForce, Nodes: a.nodeStates, Ready: a.Ready,
		Changed: func(m rule.Mode) { a.metrics.Mode(m.String(), modes()...) }, Access: a.access, Hosts: hosts, Log: a.log,
	})
	return nil
}

// Serve begins to answer.
func (a *App) Serve() {
	a.beside.Go(func() { a.greet(a.ctx) })
	if a.admin != nil {
		go func() {
			if err := a.admin.Serve(a.adminPlace); err != nil {
				a.failed <- fmt.Errorf("admin listener: %w", err)
			}
		}()
	}
	go func() {
		if err := a.door.Serve(a.data); err != nil {
			a.failed <- fmt.Errorf("data port: %w", err)
		}
	}()
	adminAddr := "off"
	if a.adminPlace != nil {
		adminAddr = a.adminPlace.Addr().String()
	}
	a.log.Info("serving", obs.KeyAddr, a.data.Addr().String(), "admin", adminAddr, "upstream",
		strings.Join(a.current.Load().Upstream.URLs, ","), obs.KeyMode, a.rules.Mode().String(), obs.KeyRules, len(a.rules.Rules().All()),
		obs.KeyVersion, a.o.Build.Version)
}

// Failed gives what ends the App without being told to.
func (a *App) Failed() <-chan error { return a.failed }

// URL is where clients send their requests.
func (a *App) URL() string {
	if a.dataTLS != nil {
		return "https://" + a.data.Addr().String()
	}
	return "http://" + a.data.Addr().String()
}

// EngineURL is that of the engine's first node.
func (a *App) EngineURL() string { return a.current.Load().Upstream.URLs[0] }

// Config is the configuration in force, but for the mode.
func (a *App) Config() *config.Config { return a.current.Load() }

// Close ends whatever was started.
func (a *App) Close() {
	a.cancel()
	a.beside.Wait()
	if a.door != nil {
		a.door.Close()
	}
	if a.locks != nil {
		a.locks.Close()
	}
	if a.admin != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = a.admin.Shutdown(ctx) // a profile that somebody is reading needn't be waited for
	}
	for _, l := range []net.Listener{a.data, a.adminPlace} {
		if l != nil {
			_ = l.Close() // closed already, mostly
		}
	}
	if a.nodes != nil {
		a.nodes.Close()
	}
	if a.notes != nil {
		a.notes.Close()
	}
	for _, end := range slices.Backward(a.atEnd) {
		end()
	}
	if a.engine != nil {
		_ = a.engine.Close() // it holds nothing that could be lost by it
	}
}

// ErrCut reports an end that cut requests.
var ErrCut = errors.New("requests were cut")

// errDrainTimeout is why a drain ends before its requests.
var errDrainTimeout = errors.New("drain.timeout")

// Drain ends the App without cutting a request: readiness goes first, so that load balancers send nothing new; after the
// configured delay, unless at is now, the listener; then the requests under way are waited for. When ctx ends, or drain.timeout
// passes, what is left is cut: ErrCut, if there was something. ctx's cause says why, for the log.
func (a *App) Drain(ctx context.Context, now bool) error {
	a.draining.Store(true)
	c := a.current.Load().Drain
	if !now {
		select {
		case <-time.After(c.Delay.Std()):
		case <-ctx.Done():
			return a.cut(context.Cause(ctx))
		}
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout.Std(), errDrainTimeout)
		defer cancel()
	}
	open, active := a.door.Connections()
	a.log.Info("listener closed, finishing requests", "connections", open, "requests", active)
	if a.locks != nil {
		a.locks.Drain()
	}
	if a.door.Drain(ctx) != nil {
		return a.cut(context.Cause(ctx))
	}
	a.log.Info("drained")
	return nil
}

func (a *App) cut(why error) error {
	_, active := a.door.Connections()
	a.door.Close()
	if active == 0 {
		a.log.Info("ended", obs.KeyReason, why.Error())
		return nil
	}
	a.log.Warn("ended, requests were cut", obs.KeyReason, why.Error(), "requests", active)
	return ErrCut
}

// Reload puts a changed configuration and its rules into force. It returns the configuration in force, and the keys that wait for
// a restart.
func (a *App) Reload(next *config.Config, rules *rule.Set) (inForce *config.Config, restart []string) {
	old := a.current.Load()
	if a.engine != nil {
		next.Upstream.URLs = old.Upstream.URLs
	}
	inForce, restart = old.Reload(next)
	a.current.Store(inForce)
	a.rules.SetRules(rules)
	if inForce.Mode != old.Mode {
		a.rules.SetMode(rule.ModeOf(inForce.Mode))
		a.metrics.Mode(a.rules.Mode().String(), modes()...)
	}
	a.metrics.Reloaded(true, time.Now())
	return inForce, restart
}

// NotReloaded counts a configuration that was refused.
func (a *App) NotReloaded() { a.metrics.Reloaded(false, time.Now()) }

// Mode is the mode in force.
func (a *App) Mode() rule.Mode { return a.rules.Mode() }

// inForce is the configuration with the mode that was last set, from wherever.
func (a *App) inForce() ([]byte, error) {
	c := *a.current.Load()
	c.Mode = config.Mode(a.rules.Mode().String())
	return c.JSON()
}
