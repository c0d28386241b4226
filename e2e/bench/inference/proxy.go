package inference

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/intent"
	"optimist/internal/rank"
	"optimist/internal/session"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// engine is one document in memory, whose writes can be guarded.
type engine struct{ doc.Revision }

// put writes body if the document is at the revision that guard names, or isn't there, where it names none.
func (e *engine) put(body []byte, guard doc.Numbers) bool {
	if guard != e.Numbers {
		return false
	}
	e.Revision = doc.Revision{Numbers: doc.Numbers{SeqNo: e.SeqNo + 1, PrimaryTerm: 1}, Version: e.Version + 1, Source: body}
	return true
}

// proxy does what optimist does with a read and with a write, on the store, the ranking and the merge of the product.
type proxy struct {
	w      *world
	shape  *shape
	engine engine
	ref    doc.Ref // of the document
	store  *session.Store
	rules  []merge.PathRule
	merger *merge.Merger
	trip   time.Duration // to the engine and back, on average
	slow   float64       // how many writes the engine is slow with
	parts  bool          // clients send what they have changed

	compare session.Comparison // as the rules say
	tally   *Tally
	parked  []*process // writes that wait for a base
	lane    lane

	alone  bool             // see Config
	viewer identity.Program // which only looks

	row       databaseRow
	refreshes bool         // the index is refreshed now and then
	found     doc.Revision // what a search finds then

	draining bool       // the process is about to end: requests wait outside for the next one
	underway int        // requests inside
	outside  []*process // that wait

	working   int // workers that haven't made all of their changes
	documents int // so far
}

const index = "shop"

func newProxy(w *world, c *Config, s *shape) (*proxy, error) {
	if _, err := merge.New(merge.Sent, s.rules); err != nil {
		return nil, err
	}
	rules := s.rules
	if c.Mirror {
		rules = nil // nobody adds up what the database has added up
	}
	p := &proxy{w: w, shape: s, rules: rules, trip: cmp.Or(c.Trip, trip), slow: c.Slow, alone: c.Alone, parts: c.Parts}
	switch c.Programs {
	case Viewers:
		p.viewer = 2
	case Savers:
		p.viewer = 1
	}
	p.compare = p.comparison()
	p.restart(c)
	return p, nil
}

// comparison is what the rules say about which read a write comes from.
func (x *proxy) comparison() (c session.Comparison) {
	var names []string
	for _, r := range x.rules {
		c.Sums = c.Sums || r.Strategy == merge.Sum
		if r.Strategy == merge.ByKey {
			names = append(names, r.Key)
		}
	}
	c.Keys = rank.NewKeys(names)
	return c
}

// restart begins with a store that knows nothing.
func (x *proxy) restart(c *Config) {
	x.merger, _ = merge.New(merge.Sent, x.rules) // which newProxy has checked
	closest := c.Rank
	if closest == nil {
		closest = rank.Likeliest
	}
	start := time.Unix(0, 0)
	x.store = session.New(session.Options{
		Rank: func(cs []rank.Candidate, sent rank.Sent) rank.Choice {
			x.tally.Ranked++
			return closest(cs, sent)
		},
		Left:   func(ctx context.Context) bool { return ctx.(*request).left },
		Now:    func() time.Time { return start.Add(x.w.now) },
		Memory: c.Memory,
		Notes:  c.notes,
	})
	x.store.Wrote(session.Credentials{}, index)
}

// trip is how long the engine takes for a request, with the way to it and back, on average.
const trip = time.Millisecond

// marks are what a request says of itself: its trace, and its program. 0: nothing.
type marks struct {
	trace   uint64
	program identity.Program
}

// sessionOf is everybody's session, with the marks of a request.
func sessionOf(m marks) session.Session {
	var t session.Trace
	binary.BigEndian.PutUint64(t[:], m.trace)
	return identity.Inferred(session.Credentials{}, netip.IPv4Unspecified()).In(t).By(m.program)
}

// get reads the document.
func (x *proxy) get(p *process, by marks) doc.Revision {
	x.enter(p)
	defer x.leave()
	store := x.store
	at, ticket := store.Epoch(), store.Ticket()
	p.sleep(x.w.about(x.trip / 2))
	rev := x.engine.Revision
	p.sleep(x.w.about(x.trip / 2))
	store.ReadWithTicket(sessionOf(by), x.ref, rev, at, ticket)
	return rev
}

// search is get for what a search finds.
func (x *proxy) search(p *process, by marks) doc.Revision {
	if !x.refreshes {
		return x.get(p, by)
	}
	x.enter(p)
	defer x.leave()
	store := x.store
	at := store.Epoch()
	p.sleep(x.w.about(x.trip / 2))
	rev := x.found
	p.sleep(x.w.about(x.trip / 2))
	if rev.Known() {
		store.Found(sessionOf(by), x.ref, rev, at)
	}
	return rev
}

// enter waits for a process that takes the request.
func (x *proxy) enter(p *process) {
	for x.draining {
		x.outside = append(x.outside, p)
		p.park()
	}
	x.underway++
}

func (x *proxy) leave() { x.underway-- }

