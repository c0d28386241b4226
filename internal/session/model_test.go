package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
	"optimist/internal/rank"
	"optimist/internal/viewcache"
)

// model is a Store as simple as can be: no bound, no sharing, no blind writers, one list per session and document.
type model struct {
	now     time.Duration
	order   int
	dropped map[string]int // by index: the moment of its last drop
	moment  int
	known   map[viewcache.Key]*modelEntry
	starts  map[string]time.Duration // of indices without writes
	writes  map[string]bool
}

type modelEntry struct {
	epoch   int
	reads   []modelBase // one per revision, by order
	view    *modelBase
	marker  Reason
	flights []bool // of each write in flight: whether a read is reserved

	newestRead, newestView int
}

type modelBase struct {
	n       int64 // -1: absent
	view    bool
	unread  bool   // its client has made the document without a look
	body    string // "" unknown
	stored  string
	count   int
	order   int
	at      time.Duration
	kind    Kind
	reason  Reason
	several bool
	arrived int // the order when the write that took it came
	came    time.Duration
}

func newModel() *model {
	return &model{
		now: maxAge, dropped: map[string]int{}, known: map[viewcache.Key]*modelEntry{},
		starts: map[string]time.Duration{}, writes: map[string]bool{},
	}
}

func (m *model) lose(e *modelEntry, why Reason) {
	if len(e.reads) == 0 && e.view == nil {
		e.marker = why
	}
}

// entry returns what is known of k, without what is void or too old.
func (m *model) entry(k viewcache.Key) *modelEntry {
	e := m.known[k]
	if e == nil {
		e = &modelEntry{epoch: m.moment}
		m.known[k] = e
	}
	had := len(e.reads) > 0 || e.view != nil && !e.view.unread
	if e.epoch < m.dropped[k.Ref.Index] {
		e.reads, e.view, e.epoch, e.newestRead, e.newestView = nil, nil, m.moment, 0, 0
		if had {
			e.marker = ReasonIndex
		}
		return e
	}
	old := func(b modelBase) bool { return m.now-b.at >= maxAge }
	e.reads = slices.DeleteFunc(e.reads, old)
	if e.view != nil && old(*e.view) {
		e.view = nil
	}
	if had {
		m.lose(e, ReasonAged)
	}
	return e
}

func (m *model) keeps(index string) bool {
	if m.writes[index] {
		return true
	}
	if _, ok := m.starts[index]; !ok {
		m.starts[index] = m.now
	}
	return m.now-m.starts[index] < maxAge
}

func (m *model) read(k viewcache.Key, n int64, body string, at int) {
	if body != "" && !m.keeps(k.Ref.Index) && !k.Session.IsNamed() {
		body = ""
	}
	e := m.entry(k)
	if at < m.dropped[k.Ref.Index] {
		m.lose(e, ReasonIndex)
		return
	}
	e.marker = ReasonNone
	m.order++
	e.newestRead = m.order
	if k.Session.IsNamed() {
		e.reads = slices.DeleteFunc(e.reads, func(b modelBase) bool { return b.n != n })
	}
	i := slices.IndexFunc(e.reads, func(b modelBase) bool { return b.n == n })
	if i < 0 {
		e.reads = append(e.reads, modelBase{n: n, order: m.order})
		i = len(e.reads) - 1
	}
	r := &e.reads[i]
	r.count++
	r.at = m.now
	if k.Session.IsNamed() {
		r.count, r.order = 1, m.order
	}
	r.body = cmp.Or(r.body, body)
}

// take returns the base, or false where it has to wait.
func (m *model) take(k viewcache.Key, sent string) (modelBase, bool) {
	e := m.entry(k)
	b := modelBase{n: -1, kind: KindNone}
	switch {
	case len(e.reads) > 0:
		i := closest(e.reads, sent)
		b = e.reads[i]
		b.several = len(e.reads) > 1
		b.kind = KindRead
		if b.n < 0 {
			b.kind = KindAbsent
		}
		b.stored = b.body
		if e.reads[i].count--; e.reads[i].count == 0 {
			e.reads = slices.Delete(e.reads, i, i+1)
		}
	case slices.Contains(e.flights, true):
		return b, false
	case e.view != nil:
		b = *e.view
		b.kind = KindView
		if b.n < 0 {
			b.kind = KindAbsent
		}
		e.view = nil
	case len(e.flights) > 0:
		return b, false
	case e.marker != ReasonNone:
		b.kind, b.reason = KindLost, e.marker
	}
	if b.kind != KindNone || k.Session.IsNamed() {
		e.flights = append(e.flights, !b.view && (b.kind == KindRead || b.kind == KindAbsent))
	}
	b.arrived, b.came = m.order, m.now
	return b, true
}

