// Package inference simulates clients whose requests don't name their base, and counts how often optimist finds the right one.
//
// Clients, time and engine are simulated. The store of the sessions, the ranking of the reads and the merge are the product's
// own. It promises nothing about the rest of a write's way.
package inference

import (
	"fmt"
	"strconv"
	"time"

	"optimist/internal/doc"
	"optimist/internal/note"
	"optimist/internal/rank"
)

// Config is one experiment. The zero value of a habit is that nobody has it.
type Config struct {
	Shape   string
	Workers int
	// Programs says which programs the clients are.
	Programs Programs
	// Roles is how many parts a worker plays, one after the other at random; 0: one.
	Roles int
	// Rounds is how many changes each worker makes.
	Rounds int
	// Documents is how many documents of the index the workers change, one after the other; 0: one. They make all their changes in each.
	Documents int
	// Think is how long a worker takes between its read and its write, and Pause how long it rests before it reads, on average.
	Think, Pause time.Duration
	// Alone says that each write goes by itself. Otherwise those that wait for each other go as one.
	Alone bool
	// Trip is how long the engine takes for a request, on average. The zero value is a millisecond.
	Trip time.Duration
	// Looks is how many of the reads are only looked at.
	Looks float64
	// Watchers are clients that do nothing but look, each as often as Watch says, on average.
	Watchers int
	Watch    time.Duration
	// Unchanged is how many writes change nothing.
	Unchanged float64
	// Slow is how many writes the engine takes so long for that their clients give up and repeat them.
	Slow float64
	// Kept is how many of the documents that were read are changed and written three times.
	Kept float64
	// Absent says that there is no document at first: whoever finds none makes one.
	Absent bool
	// Parts says that clients send, as an _update does, only what they have changed. With Dialogs they send three fields besides, as a
	// dialog with a few fields does.
	Parts, Dialogs bool
	// Forms says that the read is one piece of work, and the write another one, which begins with a read only to see whether the
	// document is there.
	Forms bool
	// Mirror says that the workers keep the document in a database, and write what that holds, one after the other. There is no document in
	// the index at first.
	Mirror bool
	// Searches says that workers read by searches. What is only looked at is always searched for.
	Searches bool
	// Refresh is how long it takes, on average, until searches see what was written. The zero value is that they see it at once.
	Refresh time.Duration
	// Traces says which requests carry the id of a trace.
	Traces Traces
	// Seed makes the run another one.
	Seed uint64
	// Memory bounds what the store holds, in bytes. The zero value is the product's default.
	Memory int64
	// Rank takes the place of the product's ranking.
	Rank func(cs []rank.Candidate, sent rank.Sent) rank.Choice

	notes note.Notebook // that processes leave to each other; nil: none
}

// Programs says which programs the clients are.
type Programs int

// The kinds of programs.
const (
	NoPrograms Programs = iota // nobody says that
	Viewers                    // another program only looks
	Savers                     // one program reads, and another one writes
)

// Traces says which requests carry the id of a trace, and the same one.
type Traces int

// The kinds of traces.
const (
	NoTraces   Traces = iota
	WorkTraces        // a read and what is written from it; a read that is only looked at has a trace of its own
	TeamTraces        // all requests of four workers
	CallTraces        // each request has a trace of its own
)

// Run makes the experiment.
func Run(c Config) (*Tally, error) {
	x, err := begin(&c)
	if err != nil {
		return nil, err
	}
	all := &Tally{}
	for n := range max(1, c.Documents) {
		if n > 0 {
			x.change(&c)
		}
		x.w.run()
		x.tally.end(x.engine.Source)
		all.Add(x.tally)
	}
	return all, nil
}

// begin has the workers of an experiment begin.
func begin(c *Config) (*proxy, error) {
	s, err := shapeOf(c.Shape)
	if err != nil {
		return nil, err
	}
	w := newWorld(c.Seed)
	x, err := newProxy(w, c, s)
	if err != nil {
		return nil, err
	}
	x.change(c)
	return x, nil
}

// change has the workers of an experiment begin with the next document.
func (x *proxy) change(c *Config) {
	w, s := x.w, x.shape
	x.documents++
	x.ref = doc.Ref{Index: index, ID: strconv.Itoa(x.documents)}
	x.engine, x.tally = engine{}, &Tally{units: s.units}
	if !c.Absent {
		x.engine.Revision = doc.Revision{
			Numbers: doc.Numbers{PrimaryTerm: 1}, Version: 1, Source: encode(s.seed(&change{world: w})),
		}
	}
	if c.Mirror {
		x.row.doc, x.engine.Revision = x.engine.Source, doc.Revision{}
		w.now += time.Hour // nobody has anything in hand from before the start
	}
	x.tally.ideal = x.engine.Source
	for i := range c.Workers {
		wk := &worker{Config: c, shape: s, change: change{world: w, worker: i}, proxy: x}
		w.start(wk.run)
	}
	x.found = x.engine.Revision
	x.working, x.refreshes = c.Workers, c.Refresh > 0
	if x.refreshes {
		w.start(func(p *process) { x.refresh(p, c.Refresh) })
	}
	for range c.Watchers {
		w.start(func(p *process) { x.watch(p, c.Watch) })
	}
}

// Shapes are the names of the documents, but for the vague ones.
func Shapes() []string { return shapeNames(false) }

// VagueShapes are the names of documents in which little tells their changes apart.
func VagueShapes() []string { return shapeNames(true) }

func shapeNames(vague bool) (names []string) {
	for _, s := range shapes() {
		if s.vague == vague {
			names = append(names, s.name)
		}
	}
	return names
}

func shapeOf(name string) (*shape, error) {
	for _, s := range shapes() {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no shape is called %q", name)
}
