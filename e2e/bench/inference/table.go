package inference

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Condition is what clients do, whatever the document is.
type Condition struct {
	Name string
	Config
	// Many says that manyDocuments repeats it.
	Many bool
}

// Conditions are those of the table.
func Conditions() []Condition {
	list := fewWorkers()
	for _, looks := range []float64{0, 0.1, 0.5} {
		for _, workers := range []int{2, 16, 64} {
			list = append(list, Condition{Name: fmt.Sprintf("%d workers, %.0f %% looks", workers, 100*looks), Config: busy(workers, looks),
				Many: workers == 16 && looks != 0.1})
		}
	}
	for _, h := range []struct {
		name string
		set  func(c *Condition)
	}{
		{"seconds to think", func(c *Condition) { c.Think, c.Pause = 2*time.Second, 2*time.Second }},
		{"seconds to think, 50 % looks", func(c *Condition) { c.Think, c.Pause, c.Looks = 2*time.Second, 2*time.Second, 0.5 }},
		{"seconds to think, four that only look", func(c *Condition) {
			c.Think, c.Pause, c.Watchers, c.Watch, c.Many = 2*time.Second, 2*time.Second, 4, 50*time.Millisecond, true
		}},
		{"a slow engine", func(c *Condition) { c.Trip = 20 * time.Millisecond }},
		{"a slow engine, 50 % looks", func(c *Condition) { c.Trip, c.Looks = 20*time.Millisecond, 0.5 }},
		{"each write by itself", func(c *Condition) { c.Alone = true }},
		{"10 % unchanged saves", func(c *Condition) { c.Unchanged = 0.1 }},
		{"5 % given up and repeated", func(c *Condition) { c.Slow = 0.05 }},
		{"20 % written again from memory", func(c *Condition) { c.Kept = 0.2 }},
		{"10 % looks", func(c *Condition) { c.Looks = 0.1 }},
		{"10 % looks, a trace for each piece of work", func(c *Condition) { c.Looks, c.Traces = 0.1, WorkTraces }},
		{"the same, 20 % written again, 5 % given up", func(c *Condition) { c.Looks, c.Kept, c.Slow, c.Traces = 0.1, 0.2, 0.05, WorkTraces }},
		{"10 % looks, a trace for four workers", func(c *Condition) { c.Looks, c.Traces = 0.1, TeamTraces }},
		{"10 % looks, a trace for each request", func(c *Condition) { c.Looks, c.Traces = 0.1, CallTraces }},
		{"no document at first", func(c *Condition) { c.Absent, c.Rounds = true, 5 }},
		{"no document at first, parts", func(c *Condition) { c.Absent, c.Parts, c.Rounds = true, true, 5 }},
		{"no document at first, 50 % looks", func(c *Condition) { c.Absent, c.Looks, c.Rounds = true, 0.5, 5 }},
		{"parts", func(c *Condition) { c.Parts, c.Many = true, true }},
		{"parts of dialogs", func(c *Condition) { c.Parts, c.Dialogs = true, true }},
		{"forms", func(c *Condition) { c.Forms = true }},
		{"seconds to think, four that only look with another program", func(c *Condition) {
			c.Think, c.Pause, c.Watchers, c.Watch, c.Programs = 2*time.Second, 2*time.Second, 4, 50*time.Millisecond, Viewers
		}},
		{"forms that another program saves", func(c *Condition) { c.Forms, c.Programs = true, Savers }},
		{"forms, a trace for each piece of work", func(c *Condition) { c.Forms, c.Traces = true, WorkTraces }},
	} {
		c := Condition{Name: "16 workers, " + h.name, Config: busy(16, 0)}
		h.set(&c)
		list = append(list, c)
	}
	return slices.Concat(list, mirrors(), manyDocuments(list))
}

// manyDocuments are some of the conditions for an index with documents that are changed 20 times each, or twice by each worker.
func manyDocuments(conditions []Condition) (list []Condition) {
	for _, c := range conditions {
		if c.Many {
			c.Name = "many documents, " + c.Name
			c.Rounds = max(2, 20/c.Workers)
			c.Documents = 320 / (c.Rounds * c.Workers)
			list = append(list, c)
		}
	}
	return list
}

// mirrors are the conditions of an index that mirrors a database, and of clients that write from what searches find. There is a refresh now
// and then, or searches see everything at once.
func mirrors() (list []Condition) {
	for _, refresh := range []time.Duration{0, 50 * time.Millisecond, time.Second} {
		for _, threads := range []int{1, 4, 16} {
			c := Condition{Name: fmt.Sprintf("mirror, %d threads, 30 %% looks, refresh %v", threads, refresh), Config: busy(threads, 0.3)}
			c.Mirror, c.Refresh = true, refresh
			list = append(list, c)
		}
		if refresh == 0 {
			continue // searches are reads then, of which there are rows already
		}
		for _, workers := range []int{1, 2, 16} {
			c := Condition{Name: fmt.Sprintf("%d workers that search, 10 %% looks, refresh %v", workers, refresh), Config: busy(workers, 0.1)}
			c.Searches, c.Refresh = true, refresh
			list = append(list, c)
		}
	}
	return list
}

