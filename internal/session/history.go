package session

import (
	"cmp"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/rank"
)

// Where several clients share an inferred session, its entry keeps a history: what was read or written, and that no client is known
// to have in hand any more. It shows what each client has done, and by that what another has not. And it may be a base itself: of a
// client that writes again from memory, or whose read was taken for another's.

// maxPast bounds the history, and maxPastReads what was read in it.
const (
	maxPast      = 64
	maxPastReads = 16
)

// past is a revision of the history.
type past struct {
	view
	kind Kind
}

// pastCost is what one costs beyond its bodies.
const pastCost = 144

// retireRead takes out a read that was written from, and keeps it in the history.
func (sh *shard) retireRead(e *entry, i int) {
	if r := &e.reads[i]; e.shared && r.body != nil {
		sh.ref(e, r.body)
		r.body.refs++ // see freeBoth
		v := view{seen: r.seen, set: true, storedBody: r.body, sentBody: r.body}
		sh.retire(e, past{v, KindRead})
	}
	sh.removeRead(e, i)
}

// retireView takes the own view out, and keeps it in the history.
func (sh *shard) retireView(e *entry) {
	if v := &e.view; e.shared && v.set && v.sentBody != nil && v.storedBody != nil {
		sh.ref(e, v.storedBody)
		if v.sentBody == v.storedBody {
			v.sentBody.refs++ // see freeBoth
		} else {
			sh.ref(e, v.sentBody)
		}
		sh.retire(e, past{*v, KindView})
	}
	sh.clearView(e)
}

func (sh *shard) retire(e *entry, p past) {
	p.doubt, p.contradiction, p.failure = false, false, false
	if i := slices.IndexFunc(e.past, func(o past) bool { return o.numbers == p.numbers && o.sentBody == p.sentBody }); i >= 0 {
		sh.forgetPast(e, i)
	}
	e.past = append(e.past, p)
	all, reads, held := 0, 0, int64(0)
	for i := len(e.past) - 1; i >= 0; i-- {
		p := &e.past[i]
		held += int64(len(p.sentBody.data) + len(p.storedBody.data))
		if p.kind == KindRead {
			reads++
		}
		if all++; p.kind == KindRead && reads > maxPastReads || all > maxPast || held > sh.maxBody/2 {
			all--
			sh.forgetPast(e, i)
		}
	}
	sh.charge(e)
}

func (sh *shard) forgetPast(e *entry, i int) {
	sh.freeBoth(e, &e.past[i].view)
	e.past = slices.Delete(e.past, i, i+1)
}

// ageHistory forgets what was read or written too long ago to be a base. The history is in the order of when clients had no use for it any
// more, which is another one.
func (sh *shard) ageHistory(e *entry, now int64) {
	for i := len(e.past) - 1; i >= 0; i-- {
		if now-e.past[i].at >= sh.maxAge {
			sh.forgetPast(e, i)
		}
	}
}

func (sh *shard) forgetHistory(e *entry) {
	for len(e.past) > 0 {
		sh.forgetPast(e, len(e.past)-1)
	}
}

// candidate is what a client may have made its change from.
type candidate struct {
	rank.Candidate
	action choice.Action // TakeRead, TakeView or TakePast
	order  uint64
	body   *body // what the client has seen
}

func candidateOf(a choice.Action, s *seen, b *body) candidate {
	c := candidate{action: a, order: s.order, body: b}
	c.Revision = doc.Revision{Numbers: s.numbers, Version: s.version, Source: b.bytes()}
	c.Digest = b.kept()
	return c
}

// candidates are the reads, and with them the view and the history where they may be the base. They come oldest first.
func (t *taking) candidates(e *entry, reads []read) []*candidate {
	if e.patterns != nil {
		t.patterns = *e.patterns
	}
	list := make([]candidate, 0, len(reads)+len(e.past)+1)
	for i := range e.past {
		if p := &e.past[i]; p.order <= t.Before {
			c := candidateOf(choice.TakePast, &p.seen, p.sentBody)
			c.Spent, c.View, c.Elsewhere = true, p.sentBody != p.storedBody, t.traced
			list = append(list, c)
		}
	}
	for i := range reads {
		c := candidateOf(choice.TakeRead, &reads[i].seen, reads[i].body)
		c.Elsewhere = t.traced && !slices.Contains(e.traced, tracedRead{t.trace, c.Numbers})
		list = append(list, c)
	}
	if v := &e.view; e.shared && v.set {
		c := candidateOf(choice.TakeView, &v.seen, v.sentBody)
		c.Spent, c.View, c.Elsewhere = len(reads) > 0, v.sentBody != v.storedBody, t.traced
		list = append(list, c)
	}
	cs := make([]*candidate, len(list))
	for i := range list {
		cs[i] = &list[i]
	}
	slices.SortStableFunc(cs, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.PrimaryTerm, b.PrimaryTerm), cmp.Compare(a.SeqNo, b.SeqNo))
	})
	return cs
}

// rank finds the likeliest of the candidates, without the lock, and takes it if it is still there.
func (t *taking) rank(cs []*candidate, b *Base) (taken bool) {
	ranked := make([]rank.Candidate, len(cs))
	for i := range cs {
		ranked[i] = cs[i].Candidate
	}
	likeliest := t.s.o.Rank(ranked, rank.Sent{Body: t.Sent, On: t.On, Patterns: &t.patterns})
	for i := range cs {
		cs[i].Digest = ranked[i].Digest
	}
	return t.pick(cs, likeliest, b)
}

// pick takes a candidate if it is still there, and keeps the digests that were made.
func (t *taking) pick(cs []*candidate, likeliest rank.Choice, b *Base) (taken bool) {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	e := t.sh.get(t.k, t.ix.Gone(), t.now)
	if e == nil {
		return false
	}
	if !t.s.dryRun {
		t.sh.keepDigests(e, cs)
	}
	c := cs[likeliest.Best]
	d := choice.Decision{Action: c.action, Ambiguous: likeliest.Ambiguous}
	switch c.action {
	case choice.TakeRead:
		d.Read = find(e.reads, c.Numbers)
	case choice.TakePast:
		d.Read = slices.IndexFunc(e.past, func(p past) bool { return p.order == c.order && p.numbers == c.Numbers })
	case choice.TakeView:
		if !e.view.set || e.view.order != c.order {
			d.Read = -1
		}
	}
	if d.Read < 0 {
		t.sh.settled(e)
		return false
	}
	if likeliest.Certain && !t.s.dryRun {
		if e.patterns == nil {
			e.patterns = new(rank.Patterns)
		}
		e.patterns.Add(likeliest.Pattern)
	}
	t.reserve(e, d, b)
	return true
}

// keepDigests keeps the digests that were made of an entry's candidates, as far as they are worth their memory: of a document of many
// small values one is several times as large as the document.
func (sh *shard) keepDigests(e *entry, cs []*candidate) {
	held := int64(0)
	for i := range cs {
		held += cs[i].body.kept().Size()
	}
	for i := len(cs) - 1; i >= 0; i-- {
		b, d := cs[i].body, cs[i].Digest
		if b == nil || d == nil || b.refs == 0 || b.digest != nil || held+d.Size() > sh.maxBody/2 {
			continue
		}
		b.digest, b.maker = d, e.holder
		held += d.Size()
		sh.bytes += d.Size()
		sh.holders.charge(e.holder, d.Size())
	}
}
