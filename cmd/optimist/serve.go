package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"optimist/internal/app"
	"optimist/internal/budget"
	"optimist/internal/config"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/unit"
)

type serveCmd struct {
	settings `embed:""`
	Embedded bool `help:"Run on an engine in memory instead of a real one. For trying: all data is lost at the end." env:"OPTIMIST_EMBEDDED"`
}

// Help is the command's manual, beyond its flags.
func (serveCmd) Help() string {
	return `Applications send to the data port what they sent to the engine before. Flags win over OPTIMIST_ variables, and
variables over the file. Secrets come only from files.

SIGTERM drains: readiness ends first, then the listener closes. No request is cut. A second signal ends the process at
once. On SIGHUP, and when its file changes, optimist reads the configuration again. A file with mistakes changes nothing.

Exit status: 0 after draining; 1 if it could not start or was cut short; 2 if another start would not help: the
configuration has mistakes, names no engine, or names files that can't be used, or optimist lacks a permission.`
}

const noUpstream = `optimist serve: no engine is named, so there is nothing to forward to. Name it in one of these ways:

  optimist serve --upstream http://127.0.0.1:9200       once for each node of the cluster
  OPTIMIST_UPSTREAM=http://127.0.0.1:9200               several nodes with commas
  upstream: {urls: [http://127.0.0.1:9200]}             in a file that --config names

To try optimist without an engine: optimist serve --embedded (in memory; all data is lost at the end).`

const twoEngines = `optimist serve: --embedded and an upstream (%s) are both set. Leave one out: writes for the
engine must not end in memory.`

// Run serves until it is told to end.
func (c *serveCmd) Run(p *process) error {
	s, err := c.prepare(p.stderr)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	s.deaf = func() { signal.Stop(signals) }
	defer s.deaf()
	return s.untilEnd(p.ctx, signals)
}

// service is an App that is told what to do by signals and by changes of its configuration's file.
type service struct {
	*app.App
	log     *slog.Logger
	level   *slog.LevelVar
	load    func() (*config.Config, *rule.Set, error) // reads the configuration again
	changes <-chan struct{}                           // of its file
	unwatch func()
	deaf    func() // leaves signals to the system: the next one ends the process, whatever it is waiting for
	reserve []byte // see limitMemory
}

// prepare makes the service that flags and file describe, listening but not yet serving. The file is watched from before it is
// read, so that no change of it is missed.
func (c *serveCmd) prepare(stderr io.Writer) (*service, error) {
	changes, unwatch, watchErr := watch(c.Config)
	s, err := c.newService(stderr)
	if err != nil {
		unwatch()
		return nil, err
	}
	if watchErr != nil {
		s.log.Warn("optimist can't watch the configuration file; after a change send SIGHUP", obs.KeyFile, c.Config,
			obs.KeyError, watchErr.Error())
	}
	s.changes, s.unwatch, s.load = changes, unwatch, c.load
	return s, nil
}

func (c *serveCmd) newService(stderr io.Writer) (*service, error) {
	cfg, rules, err := c.load()
	switch {
	case err != nil:
		return nil, badConfig(stderr, err, exitUsage)
	case c.Embedded && len(cfg.Upstream.URLs) > 0:
		where := "--upstream or OPTIMIST_UPSTREAM"
		if len(c.Upstream) == 0 {
			where = cfg.Where("upstream.urls")
		}
		return nil, usageError(twoEngines, where)
	case !c.Embedded && len(cfg.Upstream.URLs) == 0:
		return nil, usageError(noUpstream)
	}
	if found := app.Unusable(cfg); len(found) > 0 {
		for i := range found {
			found[i].Severity = config.Error // check only warns: the file may be for another machine
		}
		return nil, badConfig(stderr, found, exitUsage)
	}
	log, level := logger(stderr, cfg)
	for _, w := range warnings(cfg) {
		log.Warn("configuration: " + w.String())
	}
	a, err := app.New(app.Options{Config: cfg, Rules: rules, Build: build(), InMemory: c.Embedded, Log: log})
	switch {
	case forbidden(err):
		return nil, usageError("optimist serve: %v", err)
	case err != nil:
		return nil, err
	}
	warnOfFiles(cfg, openFiles(), log)
	return &service{App: a, log: log, level: level, reserve: limitMemory(a, log)}, nil
}

// forbidden reports whether the system doesn't let this process do what it was about to. The sandboxes of service managers and containers
// make file systems read-only.
func forbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// reserveSize is how many bytes are reserved.
const reserveSize = 16 << 20