const fast = 5 * time.Millisecond

// busy are workers that think for a moment and pause for a moment.
func busy(workers int, looks float64) Config {
	return Config{Workers: workers, Looks: looks, Think: fast, Pause: fast}
}

// fewWorkers are the conditions of one worker or two: then a read that changes nothing is a large part of all reads.
func fewWorkers() []Condition {
	withPrograms := func(c Condition) Condition {
		c.Name, c.Programs = c.Name+" with another program", Viewers
		return c
	}
	parts := Condition{Name: "1 worker, parts", Config: busy(1, 0)}
	parts.Parts = true
	watched := Condition{Name: "1 worker, one that only looks", Config: busy(1, 0)}
	watched.Watchers, watched.Watch = 1, fast
	fourWatch := Condition{Name: "2 workers, seconds to think, four that only look", Config: Config{
		Workers: 2, Think: 2 * time.Second, Pause: 2 * time.Second, Watchers: 4, Watch: time.Second / 2}}
	eager := Condition{Name: "2 workers, seconds to think, each reads again at once", Config: Config{
		Workers: 2, Think: 2 * time.Second, Pause: time.Millisecond}}
	eagerWatched := Condition{Name: "2 workers, the same, one that only looks", Config: eager.Config}
	eagerWatched.Watchers, eagerWatched.Watch = 1, 2*time.Second
	roles := watched
	roles.Name, roles.Roles = "1 worker in sixteen roles, one that only looks", 16
	many := func(c Condition) Condition {
		c.Many = true
		return c
	}
	return []Condition{
		{Name: "1 worker, 10 % looks", Config: busy(1, 0.1)}, parts, many(watched), fourWatch, many(eager), many(eagerWatched), roles,
		many(Condition{Name: "1 worker, 50 % looks", Config: busy(1, 0.5)}),
		withPrograms(watched), withPrograms(fourWatch), withPrograms(eagerWatched),
	}
}

// Options say how much is simulated.
type Options struct {
	// Shapes and Conditions are those whose names contain one of these; none is all, but for the vague documents.
	Shapes, Conditions []string
	// Changes is how many each run makes, at least, and Seeds how many runs each row is made of.
	Changes, Seeds int
	// Base is what all runs have in common.
	Base Config
}

// Table makes the experiments and prints a row for each shape under each condition, and their sums.
func Table(out io.Writer, o Options) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "condition\tshape\tchanges\tlost\tinvented\tin the end\trefused\twrong\tof these silent\tright, said ambiguous\t")
	shapes := Shapes()
	if len(o.Shapes) > 0 {
		shapes = append(shapes, VagueShapes()...)
	}
	for _, c := range Conditions() {
		if !named(c.Name, o.Conditions) {
			continue
		}
		all := &Tally{}
		for _, s := range shapes {
			if !named(s, o.Shapes) || c.Absent && (s == "stock" || s == "votes") { // nobody makes such a document by a sum
				continue
			}
			sum, err := o.run(c, s)
			if err != nil {
				return err
			}
			row(t, c.Name, s, sum)
			all.Add(sum)
		}
		row(t, c.Name, "all", all)
	}
	return t.Flush()
}

func named(name string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(name, p) {
			return true
		}
	}
	return len(parts) == 0
}

// run makes a row.
func (o *Options) run(c Condition, shape string) (*Tally, error) {
	sum := &Tally{}
	run := c.Config
	run.Shape, run.Rank = shape, o.Base.Rank
	run.Rounds = cmp.Or(c.Rounds, (o.Changes+c.Workers-1)/c.Workers)
	runs := o.Seeds * max(1, o.Changes/(run.Rounds*run.Workers*max(1, run.Documents)))
	for seed := range runs {
		run.Seed = uint64(seed)
		t, err := Run(run)
		if err != nil {
			return nil, err
		}
		sum.Add(t)
	}
	return sum, nil
}

func row(out io.Writer, condition, shape string, t *Tally) {
	fmt.Fprintf(out, "%s\t%s", condition, shape)
	for _, n := range []int{t.Changes, t.Lost, t.Invented, t.Lasting, t.Refused, t.Wrong, t.Silent, t.Doubts} {
		fmt.Fprintf(out, "\t%d", n)
	}
	fmt.Fprintln(out, "\t")
}