// inHand is a ranking for tests of what the store has outstanding, and of no guess beyond that: the closest revision, by few and simple
// words, of those that clients have in hand.
func inHand(cs []rank.Candidate, sent rank.Sent) rank.Choice {
	var reads []modelBase
	var at []int
	for i, c := range cs {
		if !c.Spent && !c.Elsewhere {
			r := modelBase{n: c.SeqNo, body: string(c.Source)}
			if !c.Known() {
				r.n = -1
			}
			reads, at = append(reads, r), append(at, i)
		}
	}
	return rank.Choice{Best: at[closest(reads, string(sent.Body))], Ambiguous: len(reads) > 1}
}

// closest takes the fewest edits, then the least that numbers are moved, then the oldest; and leaves an unchanged save one where the
// change could hardly be one.
func closest(reads []modelBase, sent string) int {
	best := -1
	better := func(i, j int) bool {
		a, b := reads[i], reads[j]
		da, oka := modelDistance(a, sent)
		db, okb := modelDistance(b, sent)
		if (oka && da.edits == 0) != (okb && db.edits == 0) {
			return !(oka && da.edits == 0)
		}
		if oka != okb {
			return oka
		}
		if c := da.Compare(db); oka && c != 0 {
			return c < 0
		}
		return a.n < b.n
	}
	for i := range reads {
		if best < 0 || better(i, best) {
			best = i
		}
	}
	d, ok := modelDistance(reads[best], sent)
	saved := -1
	for i, b := range reads {
		if d, ok := modelDistance(b, sent); ok && d.edits == 0 && (saved < 0 || b.n < reads[saved].n) {
			saved = i
		}
	}
	if ok && saved >= 0 && (d.edits > 2 || reads[best].n >= 0 && reads[saved].n > reads[best].n+1) {
		return saved
	}
	return best
}

func modelDistance(b modelBase, sent string) (dist, bool) {
	if b.body == "" && b.n >= 0 {
		return dist{}, false
	}
	base := []byte(b.body)
	if b.n < 0 {
		base = nil
	}
	d, err := distance(base, []byte(sent))
	return d, err == nil
}

func (m *model) endPending(e *modelEntry, b modelBase, k viewcache.Key) bool {
	if b.kind == KindNone && !k.Session.IsNamed() {
		return false
	}
	reads := !b.view && (b.kind == KindRead || b.kind == KindAbsent)
	i := slices.Index(e.flights, reads)
	e.flights = slices.Delete(e.flights, i, i+1)
	return true
}

func (m *model) release(k viewcache.Key, b modelBase, since int) {
	if b.kind == KindNone && !k.Session.IsNamed() {
		return // nothing is given back, so nothing is looked at
	}
	e := m.entry(k)
	if m.endPending(e, b, k); b.kind == KindNone || b.kind == KindLost {
		return
	}
	if since < m.dropped[k.Ref.Index] {
		m.lose(m.entry(k), ReasonIndex)
		return
	}
	if m.now-b.at >= maxAge {
		m.lose(e, ReasonAged)
		return
	}
	if b.view {
		if e.newestView <= b.order {
			e.view, e.marker = &b, ReasonNone
		}
		return
	}
	if k.Session.IsNamed() && e.newestRead > b.order {
		return
	}
	e.marker = ReasonNone
	b.count = 1
	if i := slices.IndexFunc(e.reads, func(o modelBase) bool { return o.n == b.n }); i >= 0 {
		o := e.reads[i]
		b.count, b.order, b.at, b.body = o.count+1, min(o.order, b.order), max(o.at, b.at), cmp.Or(o.body, b.body)
		e.reads = slices.Delete(e.reads, i, i+1)
	}
	e.reads = append(e.reads, b)
	slices.SortFunc(e.reads, func(x, y modelBase) int { return x.order - y.order })
}

