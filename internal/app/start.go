package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"optimist/internal/admin"
	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/embedded"
	"optimist/internal/es"
	"optimist/internal/idempotency"
	"optimist/internal/intercept"
	"optimist/internal/learn"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

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
	startCounters(a.metrics)
	steps := []func(*config.Config) error{a.startEngine, a.listen, a.secure, a.reachEngine, a.openBudget, a.openLetters,
		a.openUndo, a.openSessions, a.openWrites, a.openLocks, a.openDoor, a.openAdmin}
	for _, step := range steps {
		if err := step(a.current.Load()); err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

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
		return fmt.Errorf("the data port can't be opened (listen: %s): %w%s", c.Listen, err, portAdvice(err))
	}
	if c.Admin == "" {
		return nil
	}
	if a.adminPlace, err = net.Listen("tcp", c.Admin); err != nil {
		return fmt.Errorf("the admin listener can't be opened (admin: %s): %w%s", c.Admin, err, portAdvice(err))
	}
	return nil
}

// portAdvice is what to do about the error of a port that can't be opened, as a clause behind it; "" if it is another than a port in use.
func portAdvice(err error) string {
	if errors.Is(err, syscall.EADDRINUSE) {
		return ": another program has it, perhaps another optimist. End that one, or choose another port"
	}
	return ""
}

// settledFor is how long the sessions of a settled App seem to have been there when it starts: longer than anything is remembered.
const settledFor = 1000 * time.Hour

// openSessions makes what remembers reads, and what learns from conflicts.
func (a *App) openSessions(c *config.Config) error {
	o := session.Options{MaxAge: c.Sessions.MaxAge.Std(), Memory: c.Sessions.Memory.Bytes(), Left: wire.PeerClosed,
		Renewed: func(credentials session.Credentials, index string) { a.writes.Load().IndexRenewed(credentials, index) }}
	var ahead atomic.Int64
	if a.o.Settled || a.o.InMemory { // nobody can have read from an engine in memory before the start: it is new
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	a.openNotes(c)
	if a.notes != nil {
		o.Notes = a.notes
	}
	a.sessions = session.New(o)
	ahead.Store(int64(settledFor))
	a.metrics.WatchSessions(func() obs.Sessions { return sessionNumbers(a.sessions.Stats()) })
	a.learner = learn.New(learn.Options{ShowClients: c.Learning.Clients == config.ClientsShown, Log: a.log,
		EqualMove: a.metrics.EqualMove, Blind: a.metrics.Blind})
	return nil
}

// openWrites makes what performs writes, and the hook by which requests come to it.
func (a *App) openWrites(c *config.Config) error {
	a.questions = &es.Client{Upstream: a.nodes, StreamAliases: a.enforces} // locks count under each name
	carrier, identity := a.carrier(&c.Upstream), readIdentity(&c.Sessions, &c.Identity)
	ownAuth, maxBody := c.Upstream.Auth != (config.Auth{}), c.Limits.MaxGuardedBody.Bytes()
	writes := write.New(write.Options{
		Upstream: a.nodes, Writes: carrier, Engine: a.questions, Sessions: a.sessions, Events: a.writeEvents(), OwnAuth: ownAuth,
		Now: a.o.Now, MaxBody: maxBody, Locks: a.writeLocks(c), Letters: letterbox{a.letters, identity, a.noLetter},
	})
	a.writes.Store(writes)
	doors := intercept.Options{
		Types: a.types, Rules: a.rules, Upstream: a.nodes, Carrier: carrier, Documents: a.questions, Writes: writes, Sessions: a.sessions,
		Identity: identity, Metrics: a.metrics, OwnAuth: ownAuth, Keys: a.openKeys(&c.Idempotency), Log: a.log, Learner: a.learner,
		MaxBody: maxBody, TenantHeaders: a.tenantHeaders(), Now: a.o.Now,
	}
	if a.undo != nil {
		doors.Journals = a.journals
	}
	a.interceptor = intercept.New(doors)
	if err := intercept.CheckSpool(); err != nil {
		a.log.Warn("the temporary folder (TMPDIR) can't be used: large bulks with many items will break off (answer_not_kept)",
			obs.KeyError, err.Error())
	}
	return nil
}

// openKeys makes what keeps the answers to requests with an Idempotency-Key; nil: the header is switched off.
func (a *App) openKeys(c *config.Idempotency) *idempotency.Store {
	if c.Index == "" {
		return nil
	}
	o := idempotency.Options{Upstream: a.nodes, Index: c.Index, InMemory: a.o.InMemory, Keep: c.Keep.Std(), MaxAnswer: c.MaxAnswer.Bytes(),
		Log: a.log}
	if a.undo != nil {
		o.Undone = a.undo.Undone
	}
	keys := idempotency.New(o)
	a.beside.Go(func() { keys.CleanEvery(a.ctx, cleanEvery) })
	return keys
}

// types says whether the engine has mapping types, as far as is known.
func (a *App) types() api.Types {
	switch {
	case a.questions.Typed():
		return api.HasTypes
	case a.questions.Untyped():
		return api.NoTypes
	}
	return api.TypesUnknown
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
