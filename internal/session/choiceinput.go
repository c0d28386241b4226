package session

import (
	"slices"

	"optimist/internal/choice"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// choiceInput returns what choice.Choose has to know of the document. It also fills in the fields of the request that come from the entry.
func (t *selection) choiceInput(e *viewcache.Entry, f *repeat.Pending) (k choice.Input) {
	k.InFlight, k.ReadsOfEarlier = f.Any(), f.ReadsOfEarlier(t.arrived)
	k.OthersWait = f.OthersWait(t.attempt)
	var r repeat.History
	if e != nil {
		k.Reads, k.Past, k.Shared, r = t.sh.choiceReads(e), t.mayBePast(e), e.Shared, e.Repeats
		if e.View.Set {
			k.View = t.sh.choiceView(&e.View)
		}
		t.OfAnswer, t.Spent = t.Explicit.Known() && r.Named(t.Explicit), t.Explicit.Known() && e.IsSpent(t.Explicit)
	}
	t.Doubt, t.mayRepeat = nil, false
	if a := t.attempt; a != nil {
		t.Repeat, t.first, t.inDoubt = r.Find(a, t.now)
		t.mayRepeat = a.IsLookedFor() && !t.Explicit.Known() && (t.Repeat != choice.NoRepeat || f.Sends(a))
		if t.Part && t.Repeat == choice.SameSent {
			t.Repeat = choice.NoRepeat // two equal small parts are often two changes: a status is set, changed by others, and set again
		}
	}
	if t.after != nil {
		k = t.after.choiceInput()
		if t.Repeat == choice.SameSent {
			t.Repeat = choice.NoRepeat // an earlier write of the same series may have sent the same bytes
		}
	}
	if t.inDoubt != nil {
		n := t.inDoubt.Numbers()
		t.Doubt = &n
	}
	return k
}

// mayBePast reports whether the base may be in the history. It may be if something shows that several clients are at work. A client that is
// alone writes from its last read, and may take out what it has put in. So without such a sign the base isn't in the history in three
// cases: a read is outstanding, the write is a part, or the write sets the document back to what it was.
func (t *selection) mayBePast(e *viewcache.Entry) bool {
	setsBack := func(p viewcache.Past) bool {
		seen := p.SentBody.Bytes()
		return seen != nil && t.Sends(seen)
	}
	return len(e.Past) > 0 && (e.Shared || len(e.Reads) == 0 && t.Sent != nil && !t.Part && !slices.ContainsFunc(e.Past, setsBack))
}

// choiceReads returns the entry's outstanding reads for choice.Choose. They are valid until the shard is unlocked.
func (sh *shard) choiceReads(e *viewcache.Entry) []choice.Read {
	sh.reads = sh.reads[:0]
	for i := range e.Reads {
		r := &e.Reads[i]
		sh.reads = append(sh.reads, choice.Read{Numbers: r.Numbers, Order: r.Order, Doubt: r.Doubt})
	}
	return sh.reads
}

// choiceView returns a view for choice.Choose. It is valid until the shard is unlocked.
func (sh *shard) choiceView(v *viewcache.View) *choice.View {
	sh.view = choice.View{
		Numbers: v.Numbers, Answer: v.Answer, Sent: v.SentBody.Bytes(), Stored: v.SentBody == v.StoredBody, Differs: v.Difference,
		Absent: v.Absent, Order: v.Order, Doubt: v.Doubt,
	}
	return &sh.view
}