// passedBy is for a write that leaves no view: one that is older is no base any more. A delete is newer than all of them.
func (m *model) passedBy(e *modelEntry, n int64) {
	if v := e.view; v != nil && v.n != n && (n < 0 || v.n < n) {
		e.view = nil
		m.lose(e, ReasonEvicted)
	}
}

// commit ends a write; n is -1 for a delete.
func (m *model) commit(k viewcache.Key, b modelBase, since int, n int64, stored, sent string, created bool) {
	if !created {
		m.writes[k.Ref.Index] = true
	}
	e := m.entry(k)
	unread := b.kind == KindNone && !k.Session.IsNamed() && created && n >= 0 && m.keeps(k.Ref.Index)
	e.marker = ReasonNone
	if !m.endPending(e, b, k) && !unread {
		m.passedBy(e, n)
		return
	}
	if n >= 0 && !m.keeps(k.Ref.Index) && !k.Session.IsNamed() {
		stored, sent = "", ""
	}
	if since < m.dropped[k.Ref.Index] {
		m.lose(e, ReasonIndex)
		return
	}
	// Its client has read and written since, or may have: it gave the write up.
	if k.Session.IsNamed() && (min(e.newestRead, e.newestView) > b.arrived || m.now-b.came >= maxAge) {
		m.lose(e, ReasonEvicted)
		return
	}
	m.order++
	e.newestView = m.order
	e.view = &modelBase{view: true, unread: unread, n: n, body: sent, stored: stored, order: m.order, at: m.now}
}

// open is a write in flight, in the store and in the model.
type open struct {
	k     viewcache.Key
	base  Base
	model modelBase
	since int
}

// TestStoreAgreesWithItsModel does everything in random order.
func TestStoreAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{t: time.Unix(1, 0)}
		s := New(Options{Rank: inHand, Now: c.now, Memory: 4 << 20, Candidates: 1 << 20})
		c.advance(maxAge)
		w := &world{t: t, s: s, c: c, m: newModel()}
		for _, name := range []string{"shop", "other"} { // with a place of their own: they share no cell by chance
			s.indices.Index(name, indexstate.Owner{}, 0)
		}
		t.Repeat(map[string]func(*rapid.T){
			"read":   w.read,
			"reread": w.read,
			"absent": w.absent,
			"take":   w.take,
			"again":  w.take,
			"end":    w.end,
			"time":   w.time,
			"drop":   w.drop,
			"epoch":  func(*rapid.T) { w.at, w.atModel = s.Epoch(), w.m.moment },
			"":       func(t *rapid.T) { audit(t, s) },
		})
	})
}

type world struct {
	t       *rapid.T
	s       *Store
	c       *clock
	m       *model
	takes   int
	opens   []open
	seq     int64
	at      Epoch // from some time ago
	atModel int
}

func (w *world) key(t *rapid.T) viewcache.Key {
	const shop, other = "shop", "other"
	return rapid.SampledFrom([]viewcache.Key{
		// Most happens in few places, so that much happens there.
		{Session: pool, Ref: ref}, {Session: pool, Ref: ref}, {Session: pool, Ref: ref},
		{Session: one, Ref: ref}, {Session: one, Ref: ref},
		{Session: pool, Ref: doc.Ref{Index: shop, ID: "2"}}, {Session: one, Ref: doc.Ref{Index: other, ID: "1"}},
		{Session: identity.Inferred(bob, here), Ref: ref}, {Session: identity.Named(bob, []byte("thread-1")), Ref: ref},
		{Session: identity.Inferred(bob, here), Ref: doc.Ref{Index: other, ID: "1"}},
	}).Draw(t, "key")
}

func (w *world) body(n int64) string {
	if n%5 == 4 {
		return ""
	}
	return fmt.Sprintf(`{"a":%d,"b":%d}`, n%2, n%3)
}

