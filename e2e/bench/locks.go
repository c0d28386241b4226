package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// lockTurn is how long a side works in a turn.
const lockTurn = 2 * time.Second

// locks measures locks through optimist beside other ways to exclude each other, in turns.
func locks(ctx context.Context, st *stage, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("locks", flag.ContinueOnError)
	url := fs.String("url", "", "an OpenSearch or Elasticsearch that is running already; its lock index is used")
	repeat := fs.Int("turns", 5, "how often each side is measured")
	workers := fs.Int("workers", 16, "contenders for one lock")
	many := fs.Int("many", 10_000, "leases in the large tree, and clients that wait at once")
	warm := fs.Duration("warm", 20*time.Second, "how long the engine works on many locks before anything is measured: for its compiler")
	calm := fs.Duration("calm", 0, "wait up to so long before each turn for a moment in which others leave the processors alone")
	only := fs.String("only", "", "only one part: contended, alone, many, tree, held or waiting")
	if err := fs.Parse(args); err != nil {
		return err
	}
	s, err := openLockSite(ctx, st, *url)
	if err != nil {
		return err
	}
	s.calm = *calm
	fmt.Fprintf(out, "On %s, %d processors for engine, clients, optimist and the other systems together. Medians of %d turns of %v.\n",
		s.title, processors(), *repeat, lockTurn)
	for _, name := range s.missing {
		fmt.Fprintf(out, "not measured, because it isn't installed: %s\n", name)
	}
	w := throughOptimist("optimist", s.plain.URL, "/_lock/global/")
	if _, err := contend(ctx, w, 64, *warm, func(worker, n int) string { return fmt.Sprint("warm-", (worker*7+n)%500) }); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"contended", func() error { return s.beside(ctx, out, "One lock for all", *workers, *repeat) }},
		{"alone", func() error { return s.beside(ctx, out, "A lock that nobody else wants", 1, *repeat) }},
		{"many", func() error { return s.many(ctx, out, *repeat) }},
		{"tree", func() error { return s.tree(ctx, out, *workers, *repeat) }},
		{"held", func() error { return s.large(ctx, out, *many) }},
		{"waiting", func() error { return s.crowd(ctx, out, *many) }},
	} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return ctx.Err()
}

// lockTimes is what a side came to in one turn.
type lockTimes struct {
	rate          float64
	p50, p99, max time.Duration
	fewest, most  int
	requests      float64 // to whoever keeps the locks, a lock; 0 if that wasn't counted
}

