package session

import (
	"slices"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/rank"
	"optimist/internal/viewcache"
)

// candidate is a revision that a client may have made its change from.
type candidate struct {
	rank.Candidate
	action choice.Action // TakeRead, TakeView or TakePast
	order  uint64
	body   *viewcache.Body // what the client has seen
}

func candidateOf(a choice.Action, s *viewcache.Sight, b *viewcache.Body) candidate {
	c := candidate{action: a, order: s.Order, body: b}
	c.Revision = doc.Revision{Numbers: s.Numbers, Version: s.Version, Source: b.Bytes()}
	c.Digest, c.Changes = b.Known()
	return c
}

// ranking is the question from which candidate a write was made. It stays as it is when the shard is unlocked.
type ranking struct {
	candidates []candidate // oldest first
	sent       rank.Sent
}

// ranking asks about these reads and this history of the entry, and about its view if several clients share the session.
func (t *selection) ranking(e *viewcache.Entry, reads []viewcache.Read, past []viewcache.Past) *ranking {
	return &ranking{candidates: t.candidates(e, reads, past), sent: rank.Sent{
		Body: t.Sent, Part: t.Part, Marks: t.s.compare.Marks, Quiet: e.Crowd.IsQuiet(), Alone: e.Crowd.Alone(),
		Misled: t.readInTrace && !t.traceTells, Sums: t.s.compare.Sums, Keys: t.s.compare.Keys,
		Patterns: t.s.habits.Known(t.sess, t.k.Ref.Index),
	}}
}

// candidates returns the revisions that may be the base, oldest first.
func (t *selection) candidates(e *viewcache.Entry, reads []viewcache.Read, past []viewcache.Past) []candidate {
	list := make([]candidate, 0, len(past)+len(reads)+1)
	for i := range past {
		if p := &past[i]; p.Order <= t.Before {
			c := candidateOf(choice.TakePast, &p.Sight, p.SentBody)
			c.Spent, c.View, c.Elsewhere = true, p.SentBody != p.StoredBody, t.readInTrace
			list = append(list, c)
		}
	}
	own := slices.ContainsFunc(reads, func(r viewcache.Read) bool { return r.IsOf(t.sess.Program()) })
	for i := range reads {
		c := candidateOf(choice.TakeRead, &reads[i].Sight, reads[i].Body)
		c.Spent = t.Part && reads[i].Spent // a whole document may come from another client that has made this read
		c.Elsewhere = t.readInTrace && !slices.Contains(e.Traced, viewcache.TracedRead{Trace: t.sess.Trace(), Numbers: c.Numbers})
		c.Foreign = own && reads[i].IsOfOthers(t.sess.Program())
		list = append(list, c)
	}
	if v := &e.View; v.Set && (e.Shared || v.Absent || len(reads) == 0) {
		c := candidateOf(choice.TakeView, &v.Sight, v.SentBody)
		c.Spent, c.View, c.Elsewhere = len(reads) > 0, v.SentBody != v.StoredBody, t.readInTrace
		list = append(list, c)
	}
	newest := uint64(0) // when a client last saw a document
	for i := range list {
		if list[i].Known() {
			newest = max(newest, list[i].order)
		}
	}
	for i := range list {
		list[i].Gone = newest > 0 && !list[i].Known() && list[i].order > newest
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case a.Gone && !b.Gone:
			return 1
		case b.Gone && !a.Gone:
			return -1
		}
		return a.Numbers.Compare(b.Numbers)
	})
	return list
}

// rank finds the likeliest candidate, and takes it if it is still there. The lock isn't held while candidates are compared.
func (t *selection) rank(r *ranking, b *Base) (taken bool) {
	ranked, made := make([]rank.Candidate, len(r.candidates)), make([]viewcache.Digested, len(r.candidates))
	for i := range ranked {
		ranked[i] = r.candidates[i].Candidate
	}
	likeliest := t.s.o.Rank(ranked, r.sent)
	for i := range ranked {
		made[i] = viewcache.Digested{Body: r.candidates[i].body, Before: r.candidates[i].Digest, Digest: ranked[i].Digest}
	}
	return t.pick(&r.candidates[likeliest.Best], made, &likeliest, b)
}

// pick takes the likeliest candidate c if it is still there, and keeps the digests that were made meanwhile.
func (t *selection) pick(c *candidate, made []viewcache.Digested, likeliest *rank.Choice, b *Base) (taken bool) {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	e := t.sh.Get(t.k, t.ix.Gone(), t.now)
	if e == nil {
		return false
	}
	if !t.s.dryRun {
		t.sh.KeepDigests(e, made)
	}
	// If a client is alone, and reads before it writes, its read is certainly the base.
	d := choice.Decision{Action: c.action, Ambiguous: likeliest.Ambiguous && (c.action != choice.TakeRead || e.Shared)}
	switch c.action {
	case choice.TakeRead:
		d.Read = viewcache.Find(e.Reads, c.Numbers)
	case choice.TakePast:
		d.Read = slices.IndexFunc(e.Past, func(p viewcache.Past) bool { return p.Order == c.order && p.Numbers == c.Numbers })
	case choice.TakeView:
		if !e.View.Set || e.View.Order != c.order {
			d.Read = -1
		}
	}
	if d.Read < 0 {
		t.sh.Settled(e)
		return false
	}
	if !t.s.dryRun {
		e.Shared = e.Shared || c.action == choice.TakePast // the view is another client's
		t.learn(e, likeliest)
	}
	t.reserve(e, d, b)
	return true
}

// learn notes what the choice has shown of the document's clients, and of the index.
func (t *selection) learn(e *viewcache.Entry, c *rank.Choice) {
	t.s.habits.Learn(t.sess, t.k.Ref.Index, c)
	e.Crowd.Lean(c.Lean)
	if c.Traces != rank.TraceUnknown {
		t.ix.Traced(t.sess.Network(), c.Traces == rank.TraceTells)
	}
}

// Combined notes that the write which left the revision n held the changes of several clients.
func (s *Store) Combined(sess Session, ref doc.Ref, n doc.Numbers, changes int) {
	if changes > 1 && n.Known() && !s.dryRun {
		k := viewcache.KeyOf(sess, ref)
		sh, e, gone, _ := s.open(k)
		defer sh.mu.Unlock()
		sh.DocumentOf(k, e, gone).Find(n).NoteChanges(changes)
	}
}
