package session

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/internal/note"
	"optimist/internal/notetest"
	"optimist/internal/rank"
	"optimist/internal/viewcache"
)

// processes are stores one after the other, with one notebook.
type processes struct {
	t     *testing.T
	pages *notetest.Notebook
	clock clock
}

func newProcesses(t *testing.T) *processes {
	p := &processes{t: t, pages: notetest.New(7), clock: clock{time.Unix(1_700_000_000, 0)}}
	p.pages.Now = p.clock.now
	return p
}

// next starts a store a second after the last thing that was done.
func (p *processes) next() *Store {
	p.clock.advance(time.Second)
	s := New(Options{MaxAge: maxAge, Memory: 1 << 20, Now: p.clock.now, Rank: inHand, Notes: p.pages})
	p.clock.advance(time.Second)
	p.t.Cleanup(func() { audit(p.t, s) })
	return s
}

func wantRecollection(t *testing.T, b Base, k Kind, n doc.Numbers) {
	t.Helper()
	if b.Kind != k || b.Numbers != n || b.Reason != ReasonRestart || b.View != nil || !b.OnlyGuards() {
		t.Errorf("%v %v %v %q doubtful=%v, want %v %v", b.Kind, b.Reason, b.Numbers, b.View, b.OnlyGuards(), k, n)
	}
}