// contend has workers take locks and give them back until d has passed. name says which lock a worker's nth is.
func contend(ctx context.Context, w way, workers int, d time.Duration, name func(worker, n int) string) (lockTimes, error) {
	lockers := make([]locker, workers)
	for i := range lockers {
		l, err := w.worker(i)
		if err != nil {
			return lockTimes{}, err
		}
		defer l.close()
		lockers[i] = l
	}
	waits, errs := make([][]time.Duration, workers), make([]error, workers)
	var wg sync.WaitGroup
	start := time.Now()
	for i, l := range lockers {
		wg.Go(func() {
			for n := 0; time.Since(start) < d && errs[i] == nil && ctx.Err() == nil; n++ {
				asked, of := time.Now(), name(i, n)
				if errs[i] = l.lock(ctx, of); errs[i] == nil {
					waits[i] = append(waits[i], time.Since(asked))
					errs[i] = l.unlock(of)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return lockTimes{}, fmt.Errorf("%s: %w", w.name, err)
	}
	all := slices.Concat(waits...)
	if len(all) == 0 {
		return lockTimes{}, fmt.Errorf("%s: no lock in %v", w.name, d)
	}
	slices.Sort(all)
	t := lockTimes{rate: float64(len(all)) / took.Seconds(), p50: all[len(all)/2], p99: all[len(all)*99/100], max: all[len(all)-1],
		fewest: len(waits[0])}
	var asked int64
	for i := range waits {
		t.fewest, t.most = min(t.fewest, len(waits[i])), max(t.most, len(waits[i]))
		asked += requests(lockers[i])
	}
	t.requests = float64(asked) / float64(len(all))
	return t, ctx.Err()
}

// quieten waits until no more processes want to run than there are processors, ours included, for a while, or until the limit.
func quieten(ctx context.Context, limit time.Duration) {
	const often, looks = 20 * time.Millisecond, 15
	start := time.Now()
	for quiet := 0; quiet < looks && time.Since(start) < limit && ctx.Err() == nil; quiet++ {
		stat, err := os.ReadFile("/proc/stat")
		if err != nil {
			return
		}
		_, after, _ := strings.Cut(string(stat), "procs_running ")
		line, _, _ := strings.Cut(after, "\n")
		if n, err := strconv.Atoi(line); err != nil || n > processors() {
			quiet = -1
		}
		rest(ctx, often)
	}
}

func oneLock(int, int) string { return "bench" }

// beside measures one lock with all ways in turns.
func (s *lockSite) beside(ctx context.Context, out io.Writer, title string, workers, repeat int) error {
	turns := make([][]lockTimes, len(s.ways))
	for i := range s.ways { // for compilers, and for what is made with the first lock
		if _, err := contend(ctx, s.ways[i], workers, lockTurn, oneLock); err != nil {
			return err
		}
	}
	for n := range repeat {
		for i := range s.ways {
			k := (i + n) % len(s.ways)
			quieten(ctx, s.calm)
			t, err := contend(ctx, s.ways[k], workers, lockTurn, oneLock)
			if err != nil {
				return err
			}
			turns[k] = append(turns[k], t)
		}
	}
	fmt.Fprintf(out, "\n%s: %d clients, an empty critical section.\n\n", title, workers)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "way\tlocks/s\tleast–most\tp50 ms\tp99 ms\tmax ms\tfewest/most a worker\trequests a lock\toptimist × it")
	for i, way := range s.ways {
		t := middle(turns[i])
		if i < len(s.counting) {
			var err error
			if t.requests, err = s.counted(ctx, i, workers); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f–%.0f\t%.2f\t%.2f\t%.1f\t%d/%d\t%s\t%.2f\n", way.name, t.rate, rates(turns[i], slices.Min),
			rates(turns[i], slices.Max), ms(t.p50), ms(t.p99), ms(t.max), t.fewest, t.most, orDash(t.requests),
			middle(turns[0]).rate/t.rate)
	}
	_ = w.Flush() // to a terminal or a pipe that has gone: nobody's loss
	return nil
}

// counted is how many requests an optimist makes to the engine a lock, in a turn of its own.
func (s *lockSite) counted(ctx context.Context, i, workers int) (float64, error) {
	w := throughOptimist("optimist, counted", s.counting[i].URL, "/_lock/global/")
	if _, err := contend(ctx, w, 1, lockTurn/10, oneLock); err != nil {
		return 0, err
	}
	before := s.counter.n.Load()
	t, err := contend(ctx, w, workers, lockTurn, oneLock)
	return float64(s.counter.n.Load()-before) / (t.rate * lockTurn.Seconds()), err
}

// middle is the median of each figure.
func middle(turns []lockTimes) lockTimes {
	of := func(pick func(t lockTimes) float64) float64 {
		v := make([]float64, len(turns))
		for i, t := range turns {
			v[i] = pick(t)
		}
		return median(v)
	}
	return lockTimes{
		rate: of(func(t lockTimes) float64 { return t.rate }),
		p50:  time.Duration(of(func(t lockTimes) float64 { return float64(t.p50) })),
		p99:  time.Duration(of(func(t lockTimes) float64 { return float64(t.p99) })),
		max:  time.Duration(of(func(t lockTimes) float64 { return float64(t.max) })),

		fewest:   int(of(func(t lockTimes) float64 { return float64(t.fewest) })),
		most:     int(of(func(t lockTimes) float64 { return float64(t.most) })),
		requests: of(func(t lockTimes) float64 { return t.requests }),
	}
}

func rates(turns []lockTimes, pick func([]float64) float64) float64 {
	v := make([]float64, len(turns))
	for i, t := range turns {
		v[i] = t.rate
	}
	return pick(v)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func orDash(v float64) string {
	if v == 0 {
		return "–"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
}
