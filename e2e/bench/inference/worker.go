package inference

import (
	"fmt"
	"time"

	"optimist/rewrite/merge"
)

// shape is a kind of document, and what applications do to it.
type shape struct {
	name  string
	rules []merge.PathRule
	seed  func(c *change) map[string]any
	// edit makes one change of the document, of which there is one for each worker and round.
	edit func(c *change, d map[string]any)
	// units has the names of numbers that are sums, and how much a change moves them; 0 is for what every change sets.
	units map[string]float64
}

// change is who makes a change, and when.
type change struct {
	*world
	worker, round int
}

// id is a name that nothing else has.
func (c *change) id() string { return fmt.Sprintf("%c%d-%d", 'a'+c.worker%26, c.worker, c.round) }

// time is the present moment as applications write it.
func (c *change) time() string {
	return time.UnixMilli(1_700_000_000_000).Add(c.now).UTC().Format("2006-01-02T15:04:05.000Z")
}

// patience is how long a client waits for an answer before it gives up and repeats its write, where clients do.
const patience = 50 * time.Millisecond

// worker is a client that reads, changes and writes.
type worker struct {
	*Config
	*shape
	change
	proxy *proxy
	p     *process

	doc  map[string]any // what it holds
	view []byte         // of what it has read or sent
	left int            // writes that it makes from memory
}

func (w *worker) run(p *process) {
	w.p = p
	for w.round = range w.Rounds {
		p.sleep(w.about(w.Pause))
		trace := 0
		if w.Traces {
			trace = 1 + w.worker*w.Rounds + w.round
		}
		for w.chance(w.Looks) {
			w.proxy.get(p, 0)
		}
		w.work(trace)
	}
}

// work is one read, one change and one write.
func (w *worker) work(trace int) {
	if w.left > 0 && !w.Traces {
		w.left--
	} else {
		rev := w.proxy.get(w.p, trace)
		w.view, w.left = rev.Source, 0
		if w.chance(w.Kept) {
			w.left = 2
		}
	}
	w.doc, _ = decode(w.view).(map[string]any)
	w.p.sleep(w.about(w.Think))
	if !w.chance(w.Unchanged) {
		w.edit(&w.change, w.doc)
	}
	sent := encode(w.doc)
	w.send(sent, trace)
	w.view = sent
}

// send writes, and repeats that as long as no answer comes in time.
func (w *worker) send(sent []byte, trace int) {
	tr := &truth{view: w.view}
	for {
		if w.Slow == 0 {
			w.proxy.put(w.p, sent, trace, tr)
			w.p.park()
			return
		}
		r := w.proxy.put(nil, sent, trace, tr)
		for waited := time.Duration(0); waited < patience && !r.done; waited += patience / 10 {
			w.p.sleep(patience / 10)
		}
		if r.done {
			return
		}
		r.left = true
	}
}
