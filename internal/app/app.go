// Package app puts optimist together: the door, the paths behind it, locks, the admin listener. It is the same for the command,
// for users' tests of their rules, and for tests.
//
// It knows neither flags nor signals, and decides nothing about requests.
package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/admin"
	"optimist/internal/budget"
	"optimist/internal/config"
	"optimist/internal/deadletter"
	"optimist/internal/embedded"
	"optimist/internal/es"
	"optimist/internal/intercept"
	"optimist/internal/learn"
	"optimist/internal/notefile"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/undo"
	"optimist/internal/unit"
	"optimist/internal/upstream"
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

	// Now is the time that rules see, and by which clients wait for reads. Default time.Now.
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
	questions   *es.Client       // to the engine
	nodes       *upstream.Set
	budget      *budget.Budget
	sessions    *session.Store
	notes       *notefile.Book // nil: there is none
	learner     *learn.Learner
	letters     *deadletter.Desk
	folder      *deadletter.Folder // of dead letters that their store can't take now; nil: there is none
	undo        *undo.Store        // nil: nothing is undone
	atEnd       []func()           // called by Close, the last one first
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
	overloads   obs.Seldom                    // requests that found no memory
	lost        obs.Seldom                    // writes that became no dead letters
	denied      obs.Seldom                    // indices about which optimist may not ask
	writes      atomic.Pointer[write.Service] // nil: it isn't there yet
	greeted     atomic.Bool                   // the first question to the engine has its answer, or none
	ctx         context.Context
	cancel      context.CancelFunc // ends what runs beside requests
	beside      sync.WaitGroup
	failed      chan error
}

func modes() []string { return []string{rule.Guard.String(), rule.Observe.String(), rule.Off.String()} }

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

// Reload puts a changed configuration and its rules into force. It returns the configuration in force, and the keys that wait for
// a restart.
func (a *App) Reload(next *config.Config, rules *rule.Set) (inForce *config.Config, restart []string) {
	old := a.current.Load()
	if a.engine != nil {
		next.Upstream.URLs = old.Upstream.URLs
	}
	inForce, restart = old.Reload(next)
	a.current.Store(inForce)
	if inForce.KeepsLetters() && !old.KeepsLetters() {
		a.firstLetters(inForce)
	}
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

// inForce is the configuration with the mode that was last set, from wherever, and with what follows from this machine.
func (a *App) inForce() ([]byte, error) {
	c := *a.current.Load()
	c.Limits.Memory = unit.Size(a.budget.Limit())
	c.Mode = config.Mode(a.rules.Mode().String())
	return c.JSON()
}
