package inference

import (
	"errors"

	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/session"
)

// lane is where the guarded writes of the document wait for each other, as in the product: one leads, and when it ends, the next takes all
// that wait by then into one write with its own. Parts go one by one.
type lane struct {
	led     bool
	waiting []*request
	last    doc.Revision // what the last write left, if somebody waited for it; without numbers: not known
}

// write is what becomes of a write that has its base.
func (r *request) write(p *process) {
	x, b := r.proxy, r.base
	defer x.ended()
	if b.Kind == session.KindNone || b.Kind == session.KindLost || r.overrides(b) {
		r.pass(p, b)
		return
	}
	if b.OnlyGuards() {
		r.guard(p, b)
		return
	}
	sent, err := r.made(b.View)
	if err != nil {
		r.refuse(b, err)
		return
	}
	merger := x.merger
	if b.Guessed {
		merger = merger.Guessing()
		if r.part {
			merger = merger.OfParts()
		}
	}
	if b.Kind == session.KindAbsent && !r.part {
		merger = merger.AfterCreation(b.Made)
	}
	r.doc = intent.Document{Sent: sent, Merger: merger, Base: intent.Base{
		Numbers: b.Numbers, View: b.View, Absent: b.Kind == session.KindAbsent,
		Stored: b.Kind != session.KindView || string(b.View) == string(b.Stored),
	}}
	if x.alone {
		x.lead(p, []*request{r})
	} else if r.wait(p) {
		if r.left {
			b.Release()
		} else {
			x.lead(p, x.gather(r))
		}
		x.next()
	}
	p.sleep(x.w.about(x.trip / 2))
	b.NoteAnswer()
}

// wait waits for the turn in the lane. It reports whether the request leads; otherwise it was done with another one.
func (r *request) wait(p *process) (leads bool) {
	l := &r.proxy.lane
	if !l.led {
		l.led = true
		return true
	}
	r.turn = p
	l.waiting = append(l.waiting, r)
	p.park()
	return !r.ended
}

// gather returns the requests that go in one write with r.
func (x *proxy) gather(r *request) []*request {
	batch, left := []*request{r}, x.lane.waiting[:0]
	for _, o := range x.lane.waiting {
		switch {
		case r.part || o.left:
			left = append(left, o)
		default:
			batch = append(batch, o)
		}
	}
	x.lane.waiting = left
	return batch
}

// next gives the lane to the next that waits.
func (x *proxy) next() {
	l := &x.lane
	if len(l.waiting) == 0 {
		l.led, l.last = false, doc.Revision{}
		return
	}
	r := l.waiting[0]
	l.waiting = l.waiting[1:]
	x.w.wake(r.turn)
	r.turn = nil // it leads
}

// lead has a batch written. The first try is from what the lane's last write left, or under the newest base's guard. Every later one is
// from what the engine has.
func (x *proxy) lead(p *process, batch []*request) {
	cur := x.start(p, batch)
	for {
		if !cur.Known() && len(batch) > 1 { // creations share no write
			for _, r := range batch {
				x.lead(p, []*request{r})
			}
			return
		}
		body, open, read := x.fold(batch, cur)
		if batch = open; len(batch) == 0 {
			return
		}
		if read {
			p.sleep(x.w.about(x.trip))
			cur = x.engine.Revision
			continue
		}
		x.delay(p)
		before := x.engine.Revision
		if body == nil && cur.Numbers == before.Numbers || body != nil && x.engine.put(body, cur.Numbers) {
			x.settle(batch, before)
			return
		}
		p.sleep(x.w.about(x.trip))
		cur = x.engine.Revision
	}
}

// settle ends the writes of a batch. before is the revision that they were made from.
func (x *proxy) settle(batch []*request, before doc.Revision) {
	changes := 0
	for _, r := range batch {
		if !r.draft.Unchanged {
			changes++
		}
	}
	for _, r := range batch {
		r.acknowledge(before, x.engine.Revision)
		before.Source = r.draft.Body
	}
	x.store.Combined(sessionOf(batch[0].marks), x.ref, x.engine.Numbers, changes)
	if x.lane.last = (doc.Revision{}); len(x.lane.waiting) > 0 {
		x.lane.last = x.engine.Revision
	}
	x.end(batch)
}

// start returns the revision that the first try is made from.
func (x *proxy) start(p *process, batch []*request) doc.Revision {
	b := batch[0].base
	last := x.lane.last
	switch {
	case last.Known() && !batch[0].part:
		return last
	case last.Known() && last.SeqNo > b.Numbers.SeqNo:
		p.sleep(x.w.about(x.trip))
		return x.engine.Revision
	}
	cur := doc.Revision{Numbers: b.Numbers, Source: b.Stored}
	for _, r := range batch[1:] {
		if o := r.base; o.Stored != nil && o.Numbers.SeqNo > cur.SeqNo {
			cur = doc.Revision{Numbers: o.Numbers, Source: o.Stored}
		}
	}
	return cur
}

// fold makes one document of cur and all changes; nil if they change nothing. What can't be merged is refused. read says that the current
// revision has to be read first.
func (x *proxy) fold(batch []*request, cur doc.Revision) (body []byte, open []*request, read bool) {
	for _, r := range batch {
		if r.part && r.doc.Base.Absent && cur.Source != nil {
			r.doc.Sent, _ = on(nil, r.sent) // an upsert is for the case that there is no document
		}
		draft, err := r.doc.Next(cur)
		if errors.Is(err, intent.ErrUnread) {
			return nil, batch, true
		}
		if err != nil {
			r.refuse(r.base, err)
			x.end([]*request{r})
			continue
		}
		r.draft = draft
		if draft.Unchanged {
			r.draft.Body = cur.Source
		} else {
			body = draft.Body
			cur = doc.Revision{Source: body}
		}
		open = append(open, r)
	}
	return body, open, false
}

// end wakes those whose changes went in another one's write.
func (x *proxy) end(batch []*request) {
	for _, r := range batch {
		if r.ended = true; r.turn != nil {
			x.w.wake(r.turn)
		}
	}
}

// acknowledge ends a write of a document. before is the document that its change was merged into, and after what the engine holds now.
func (r *request) acknowledge(before, after doc.Revision) {
	b := r.base
	x, sent := r.proxy, r.doc.Sent
	x.tally.judge(&verdict{x.merger, r.truth, before.Source, r.draft.Body, b.Ambiguous || r.draft.Echo})
	told := after.Numbers
	if string(after.Source) != string(sent) && b.Numbers.Known() {
		told = b.Numbers
	}
	b.Commit(session.Ack{Stored: after, Sent: sent, AnswerNumbers: told, Created: before.Source == nil})
}
