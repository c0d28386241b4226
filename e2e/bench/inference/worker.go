package inference

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
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
	// vague says that little in the document tells its changes apart.
	vague bool
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

	doc   map[string]any // what it holds
	view  []byte         // of what it has read or sent
	left  int            // writes that it makes from memory
	at    marks          // of what it works at
	calls uint64
}

func (w *worker) run(p *process) {
	w.p = p
	for w.round = range w.Rounds {
		p.sleep(w.about(w.Pause))
		for w.chance(w.Looks) {
			w.proxy.search(p, w.look())
		}
		w.work()
	}
	w.proxy.working--
}

// watch looks at the document until all work is done.
func (x *proxy) watch(p *process, every time.Duration) {
	for x.working > 0 {
		p.sleep(x.w.about(every))
		x.search(p, marks{program: x.viewer})
	}
}

// call is what a request says that belongs to nothing else.
func (w *worker) call() (m marks) {
	if m.program = 1; w.Programs == NoPrograms {
		m.program = 0
	}
	switch w.Traces {
	case NoTraces:
	case TeamTraces:
		m.trace = 1 + uint64(w.worker/4)
	default:
		w.calls++
		m.trace = uint64(w.worker+1)<<32 | w.calls
	}
	return m
}

// look is what a request says that only looks.
func (w *worker) look() marks {
	m := w.call()
	m.program = w.proxy.viewer
	return m
}

// work is one read, one change and one write.
func (w *worker) work() {
	if w.Mirror {
		w.mirror()
		return
	}
	if w.left > 0 {
		w.left--
	} else {
		w.at = w.call()
		read := w.proxy.get
		if w.Searches {
			read = w.proxy.search
		}
		rev := read(w.p, w.at)
		w.view, w.left = rev.Source, 0
		if w.chance(w.Kept) {
			w.left = 2
		}
	}
	from := w.view
	if w.doc, _ = decode(w.view).(map[string]any); w.view == nil {
		w.doc = w.made()
		from = encode(w.doc)
	}
	w.p.sleep(w.about(w.Think))
	if w.Roles > 0 {
		w.worker = w.IntN(w.Roles)
	}
	if !w.chance(w.Unchanged) {
		w.edit(&w.change, w.doc)
	}
	sent := encode(w.doc)
	if w.Forms || w.Traces == CallTraces {
		w.at = w.call()
	}
	if w.Programs == Savers {
		w.at.program = 2
	}
	if w.Forms {
		w.proxy.get(w.p, w.at)
	}
	w.send(from, sent)
	w.view = sent
}

// made is a document that nobody has changed yet. All clients make the same, but for the time.
func (w *worker) made() map[string]any {
	c := change{world: newWorld(w.Seed)}
	c.now = w.now
	return w.seed(&c)
}

// changed is what an object has that another hasn't, without what both have.
func changed(from, to map[string]any) map[string]any {
	part := map[string]any{}
	for k, v := range to {
		was, there := from[k]
		inner, isObject := v.(map[string]any)
		old, wasObject := was.(map[string]any)
		switch {
		case there && bytes.Equal(encode(was), encode(v)):
		case isObject && wasObject:
			part[k] = changed(old, inner)
		default:
			part[k] = v
		}
	}
	return part
}

// show adds the fields that a dialog has besides: the first three that are no objects and no lists.
func (w *worker) show(part map[string]any) {
	shown := 0
	for _, k := range slices.Sorted(maps.Keys(w.doc)) {
		switch w.doc[k].(type) {
		case map[string]any, []any:
			continue
		}
		if shown++; shown > 3 {
			return
		}
		part[k] = w.doc[k]
	}
}

// send writes, and repeats that as long as no answer comes in time. What the worker has changed is the difference from from. A part is an
// _update with a doc, and with an upsert if the worker has found no document.
func (w *worker) send(from, sent []byte) {
	tr := &truth{view: from, sent: sent}
	var upsert []byte
	if w.Parts {
		if w.view == nil {
			upsert = sent
		}
		was, _ := decode(from).(map[string]any)
		part := changed(was, w.doc)
		if w.Dialogs {
			w.show(part)
		}
		sent = encode(part)
		tr.sent, _ = on(from, sent)
	}
	for {
		if w.Slow == 0 {
			w.proxy.put(w.p, sent, upsert, w.at, tr)
			w.p.park()
			return
		}
		r := w.proxy.put(nil, sent, upsert, w.at, tr)
		for waited := time.Duration(0); waited < patience && !r.done; waited += patience / 10 {
			w.p.sleep(patience / 10)
		}
		if r.done {
			return
		}
		r.left = true
	}
}
