package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"text/tabwriter"
	"time"

	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// site is where an experiment with a whole engine takes place.
type site struct {
	engine string // base URL
	title  string
	plain  string // optimist's base URL, with no rule
	sums   string // with the rule for counters
	nginx  string // what a proxy costs that does nothing; empty where it isn't installed
	index  string

	documents int // used so far
}

// openSite starts an engine, unless url names one, and two optimists in front of it.
func openSite(ctx context.Context, st *stage, kind, url string) (s *site, err error) {
	s = &site{engine: url, title: url, index: fmt.Sprintf("bench-%d", os.Getpid())}
	if url == "" {
		if s.engine, s.title, err = st.startEngine(ctx, kind, "1g"); err != nil {
			return nil, err
		}
	}
	if s.nginx, _, err = st.startNginx(ctx, s.engine); err != nil {
		return nil, err
	}
	for _, o := range []struct {
		url    *string
		config string
	}{{&s.plain, ""}, {&s.sums, "rules:\n  - {name: counters, merge: {paths: {" + app.CounterPath + ": sum}}}\n"}} {
		p, err := st.startOptimist(ctx, optimist.Options{Upstream: []string{s.engine}, Config: o.config})
		if err != nil {
			return nil, err
		}
		*o.url = p.URL
	}
	return s, s.makeIndex(ctx)
}

// makeIndex makes an index as the engine itself would on the first write, but for one shard and no replica on every engine.
func (s *site) makeIndex(ctx context.Context) error {
	const body = `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`
	a, err := send(ctx, http.DefaultClient, http.MethodPut, s.engine+"/"+s.index, body)
	if err == nil && a != http.StatusOK {
		err = fmt.Errorf("making the index: status %d", a)
	}
	return err
}

// route is how the application reaches the engine, with one row's figures.
type route struct {
	url   string    // empty: there is no such route here
	rates []float64 // rounds a second, a turn each
	lost  losses    // of all turns
}

// routes are straight, through a proxy that adds nothing but the hop, and through optimist.
type routes [3]route

// application measures the unmodified application straight at the engine, through nginx and through optimist, in turns.
func application(ctx context.Context, st *stage, args []string, out io.Writer) error {
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
	s, err := openSite(ctx, st, *kind, *url)
	if err != nil {
		return err
	}
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

// habit is an application and how it is called in the table.
type habit struct {
	name string
	app  app.Application
}

// habits are the shapes of change. A list that loses nothing grows seven times as long as one that loses 87 %, and so costs the engine
// and the application more: with a list that is long from the start, both sides do the same work.
func habits(workers, rounds int) (list []habit) {
	for _, shape := range app.Shapes() {
		list = append(list, habit{shape.String(), app.Application{Shape: shape, Workers: workers, Rounds: rounds}})
	}
	long := app.Application{Shape: app.List, Workers: workers, Rounds: max(rounds/10, 1), Entries: workers * rounds / 2}
	return append(list, habit{"list, long", long})
}

// writes lets the application work on each shape, in turns, with each kind of session.
func (s *site) writes(ctx context.Context, out io.Writer, repeat, workers, rounds int) error {
	fmt.Fprintf(out, "%d workers read one document, change it and write it back whole, %d times each (list, long: %d times, on a list of\n"+
		"%d entries), then the next document; medians of %d turns of %v.\n\n",
		workers, rounds, max(rounds/10, 1), workers*rounds/2, repeat, turnTime)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "change\tsessions\tdirect rounds/s\tleast–most\tlost\tthrough nginx\t\tlost\tthrough optimist\t\tlost\t× direct\t× nginx")
	for _, h := range habits(workers, rounds) {
		for _, sessions := range []app.Sessions{app.Named, app.Unnamed, app.Pooled} {
			a := h.app
			a.Sessions = sessions
			cold, t := s.routes(a.Shape), s.routes(a.Shape)
			for turn := range 2 { // for the engine's compiler
				if err := s.turn(ctx, &cold, turn, &a); err != nil {
					return err
				}
			}
			for turn := range repeat {
				if err := s.turn(ctx, &t, turn, &a); err != nil {
					return err
				}
			}
			fmt.Fprintf(w, "%s\t%s", h.name, sessionsName(sessions))
			for _, r := range t {
				fmt.Fprintf(w, "\t%s\t%s", spread(r.rates), r.lost.percent())
			}
			fmt.Fprintf(w, "\t%s\t%s\n", ratio(t[2].rates, t[0].rates), ratio(t[2].rates, t[1].rates))
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

// turnTime is how long one side works in a turn at least: shorter ones measure how the machine's time happened to be shared.
const turnTime = 1500 * time.Millisecond

// routes are those for a shape of change: counters need a rule.
func (s *site) routes(shape app.Shape) routes {
	through := s.plain
	if shape == app.Counter {
		through = s.sums
	}
	return routes{{url: s.engine}, {url: s.nginx}, {url: through}}
}

// turn measures each route once, each turn another one first.
func (s *site) turn(ctx context.Context, t *routes, n int, a *app.Application) error {
	for i := range t {
		route := &t[(i+n)%len(t)]
		if route.url == "" {
			continue
		}
		a.URLs, a.Store = []string{route.url}, s.engine
		var sum losses
		for sum.took < turnTime {
			s.documents++
			a.Path = fmt.Sprintf("/%s/_doc/%s-%d", s.index, a.Shape, s.documents)
			r, err := a.Run(ctx)
			switch {
			case err != nil:
				return err
			case r.Refused+r.Errors+int64(len(r.Damaged)) > 0:
				return fmt.Errorf("%s at %s: %s", a.Shape, route.url, &r)
			}
			sum.add(&r)
		}
		route.rates, route.lost = append(route.rates, float64(sum.acknowledged)/sum.took.Seconds()), route.lost.and(sum)
	}
	return nil
}

// losses are what became of changes that were acknowledged.
type losses struct {
	acknowledged, wrong int64
	took                time.Duration
}

func (l *losses) add(r *app.Result) {
	*l = l.and(losses{r.Acknowledged, r.Lost + r.Invented, r.Elapsed})
}

func (l losses) and(m losses) losses {
	return losses{l.acknowledged + m.acknowledged, l.wrong + m.wrong, l.took + m.took}
}

// percent is how much of what was acknowledged is wrong; a dash where nothing was.
func (l losses) percent() string {
	if l.acknowledged == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(l.wrong)/float64(l.acknowledged))
}
