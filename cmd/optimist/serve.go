package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"optimist/internal/obs"
)

type serveCmd struct {
	settings `embed:""`
	Embedded bool `help:"Run on an engine in memory instead of a real one. For trying: everything is lost at the end." env:"OPTIMIST_EMBEDDED"`
}

// Help is the command's manual, beyond its flags.
func (serveCmd) Help() string {
	return `Applications send to the data port what they sent to the engine. Flags win over OPTIMIST_ variables, and those
over the file; secrets come from files only.

SIGTERM drains: readiness goes first, then the listener; no request is cut. A second signal ends at once. SIGHUP reads
the configuration again, and so does a change of its file; a file with mistakes changes nothing.

Exit status: 0 after draining, 1 if it could not start or was cut short, 2 if the configuration has mistakes or names
no engine: starting again would not help.`
}

const noUpstream = `optimist serve: no engine is named; there is nothing to forward to. Name it in one of these ways:

  optimist serve --upstream http://127.0.0.1:9200       again for each further node of the cluster
  OPTIMIST_UPSTREAM=http://127.0.0.1:9200               several with commas
  upstream: {urls: [http://127.0.0.1:9200]}             in a file that --config names

To try optimist without an engine: optimist serve --embedded (in memory; everything is lost at the end).`

const twoEngines = `optimist serve: --embedded and an upstream are both set. Leave one out: writes meant for the engine
must not land in memory.`

// Run serves until it is told to end.
func (c *serveCmd) Run(p *process) error {
	s, err := c.prepare(p.stderr)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	defer signal.Stop(signals)
	return s.untilEnd(p.ctx, signals)
}

// prepare makes the service that flags and file describe, listening but not yet serving. The file is watched from before it is
// read, so that no change of it is missed.
func (c *serveCmd) prepare(stderr io.Writer) (*service, error) {
	changes, unwatch, watchErr := watch(c.Config)
	s, err := c.started(stderr)
	if err != nil {
		unwatch()
		return nil, err
	}
	if watchErr != nil {
		s.log.Warn("the configuration isn't watched; after a change send SIGHUP", obs.KeyFile, c.Config, obs.KeyError, watchErr.Error())
	}
	s.changes, s.unwatch, s.load = changes, unwatch, c.load
	return s, nil
}

func (c *serveCmd) started(stderr io.Writer) (*service, error) {
	cfg, rules, err := c.load()
	switch {
	case err != nil:
		return nil, badConfig(stderr, err, exitUsage)
	case c.Embedded && len(cfg.Upstream.URLs) > 0:
		return nil, usageError(twoEngines)
	case !c.Embedded && len(cfg.Upstream.URLs) == 0:
		return nil, usageError(noUpstream)
	}
	log, level := logger(stderr, cfg)
	for _, w := range warnings(cfg) {
		log.Warn("configuration: " + w.String())
	}
	s, err := start(cfg, rules, c.Embedded, log)
	if err != nil {
		return nil, err
	}
	s.level = level
	return s, nil
}

// untilEnd serves, reloads, and drains when it is told to end.
func (s *service) untilEnd(ctx context.Context, signals <-chan os.Signal) error {
	defer s.unwatch()
	defer s.close()
	s.serve()
	for {
		select {
		case <-s.changes:
			s.reload("the file changed")
		case err := <-s.failed:
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
	old := s.current.Load()
	if old.File() == "" {
		s.log.Warn("nothing to reload: no configuration file was given", obs.KeyReason, why)
		return
	}
	next, rules, err := s.load()
	if err != nil {
		s.metrics.Reloaded(false, s.now()) // before it is told: who reads the log may look at once
		s.log.Error("reload refused, nothing has changed", obs.KeyFile, old.File(), obs.KeyReason, why)
		for _, line := range strings.Split(err.Error(), "\n") {
			s.log.Error("configuration: " + line)
		}
		return
	}
	if s.engine != nil {
		next.Upstream.URLs = old.Upstream.URLs
	}
	inForce, restart := old.Reload(next)
	s.current.Store(inForce)
	s.sw.SetRules(rules)
	s.level.Set(obs.Level(string(inForce.Log.Level)))
	if inForce.Mode != old.Mode {
		s.setMode(inForce.Mode)
	}
	s.metrics.Reloaded(true, s.now())
	for _, w := range warnings(next) {
		s.log.Warn("configuration: " + w.String())
	}
	if len(restart) > 0 {
		s.log.Warn("changed keys that wait for a restart", "keys", restart)
	}
	s.log.Info("configuration reloaded", obs.KeyFile, old.File(), obs.KeyReason, why, obs.KeyRules, len(rules.All()),
		obs.KeyMode, s.sw.Mode().String())
}
