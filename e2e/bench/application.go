package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// site is where an experiment with a whole engine takes place.
type site struct {
	engine string // base URL
	title  string
	plain  string // optimist's base URL, with no rule
	sums   string // with the rule for counters
	index  string
	end    func()
}

// openSite starts an engine, unless url names one, and two optimists in front of it.
func openSite(ctx context.Context, kind, url, dir string) (s *site, err error) {
	s = &site{engine: url, title: url, index: fmt.Sprintf("bench-%d", os.Getpid())}
	var ends []func()
	s.end = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	switch k, known := engine.ParseKind(kind); {
	case url != "":
	case kind == "embedded":
		p, err := startSelf(ctx, "serve-embedded")
		if err != nil {
			return nil, err
		}
		ends = append(ends, func() { p.end() })
		s.engine, s.title = "http://"+p.addr, "the embedded engine"
	case known:
		e, err := engine.Start(ctx, k, engine.Options{Peak: true, Heap: "1g"})
		if err != nil {
			return nil, err
		}
		ends = append(ends, func() { _ = e.Stop() }) // what a benchmark leaves in a temporary folder is no failure of it
		s.engine, s.title = e.URL, k.Title()
	default:
		return nil, fmt.Errorf("no engine is called %q", kind)
	}
	for i, config := range []string{"", "rules:\n  - {name: counters, merge: {paths: {" + app.CounterPath + ": sum}}}\n"} {
		p, err := optimist.Run(ctx, subfolder(dir, i), optimist.Options{Upstream: []string{s.engine}, Config: config})
		if err != nil {
			return nil, err
		}
		ends = append(ends, func() { _ = p.Stop() })
		s.plain, s.sums = s.sums, p.URL
	}
	return s, s.makeIndex(ctx)
}

func subfolder(dir string, i int) string {
	sub := fmt.Sprintf("%s/%d", dir, i)
	_ = os.MkdirAll(sub, 0o700) // whoever writes there says so if it failed
	return sub
}

// makeIndex makes an index that the engine spends little on: its documents aren't searched.
func (s *site) makeIndex(ctx context.Context) error {
	const body = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"dynamic":false}}`
	a, err := send(ctx, http.DefaultClient, http.MethodPut, s.engine+"/"+s.index, body)
	if err == nil && a != http.StatusOK {
		err = fmt.Errorf("making the index: status %d", a)
	}
	return err
}

// turns are one row's figures: each number is one turn's.
type turns struct {
	direct, through []float64 // rounds a second
	lost, kept      string    // of the last turn: direct, through
}

// application measures the unmodified application straight at the engine and through optimist, in turns.
func application(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("application", flag.ContinueOnError)
	kind := fs.String("engine", "opensearch", "opensearch, elasticsearch7, elasticsearch9 or embedded")
	url := fs.String("url", "", "an engine that is running already, instead of one of the above")
	repeat := fs.Int("turns", 5, "how often each side is measured")
	workers := fs.Int("workers", 16, "workers of the application")
	rounds := fs.Int("rounds", 50, "reads and writes of each worker in a turn")
	only := fs.String("only", "", "only one part: writes, creates or reads")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := openSite(ctx, *kind, *url, dir)
	if err != nil {
		return err
	}
	defer s.end()
	defer s.dropIndex()
	fmt.Fprintf(out, "On %s, %d processors for engine, application and optimist together.\n\n", s.title, processors())
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"writes", func() error { return s.writes(ctx, out, *repeat, *workers, *rounds) }},
		{"creates", func() error { return s.creates(ctx, out, *repeat) }},
		{"reads", func() error { return s.reads(ctx, out, *repeat, *workers) }},
	} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *site) dropIndex() {
	// Not the benchmark's context: it may have been interrupted.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = send(ctx, http.DefaultClient, http.MethodDelete, s.engine+"/"+s.index, "") // the engine mostly ends with us
}

// writes lets the application work on each shape, in turns, with each kind of session.
func (s *site) writes(ctx context.Context, out io.Writer, repeat, workers, rounds int) error {
	fmt.Fprintf(out, "%d workers read one document, change it and write it back whole, %d times each; medians of %d turns.\n\n",
		workers, rounds, repeat)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "change\tsessions\tdirect rounds/s\tleast–most\tlost\tthrough rounds/s\tleast–most\tlost\tratio")
	for _, shape := range app.Shapes() {
		for _, sessions := range []app.Sessions{app.Named, app.Unnamed, app.Pooled} {
			a := &app.Application{Shape: shape, Sessions: sessions, Workers: workers, Rounds: rounds}
			var cold, t turns
			if err := s.turn(ctx, &cold, repeat, a); err != nil { // for the engine's compiler
				return err
			}
			for turn := range repeat {
				if err := s.turn(ctx, &t, turn, a); err != nil {
					return err
				}
			}
			d, o := median(t.direct), median(t.through)
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f–%.0f\t%s\t%.0f\t%.0f–%.0f\t%s\t%.2f\n", shape, sessionsName(sessions), d, slices.Min(t.direct),
				slices.Max(t.direct), t.lost, o, slices.Min(t.through), slices.Max(t.through), t.kept, o/d)
		}
	}
	_ = w.Flush() // to a terminal or a pipe that has gone: nobody's loss
	fmt.Fprintln(out)
	return nil
}

func sessionsName(s app.Sessions) string {
	switch s {
	case app.Named:
		return "by header"
	case app.Pooled:
		return "one pool"
	}
	return "none"
}

// turn measures both sides once, the one first that came last in the turn before.
func (s *site) turn(ctx context.Context, t *turns, n int, a *app.Application) error {
	through := s.plain
	if a.Shape == app.Counter {
		through = s.sums
	}
	sides := []string{s.engine, through}
	if n%2 == 1 {
		slices.Reverse(sides)
	}
	for _, url := range sides {
		a.URLs, a.Store = []string{url}, s.engine
		a.Path = fmt.Sprintf("/%s/_doc/%s-%d-%d-%t", s.index, a.Shape, a.Sessions, n, url == s.engine)
		r, err := a.Run(ctx)
		if err != nil {
			return err
		}
		if r.Refused+r.Errors > 0 {
			return fmt.Errorf("%s at %s: %s", a.Shape, url, &r)
		}
		lost := fmt.Sprintf("%.0f %%", 100*float64(r.Lost+r.Invented)/float64(r.Acknowledged))
		if url == s.engine {
			t.direct, t.lost = append(t.direct, r.PerSecond()), lost
		} else {
			t.through, t.kept = append(t.through, r.PerSecond()), lost
		}
	}
	return nil
}