func TestWhatANamedSessionHasInHandGuardsItsWriteAfterAStart(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *Store)
		kind   Kind
		n      doc.Numbers
	}{
		"read":   {func(s *Store) { s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch()) }, KindRead, num(5)},
		"absent": {func(s *Store) { s.ReadAbsent(one, ref, s.Epoch()) }, KindAbsent, doc.Numbers{}},
		"in flight": {func(s *Store) {
			s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
			b := take(t, s, one, `{"a":2}`)
			want(t, b, KindRead, 5) // and it never ends
		}, KindRead, num(5)},
		"written": {func(s *Store) {
			s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
			b := take(t, s, one, `{"a":2}`)
			b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		}, KindView, num(6)},
		"merged": {func(s *Store) {
			s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
			b := take(t, s, one, `{"a":2}`)
			b.Commit(Ack{Stored: rev(9, `{"a":2,"b":1}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(5)})
		}, KindRead, num(5)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcesses(t)
			c.before(p.next())
			s := p.next()
			if !s.MayHaveBase(one, ref) {
				t.Error("it isn't known that something is known")
			}
			for range 2 { // and again after a failure
				b := take(t, s, one, `{"a":3}`)
				wantRecollection(t, b, c.kind, c.n)
				b.Release()
			}
			b := take(t, p.next(), one, `{"a":3}`) // and after the next start
			wantRecollection(t, b, c.kind, c.n)
			b.Commit(Ack{Stored: rev(20, `{"a":3}`), Sent: []byte(`{"a":3}`)})
		})
	}
}

func TestWhatIsReadAfterAStartCountsMoreThanWhatIsRecalled(t *testing.T) {
	p := newProcesses(t)
	p.next().Read(one, ref, rev(5, `{"a":1}`), 0)
	s := p.next()
	s.Read(one, ref, rev(8, `{"a":7}`), s.Epoch())
	want(t, take(t, s, one, `{"a":9}`), KindRead, 8)
}

func TestAMemoEnds(t *testing.T) {
	for name, end := range map[string]func(p *processes, s *Store){
		"by age":           func(p *processes, _ *Store) { p.clock.advance(maxAge) },
		"with its index":   func(_ *processes, s *Store) { s.DropIndex(alice, ref.Index) },
		"by what was lost": func(_ *processes, s *Store) { s.Resume(true) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcesses(t)
			first := p.next()
			first.Read(one, ref, rev(5, `{"a":1}`), first.Epoch())
			end(p, first)
			if b := take(t, p.next(), one, `{"a":2}`); b.Kind != KindLost || b.Reason != ReasonRestart {
				t.Error(b.Kind, b.Reason)
			}
		})
	}
}

func TestOfAnInferredSessionTheOldestGuards(t *testing.T) {
	p := newProcesses(t)
	s := p.next()
	for _, n := range []int64{5, 7, 9} {
		s.Read(pool, ref, rev(n, fmt.Sprintf(`{"a":%d}`, n)), s.Epoch())
	}
	take(t, s, pool, `{"a":5}`) // in flight
	b := take(t, p.next(), pool, `{"x":1}`)
	wantRecollection(t, b, KindRead, num(5))
	if !b.Ambiguous {
		t.Error("it may have been made from something else")
	}
}

// TestAWriteFromBeforeTheStartIsToldFromOneSince: a client writes what it had made before the start, after others have read and written.
func TestAWriteFromBeforeTheStartIsToldFromOneSince(t *testing.T) {
	const before, now = `{"list":["first"],"count":1}`, `{"list":["first","second"],"count":2}`
	p := newProcesses(t)
	s := p.next()
	s.Read(pool, ref, rev(5, before), s.Epoch())
	s = p.next()
	s.Read(pool, ref, rev(6, now), s.Epoch())
	late := take(t, s, pool, `{"list":["first","third"],"count":2}`)
	wantRecollection(t, late, KindRead, num(5))
	late.Release()
	for range 2 { // another client may have read the same before the start
		b := take(t, s, pool, `{"list":["first","second","fourth"],"count":3}`)
		if b.Kind != KindRead || b.Numbers != num(6) || string(b.View) != now || b.OnlyGuards() {
			t.Errorf("%v %v %s", b.Kind, b.Numbers, b.View)
		}
		b.Release()
	}
}

// TestMarksThatAClientLeavesOutTellNothingAfterAStart: it sends all that it knows of what it has read, and a member more.
func TestMarksThatAClientLeavesOutTellNothingAfterAStart(t *testing.T) {
	for _, marks := range []string{``, `,"_writes":["a1","b2"]`} {
		p := newProcesses(t)
		s := p.next()
		s.Read(pool, ref, rev(5, `{"n":1,"_writes":["a1"]}`), s.Epoch())
		s = p.next()
		s.Read(pool, ref, rev(6, `{"n":2,"x":1,"_writes":["a1","b2"]}`), s.Epoch())
		unlike := func([]byte) ([]byte, error) { return nil, errors.New("nothing is like it") }
		s = s.Comparing(Comparison{On: unlike, Marks: "_writes"})
		b := take(t, s, pool, `{"n":3,"x":1,"y":1`+marks+`}`)
		if want(t, b, KindRead, 6); b.OnlyGuards() {
			t.Error("the base is from before the start")
		}
		b.Release()
	}
}

// TestAnOlderRevisionThatAWriteHoldsIsNotItsBase: the write changes its own value, so it doesn't hold all of its base. It holds everything
// of an older revision, and more. Counted from that one, the change of before would count twice.
func TestAnOlderRevisionThatAWriteHoldsIsNotItsBase(t *testing.T) {
	p := newProcesses(t)
	s := p.next()
	s.Read(pool, ref, rev(4, `{"n":1}`), s.Epoch())
	s = p.next()
	s.o.Rank = rank.Likeliest
	put := func(sent string, n int64, stored string, base int64) {
		t.Helper()
		b := take(t, s, pool, sent)
		want(t, b, KindRead, base)
		if !b.Ambiguous || b.OnlyGuards() {
			t.Errorf("ambiguous=%v doubtful=%v", b.Ambiguous, b.OnlyGuards())
		}
		b.Commit(Ack{Stored: rev(n, stored), Sent: []byte(sent)})
		s.Read(pool, ref, rev(n, stored), s.Epoch())
	}
	s.Read(pool, ref, rev(5, `{"n":2,"a":1}`), s.Epoch())
	s.Read(pool, ref, rev(5, `{"n":2,"a":1}`), s.Epoch())
	put(`{"n":3,"a":1,"first":1}`, 6, `{"n":3,"a":1,"first":1}`, 5)
	put(`{"n":3,"a":1,"second":1}`, 7, `{"n":4,"a":1,"first":1,"second":1}`, 5)
	put(`{"n":4,"a":1,"first":2}`, 8, `{"n":5,"a":1,"first":2,"second":1}`, 6)
}

// TestWhatIsReadWhileAWriteWaitsIsNotItsBase: a client sends again what it had made before the start. While that waits for others' writes,
// all that it may have been made from is read once more, and used up. What is left is another client's.
func TestWhatIsReadWhileAWriteWaitsIsNotItsBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before = `{"list":["entry 1"]}`
		p := newProcesses(t)
		s := p.next()
		s.Read(pool, ref, rev(4, `{"list":[]}`), s.Epoch())
		s.Read(pool, ref, rev(5, before), s.Epoch())
		s = p.next()
		s.o.Rank = rank.Likeliest
		read := func() { s.Read(pool, ref, rev(5, before), s.Epoch()) }
		with := func(entry string) []byte { return []byte(`{"list":["entry 1","` + entry + `"]}`) }
		bases := map[string]Base{}
		write := func(entry string) { bases[entry] = take(t, s, pool, string(with(entry))) }
		read()
		read() // two clients have it in hand: the session is shared
		write("entry 2")
		write("entry 3")
		var late Base
		done := make(chan struct{})
		go func() {
			defer close(done)
			late, _ = s.Take(t.Context(), pool, ref, with("entry 4"))
		}()
		synctest.Wait()
		read()
		write("entry 5")
		n, stored := int64(5), `"entry 1"`
		for _, entry := range []string{"entry 2", "entry 3", "entry 5"} {
			n++
			stored += `,"` + entry + `"`
			b := bases[entry]
			b.Commit(Ack{Stored: rev(n, `{"list":[`+stored+`]}`), Sent: with(entry)})
		}
		<-done
		wantRecollection(t, late, KindRead, num(4))
	})
}

func TestRefusalsForWhatIsRecalledAreBounded(t *testing.T) {
	p := newProcesses(t)
	s := p.next()
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s = p.next()
	s.Read(pool, ref, rev(6, `{"a":2}`), s.Epoch())
	wantBound(t, func() Base { return take(t, s, pool, `{"a":3}`) }) // nobody can tell from what
}

// The client of a part may never have read the document, and will not do so after a refusal.
func TestRefusalsOfPartsAreBoundedThoughNobodyReads(t *testing.T) {
	p := newProcesses(t)
	s := p.next()
	s.Read(pool, ref, rev(5, `{"l":[1]}`), s.Epoch())
	s = p.next()
	wantBound(t, func() Base { return takePart(t, s, pool, `{"l":[2]}`) })
}

// wantBound fails the test unless the recollection of the 5th revision is the base of so many writes as may be refused, and of no more.
func wantBound(t *testing.T, take func() Base) {
	t.Helper()
	for n := 0; ; n++ {
		b := take()
		numbers := b.Numbers
		b.Release()
		switch {
		case numbers == num(5) && n < note.MaxLeft:
			continue
		case numbers == num(5) || n < note.MaxLeft:
			t.Errorf("%d writes are refused", n)
		}
		return
	}
}

// What one client had in hand before the start serves one write. What several had doesn't: the others still have it.
func TestWhatOneClientHadInHandIsRecalledForOneWrite(t *testing.T) {
	for clients, want := range map[int]string{1: `{"a":2}`, 2: ""} {
		p := newProcesses(t)
		s := p.next()
		for range clients {
			s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		}
		s = p.next()
		b := take(t, s, pool, `{"a":2}`)
		wantRecollection(t, b, KindRead, num(5))
		commit(b, 6, `{"a":2}`)
		if b = take(t, s, pool, `{"a":3}`); string(b.View) != want {
			t.Errorf("of %d clients: the base of the next write is %v %s", clients, b.Numbers, b.View)
		}
		b.Release()
		if n := noteOfNext(t, p); (n == num(6)) != (clients == 1) {
			t.Errorf("of %d clients: the next process recalls %v", clients, n)
		}
	}
}

// noteOfNext is the base of a write after the next start.
func noteOfNext(t *testing.T, p *processes) doc.Numbers {
	b := take(t, p.next(), pool, `{"a":9}`)
	defer b.Release()
	return b.Numbers
}

func TestARevisionThatIsReadAgainIsNotRecalled(t *testing.T) {
	p := newProcesses(t)
	s := p.next()
	s.Read(pool, ref, rev(5, `{"a":5}`), s.Epoch())
	wantReadAgain(t, p.next(), 5)
}

// A client that is alone has in hand what it has read or written last, and nothing older.
func TestWhatOneClientWroteBeforeIsNotRecalled(t *testing.T) {
	p := newProcesses(t)
	s := p.next()
	for n := int64(5); n < 8; n++ {
		made := fmt.Sprintf(`{"a":%d}`, n+1)
		s.Read(pool, ref, rev(n, fmt.Sprintf(`{"a":%d}`, n)), s.Epoch())
		commit(take(t, s, pool, made), n+1, made)
	}
	wantReadAgain(t, p.next(), 8)
}

// wantReadAgain reads the n-th revision, and fails the test unless the next write is based on that, with its body.
func wantReadAgain(t *testing.T, s *Store, n int64) {
	t.Helper()
	body := fmt.Sprintf(`{"a":%d}`, n)
	s.Read(pool, ref, rev(n, body), s.Epoch())
	b := take(t, s, pool, fmt.Sprintf(`{"a":%d}`, n+1))
	want(t, b, KindRead, n)
	if b.OnlyGuards() || string(b.View) != body {
		t.Error("its body is known")
	}
}

func TestNotingAllocatesNothing(t *testing.T) {
	s := New(Options{Notes: notetest.New(7)})
	r := benchRevision()
	s.Read(one, ref, r, 0)
	if n := testing.AllocsPerRun(100, func() { s.Read(one, ref, r, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	k := viewcache.KeyOf(one, ref)
	if n := testing.AllocsPerRun(100, func() { s.notes.ID(k.Noted()) }); n != 0 {
		t.Errorf("%v allocations for a place", n)
	}
}
