package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// contender is a proxy that the experiment measures.
type contender struct {
	name  string
	start func(ctx context.Context, dir, upstream string) (*process, error)
}

// figures are one contender's, over all rounds.
type figures struct {
	cpu      []float64 // µs of the proxy's processor time a request, one a round
	rate     []float64 // requests a second
	p50, p99 []float64 // µs
	rss      int64     // bytes, the largest seen
}

// baseline is the contender that the ratios are relative to.
const baseline = "fasthttp forwarder"

// passthrough measures the processor time that each proxy spends on a forwarded request. The contenders take turns, so
// that what else the machine does falls on all of them.
func passthrough(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("passthrough", flag.ContinueOnError)
	rounds := fs.Int("rounds", 5, "how often each contender is measured")
	each := fs.Duration("for", 2*time.Second, "how long one measurement takes")
	clients := fs.Int("clients", 32, "connections, each with one request at a time")
	only := fs.String("only", "", "measure only contenders whose name contains this, and the baseline")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	stub, err := startSelf(ctx, "serve-stub")
	if err != nil {
		return err
	}
	defer stub.end()

	list, missing := contenders(*only)
	results := make(map[string]*figures)
	for round := range *rounds {
		for i := range list {
			c := list[(i+round)%len(list)]
			m := measurement{dir: filepath.Join(dir, fmt.Sprintf("%d-%d", round, i)), upstream: stub.addr, clients: *clients, each: *each}
			if results[c.name] == nil {
				results[c.name] = &figures{}
			}
			if err := m.of(ctx, c, results[c.name]); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	printTable(out, list, results)
	tellMissing(out, missing)
	return ctx.Err()
}

// measurement is the setting of one turn.
type measurement struct {
	dir      string
	upstream string
	clients  int
	each     time.Duration
}

// of starts a contender, warms it up, and adds one turn's figures.
func (m measurement) of(ctx context.Context, c contender, f *figures) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	p, err := c.start(ctx, m.dir, m.upstream)
	if err != nil {
		return err
	}
	defer p.end()
	put := []step{{request: smallPut(p.addr), body: []byte(stubBody)}}
	return m.turn(ctx, p, &steps{addr: p.addr, clients: m.clients, opening: noSteps, cycle: func(int) []step { return put }}, f)
}

// turn warms a process up and adds one turn's figures.
func (m measurement) turn(ctx context.Context, p *process, l *steps, f *figures) error {
	if _, err := l.run(ctx, m.each/4); err != nil {
		return err
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	s, err := l.run(ctx, m.each)
	if err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	f.cpu = append(f.cpu, micros(after-before)/float64(s.requests))
	f.rate = append(f.rate, float64(s.requests)/s.elapsed.Seconds())
	f.p50 = append(f.p50, micros(s.p50))
	f.p99 = append(f.p99, micros(s.p99))
	f.rss = max(f.rss, p.rss())
	return nil
}

func printTable(out io.Writer, list []contender, results map[string]*figures) {
	base := 0.0
	if f := results[baseline]; f != nil {
		base = median(f.cpu)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "proxy\tCPU µs/request\tleast–most\t× "+baseline+"\trequests/s\tp50 µs\tp99 µs\tRSS MiB")
	for _, c := range list {
		f := results[c.name]
		cpu := median(f.cpu)
		fmt.Fprintf(w, "%s\t%.2f\t%.2f–%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.1f\n", c.name, cpu, slices.Min(f.cpu), slices.Max(f.cpu),
			cpu/base, median(f.rate), median(f.p50), median(f.p99), float64(f.rss)/(1<<20))
	}
	_ = w.Flush()
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func processors() int { return runtime.GOMAXPROCS(0) }
