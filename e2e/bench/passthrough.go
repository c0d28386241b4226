package main

import (
	"context"
	"flag"
	"fmt"
	"io"
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

// passthrough measures the processor time that each proxy spends on a forwarded request.
func passthrough(ctx context.Context, s *stage, args []string, out io.Writer) error {
	m := measurement{stub: "serve-stub"}
	fs := m.flags("passthrough")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var missing []string
	m.contenders, missing = contenders(m.only)
	results, err := m.inTurns(ctx, s, []workload{{opening: nothing, cycle: smallPut}})
	if err != nil {
		return err
	}
	printTable(out, m.contenders, results[""])
	tellMissing(out, missing)
	return ctx.Err()
}

// measurement is what is measured, how often, and how long.
type measurement struct {
	stub       string // the command that is the engine
	contenders []contender
	only       string
	rounds     int
	clients    int
	each       time.Duration
}

// flags are those that say how to measure.
func (m *measurement) flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.IntVar(&m.rounds, "rounds", 5, "how often each contender is measured with each workload")
	fs.DurationVar(&m.each, "for", 2*time.Second, "how long one measurement takes")
	fs.IntVar(&m.clients, "clients", 32, "connections, each with one request at a time")
	fs.StringVar(&m.only, "only", "", "measure only contenders whose name contains this, and the baseline")
	return fs
}

// inTurns measures the contenders in turns, so that what else the machine does falls on all of them. The figures are by workload and
// contender.
func (m *measurement) inTurns(ctx context.Context, s *stage, loads []workload) (map[string]map[string]*figures, error) {
	stub, err := startSelf(ctx, m.stub)
	if err != nil {
		return nil, err
	}
	s.atEnd(stub.end)
	results := make(map[string]map[string]*figures)
	for _, w := range loads {
		results[w.name] = make(map[string]*figures)
		for _, c := range m.contenders {
			results[w.name][c.name] = &figures{}
		}
	}
	for round := range m.rounds {
		for i := range m.contenders {
			c := m.contenders[(i+round)%len(m.contenders)]
			dir, err := s.subfolder()
			if err != nil {
				return nil, err
			}
			p, err := c.start(ctx, dir, stub.addr)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			err = m.all(ctx, c, p, loads, results)
			p.end()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return results, nil
}

// all measures a contender with one workload after the other.
func (m *measurement) all(ctx context.Context, c contender, p *process, loads []workload, results map[string]map[string]*figures) error {
	for _, w := range loads {
		if err := m.turn(ctx, p, w.steps(p.addr, m.clients, c.guards()), results[w.name][c.name]); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// turn warms a process up and adds one turn's figures.
func (m *measurement) turn(ctx context.Context, p *process, l *steps, f *figures) error {
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