// limitMemory has the garbage collector keep the process within what it may take if all that is bounded reaches its bound, unless the
// operator has set another limit. It returns a reserve, which nobody reads or writes: the system gives no memory for it, and the collector
// counts it as in use. Without it, a process that needs little would be collected after each few MiB that requests allocate. Each time
// all requests wait, and for long where other processes have the processors.
func limitMemory(a *app.App, log *slog.Logger) (reserve []byte) {
	all, there := a.MemoryOfAll(), budget.Machine()
	if os.Getenv("GOMEMLIMIT") == "" {
		reserve = make([]byte, reserveSize)
		debug.SetMemoryLimit(min(all, there/10*9) + reserveSize) // what else is in a container needs some, too
	}
	if all > there {
		log.Warn("optimist may need more memory than there is: lower limits.memory, sessions.memory or limits.max_connections",
			"needs", unit.Size(all>>20<<20).String(), "there", unit.Size(there>>20<<20).String())
	}
	return reserve
}

// otherFiles is how many files are open beside the connections of clients and to the engine: listeners, what large bulks have answered, and
// some connections of the admin port.
const otherFiles = 100

// warnOfFiles warns if the process may have fewer files open than the configuration allows connections. Then one client may take all of
// them, and none is left for the others, or to the engine.
func warnOfFiles(c *config.Config, there uint64, log *slog.Logger) {
	needs := uint64(c.Limits.MaxConnections+len(c.Upstream.URLs)*c.Upstream.MaxConnections) + otherFiles //nolint:gosec // none is negative
	if needs > there {
		log.Warn("optimist may need more open files than the process may have: raise its limit (ulimit -n, LimitNOFILE), or lower "+
			"limits.max_connections", "needs", needs, "there", there)
	}
}

// load reads the configuration, with what the service manager has prepared for the service.
func (c *serveCmd) load() (*config.Config, *rule.Set, error) {
	cfg, rules, err := c.settings.load()
	if err == nil {
		state := stateFolder(os.Getenv("STATE_DIRECTORY"))
		cfg.Sessions.File = cmp.Or(cfg.Sessions.File, state("sessions"))
		cfg.DeadLetters.Folder = cmp.Or(cfg.DeadLetters.Folder, state("dead-letters"))
	}
	return cfg, rules, err
}

// stateFolder names files in the first of the folders that systemd has made for the service's state, with colons between them; without
// one there are none.
func stateFolder(folders string) func(name string) string {
	first, _, _ := strings.Cut(folders, ":")
	return func(name string) string {
		if first == "" {
			return ""
		}
		return filepath.Join(first, name)
	}
}

// untilEnd serves, reloads, and drains when it is told to end.
func (s *service) untilEnd(ctx context.Context, signals <-chan os.Signal) error {
	defer s.unwatch()
	defer s.Close()
	s.Serve()
	for {
		select {
		case <-s.changes:
			s.reload("the file changed")
		case err := <-s.Failed():
			return err
		case <-ctx.Done():
			return s.drain(signals, false)
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				s.reload("SIGHUP")
				continue
			}
			s.log.Info("draining", slog.String(obs.KeySignal, sig.String()))
			return s.drain(signals, sig == os.Interrupt)
		}
	}
}

// reload puts a changed configuration into force, or says why not.
func (s *service) reload(why string) {
	file := s.Config().File()
	if file == "" {
		s.log.Warn("nothing to reload: no configuration file was given", obs.KeyReason, why)
		return
	}
	next, rules, err := s.load()
	if err == nil {
		err = s.Config().ReplacedBy(next)
	}
	if err != nil {
		s.NotReloaded() // before it is logged: who reads the log may look at once
		s.log.Error("reload refused: nothing has changed", obs.KeyFile, file, obs.KeyReason, why)
		for _, line := range strings.Split(err.Error(), "\n") {
			s.log.Error("configuration: " + line)
		}
		return
	}
	gone := s.Config().RulesGone(next)
	inForce, restart := s.Reload(next, rules)
	s.level.Set(obs.Level(string(inForce.Log.Level)))
	for _, w := range warnings(next) {
		s.log.Warn("configuration: " + w.String())
	}
	if len(gone) > 0 {
		s.log.Warn("rules are gone with this reload", obs.KeyRules, gone)
	}
	if len(restart) > 0 {
		s.log.Warn("changed keys that need a restart", "keys", restart)
	}
	s.log.Info("configuration reloaded", obs.KeyFile, file, obs.KeyReason, why, obs.KeyRules, len(rules.All()), obs.KeyMode, s.Mode().String())
}

// echo is how long after the first signal another one is taken for the same order. Who signals both a process and its group sends
// two: timeout(1) does, and wrappers that pass on what a terminal has sent already.
const echo = 200 * time.Millisecond

var errSecondSignal = errors.New("a second signal")

// drain ends the service without cutting a request. A second signal cuts what is left. interactive is for whoever sits at a
// keyboard: no load balancer needs time.
func (s *service) drain(signals <-chan os.Signal, interactive bool) error {
	ordered := time.Now()
	ctx, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	go func() {
		for {
			select {
			case sig := <-signals:
				if sig != syscall.SIGHUP && time.Since(ordered) > echo {
					s.deaf()
					cut(errSecondSignal)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := s.Drain(ctx, interactive); err != nil {
		if time.Since(ordered) > echo {
			s.deaf()
		}
		return &exitError{status: exitFailed}
	}
	return nil
}