// epoch is now, or, sometimes, some time ago.
func (w *world) epoch(t *rapid.T) (Epoch, int) {
	if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
		return w.at, w.atModel
	}
	return w.s.Epoch(), w.m.moment
}

func (w *world) read(t *rapid.T) {
	k, n := w.key(t), rapid.Int64Range(0, 6).Draw(t, "n")
	at, atModel := w.epoch(t)
	w.s.Read(k.Session, k.Ref, rev(n, w.body(n)), at)
	w.m.read(k, n, w.body(n), atModel)
}

func (w *world) absent(t *rapid.T) {
	k := w.key(t)
	at, atModel := w.epoch(t)
	w.s.ReadAbsent(k.Session, k.Ref, at)
	w.m.read(k, -1, "", atModel)
}

func (w *world) take(t *rapid.T) {
	k := w.key(t)
	sent := fmt.Sprintf(`{"a":%d,"b":%d}`, rapid.IntRange(0, 2).Draw(t, "a"), rapid.IntRange(0, 2).Draw(t, "b"))
	w.takes++
	sent += strings.Repeat(" ", w.takes) // no two sent bodies are the same bytes: repeats have tests of their own
	got, err := w.s.Take(ended(), k.Session, k.Ref, []byte(sent))
	want, ok := w.m.take(k, sent)
	if (err == nil) != ok {
		t.Fatalf("store: %v, model has a base: %v", err, ok)
	}
	if !ok {
		return
	}
	n := want.n
	if got.Kind != want.kind || either(got.Reason) != either(want.reason) || got.Ambiguous != want.several ||
		(n >= 0 && got.Numbers != num(n)) || (n < 0 && got.Numbers != doc.Numbers{}) ||
		string(got.View) != want.body || string(got.Stored) != want.stored {
		t.Fatalf("store %v %v %v %q %q ambiguous %v, model %+v",
			got.Kind, got.Reason, got.Numbers, got.View, got.Stored, got.Ambiguous, want)
	}
	w.opens = append(w.opens, open{k: k, base: got, model: want, since: w.m.moment})
}

// either makes one of two reasons: of what is both too old and of an index that was dropped, the store says what it came
// across first.
func either(r Reason) Reason {
	if r == ReasonAged {
		return ReasonIndex
	}
	return r
}

func (w *world) end(t *rapid.T) {
	if len(w.opens) == 0 {
		t.Skip("none in flight")
	}
	i := rapid.IntRange(0, len(w.opens)-1).Draw(t, "write")
	o := w.opens[i]
	w.opens = slices.Delete(w.opens, i, i+1)
	switch rapid.IntRange(0, 3).Draw(t, "end") {
	case 0:
		o.base.Release()
		w.m.release(o.k, o.model, o.since)
	case 1:
		o.base.Delete()
		w.m.commit(o.k, o.model, o.since, -1, "", "", false)
	default:
		w.seq++
		n := 1000 + w.seq
		sent := fmt.Sprintf(`{"a":%d,"s":%d}`, n%3, n)
		stored := sent
		if rapid.Bool().Draw(t, "merged") {
			stored = fmt.Sprintf(`{"a":%d,"s":%d,"m":1}`, n%3, n)
		}
		created := rapid.Bool().Draw(t, "created")
		o.base.Commit(Ack{
			Stored: doc.Revision{Numbers: num(n), Source: []byte(stored)}, Sent: []byte(sent), Created: created,
		})
		w.m.commit(o.k, o.model, o.since, n, stored, sent, created)
	}
}

func (w *world) time(t *rapid.T) {
	d := time.Duration(rapid.IntRange(1, 2).Draw(t, "minutes")) * time.Minute
	w.c.advance(d)
	w.m.now += d
}

func (w *world) drop(t *rapid.T) {
	index := rapid.SampledFrom([]string{"unknown", "none", "no", "shop", "other"}).Draw(t, "index")
	for _, c := range []Credentials{alice, bob} { // for others it is a suspicion: see TestASuspicionLeavesTheBasesThatItDoesNotConcern
		w.s.DropIndex(c, index)
	}
	w.m.moment++
	w.m.dropped[index] = w.m.moment
}