// request is one request to write, and its context.
type request struct {
	proxy  *proxy
	sent   []byte // the document, or a part of it
	part   bool
	upsert []byte // the document for the case that there is none; nil: a part doesn't make one
	marks
	truth *truth
	left  bool     // the client has given it up
	done  bool     // it has its answer
	waits *process // for the answer; nil: its client looks now and then
	slept bool     // it had to wait for its base

	base  *session.Base
	doc   intent.Document // what it wants to make of the document
	draft intent.Draft    // what it makes of it
	turn  *process        // waits for its turn in the lane
	ended bool            // in the lane

	context.Context
}

// errWaits is how the store tells that a write would have to wait: the simulator can't have its only thread wait.
var errWaits = errors.New("the write has to wait for its base")

// Err implements context.Context.
func (r *request) Err() error {
	if r.slept {
		return errWaits
	}
	return nil
}

// Done implements context.Context. It is asked for when the write is about to wait.
func (r *request) Done() <-chan struct{} {
	r.slept = true
	return over
}

var over = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Value implements context.Context.
func (*request) Value(any) any { return nil }

// put begins a write. Its client may give it up.
func (x *proxy) put(client *process, sent, upsert []byte, by marks, tr *truth) *request {
	r := &request{proxy: x, part: x.parts, sent: sent, upsert: upsert, marks: by, truth: tr, waits: client}
	x.w.start(r.run)
	return r
}

func (r *request) run(p *process) {
	x := r.proxy
	x.enter(p)
	defer x.leave()
	p.sleep(x.w.about(x.trip / 10))
	if b, ok := r.take(p); ok {
		r.base = &b
		r.write(p)
	}
	if r.done = true; r.waits != nil {
		x.w.wake(r.waits)
	}
}

// take waits for the base of the write. It is not there where the client has left.
func (r *request) take(p *process) (session.Base, bool) {
	x := r.proxy
	for {
		r.slept = false
		c := x.compare
		if r.part {
			c.On, c.Part = r.on, true
		}
		b, err := x.store.Comparing(c).Take(r, sessionOf(r.marks), x.ref, r.sent)
		switch {
		case err == nil:
			return b, true
		case !errors.Is(err, errWaits):
			return b, false
		}
		x.parked = append(x.parked, p)
		if p.park(); r.left {
			return b, false
		}
	}
}

// ended wakes those who wait for a write to end.
func (x *proxy) ended() {
	for _, p := range x.parked {
		x.w.wake(p)
	}
	x.parked = x.parked[:0]
}

// delay is the way to the engine.
func (x *proxy) delay(p *process) {
	p.sleep(x.w.about(x.trip / 2))
	if x.w.chance(x.slow) {
		p.sleep(x.w.about(2 * patience))
	}
}

// refuse ends a write that can't be done.
func (r *request) refuse(b *session.Base, err error) {
	r.proxy.tally.Refused++
	if err != nil {
		r.proxy.tally.Errors = append(r.proxy.tally.Errors, err)
	}
	b.Release()
}

// guard has the engine do what the request says under the guard of its base. What conflicts is refused.
func (r *request) guard(p *process, b *session.Base) {
	x := r.proxy
	x.delay(p)
	before := x.engine.Revision
	if !x.engine.put(r.sent, b.Numbers) {
		r.refuse(b, nil)
		return
	}
	r.doc.Sent, r.draft.Body = r.sent, r.sent
	r.acknowledge(before, x.engine.Revision)
	p.sleep(x.w.about(x.trip / 2))
	b.NoteAnswer()
}

// overrides reports whether what is sent is a part that says the same whatever its base is. That is the engine's.
func (r *request) overrides(b *session.Base) bool {
	if !r.part {
		return false
	}
	view := b.View
	if view == nil {
		view = []byte("{}")
	}
	overrides, err := r.proxy.merger.Overrides(view, r.sent)
	return overrides && err == nil
}

// made is the document that the client has made of its base.
func (r *request) made(base []byte) ([]byte, error) {
	if r.part {
		return r.on(base)
	}
	return r.sent, nil
}

// on returns what the part makes of a document; of none, what is to be there then.
func (r *request) on(base []byte) ([]byte, error) {
	if base == nil && r.upsert != nil {
		return r.upsert, nil
	}
	return on(base, r.sent)
}

// on returns what a part makes of a document; of none, it is the document.
func on(base, part []byte) ([]byte, error) {
	if base == nil {
		base = []byte("{}")
	}
	return edit.EngineMerge(base, part, tree.Limits{})
}

// pass has the engine do what the request says, without a guard.
func (r *request) pass(p *process, b *session.Base) {
	x, at := r.proxy, r.proxy.store.Epoch()
	x.delay(p)
	before := x.engine.Revision
	body, err := r.made(before.Source)
	if err != nil {
		r.refuse(b, err)
		return
	}
	x.engine.put(body, before.Numbers)
	if !r.part {
		r.doc.Sent, r.draft.Body = body, body
		r.acknowledge(before, x.engine.Revision)
		return
	}
	x.tally.judge(&verdict{x.merger, r.truth, before.Source, x.engine.Source, false})
	b.LeaveToEngine(nil) // it is in no series
	b.EngineMerged(x.engine.Revision)
	x.store.WroteForwarded(sessionOf(r.marks), x.ref, x.engine.Revision, false, at)
}
