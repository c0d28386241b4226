package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// complainer is who an audit tells: a test, or one that is drawn.
type complainer interface {
	Helper()
	Errorf(string, ...any)
}

// audit recounts everything in the store and compares it with its accounts.
func audit(t complainer, s *Store) {
	t.Helper()
	for _, sh := range s.shards {
		sh.mu.Lock()
		sh.Audit(t.Errorf)
		if err := sh.pending.Check(); err != nil {
			t.Errorf("%v", err)
		}
		sh.mu.Unlock()
	}
}

func at(i int) doc.Ref { return doc.Ref{Index: "shop", ID: fmt.Sprint("doc-", i)} }

func TestStoreStaysWithinItsMemory(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	body := `{"a":"` + strings.Repeat("x", 2000) + `"}`
	for i := range 2000 {
		s.Read(pool, at(i), rev(5, body), s.Epoch())
		if n := s.Stats().Bytes; n < 0 || n > 256<<10 {
			t.Fatalf("%d bytes after %d reads", n, i+1)
		}
	}
	st := s.Stats()
	if st.Evicted == 0 || st.Entries < 50 || st.Markers == 0 {
		t.Fatalf("%+v", st)
	}
}

// TestUnknownRevisionsStayWithinTheMemory: a client in a trace deletes many documents by a bulk, for example.
func TestUnknownRevisionsStayWithinTheMemory(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	for i := range 2000 {
		s.ReadUnknown(in(1), at(i))
		if n := s.Stats().Bytes; n > 256<<10 {
			t.Fatalf("%d bytes after %d documents", n, i+1)
		}
	}
	audit(t, s)
}

func TestEvictedBaseIsLost(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		for _, written := range []bool{false, true} {
			s, _ := newTest(t, func(o *Options) { o.Memory = 64 << 10 })
			s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
			if written {
				b := take(t, s, sess, `{"a":2}`)
				b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
			}
			crowd(s, sess)
			b := take(t, s, sess, `{"a":2}`)
			wantLost(t, b, ReasonEvicted)
			b.Release()
			b = take(t, s, sess, `{"a":2}`)
			wantLost(t, b, ReasonEvicted) // the write failed: it is still lost
			b.Commit(Ack{Stored: rev(7, `{"a":2}`), Sent: []byte(`{"a":2}`)})
			want(t, take(t, s, sess, `{"a":2}`), KindView, 7)
		}
	}
}

// crowd reads so much that everything else of the client is evicted, and not so much that its marker is.
func crowd(s *Store, sess Session) {
	for i := range 20 {
		s.Read(sess, at(i), rev(5, `{"a":"`+strings.Repeat("x", 8000)+`"}`), s.Epoch())
	}
}

func TestNewReadEndsALoss(t *testing.T) {
	s, c := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(maxAge)
	b := take(t, s, pool, `{"a":1}`)
	wantLost(t, b, ReasonAged)
	b.Release()
	s.Read(pool, ref, rev(6, `{"a":1}`), s.Epoch())
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 6)
	if n := s.Stats().Markers; n != 0 {
		t.Fatalf("%d markers", n)
	}
}

func TestMarkersAreBounded(t *testing.T) {
	s, c := newTest(t, func(o *Options) { o.Memory = 64 << 10 })
	for i := range 5000 {
		s.Read(pool, at(i), rev(5, `{"a":1}`), s.Epoch())
	}
	c.advance(maxAge)
	if n := s.Stats().Markers; n != 31 { // of 32, of which their client's network takes one
		t.Fatalf("%d markers", n)
	}
}

func TestLostOnlyIfNothingIsLeft(t *testing.T) {
	s, c := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(time.Minute)
	s.Read(pool, ref, rev(6, `{"a":1}`), s.Epoch())
	c.advance(maxAge - time.Minute)
	b := take(t, s, pool, `{"a":2}`)
	want(t, b, KindRead, 6)
	if b.Ambiguous {
		t.Fatal("a read that aged out is a candidate")
	}
}

func TestNewestRevisionsAreKept(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Candidates = 4 })
	for n := range int64(10) {
		s.Read(pool, ref, rev(n, `{"a":1}`), s.Epoch())
	}
	for n := range int64(4) {
		want(t, take(t, s, pool, `{"a":2}`), KindRead, n+6)
	}
	if n := s.Stats().Crowded; n != 6 {
		t.Fatalf("%d crowded out", n)
	}
}

func TestReadThatIsGivenBackCountsAmongTheNewest(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Candidates = 2 })
	s.Read(pool, ref, rev(1, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	s.Read(pool, ref, rev(2, `{"a":1}`), s.Epoch())
	s.Read(pool, ref, rev(3, `{"a":1}`), s.Epoch())
	b.Release()
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 2)
}

func TestManyLargeRevisionsOfOneDocumentDontEvictTheOthers(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, at(1), rev(5, `{"a":1}`), s.Epoch())
	for n := range int64(100) {
		s.Read(pool, ref, rev(n, `{"a":"`+strings.Repeat("x", 100_000)+`"}`), s.Epoch())
	}
	if st := s.Stats(); st.Evicted != 0 || st.Bytes > 400_000 {
		t.Fatalf("%+v", st)
	}
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 98)
}

func TestOfATooLargeDocumentOnlyTheNumbersAreKept(t *testing.T) {
	s, _ := newTest(t)
	large := `{"a":"` + strings.Repeat("x", 300_000) + `"}`
	s.Read(one, ref, rev(5, large), s.Epoch())
	b := take(t, s, one, `{"a":2}`)
	want(t, b, KindRead, 5)
	if b.View != nil {
		t.Fatal("body kept")
	}
	b.Commit(Ack{Stored: rev(6, large), Sent: []byte(`{"a":2}`)})
	b = take(t, s, one, `{"a":2}`)
	want(t, b, KindView, 6)
	if b.Stored != nil || string(b.View) != `{"a":2}` {
		t.Fatalf("stored %d bytes, view %q", len(b.Stored), b.View)
	}
	if n := s.Stats().TooLarge; n != 2 {
		t.Fatalf("%d too large", n)
	}
}

func TestEntriesThatNobodyAsksForLeaveByAge(t *testing.T) {
	s, c := newTest(t)
	for i := range 100 {
		s.Read(pool, at(i), rev(5, `{"a":1}`), s.Epoch())
	}
	c.advance(maxAge)
	for i := range 50 {
		s.Read(identity.Inferred(bob, here), at(i), rev(5, `{"a":1}`), s.Epoch())
	}
	if n := s.Stats().Entries; n != 50 {
		t.Fatalf("%d entries", n)
	}
}

func TestSmallAndLargeStores(t *testing.T) {
	for memory, shards := range map[int64]int{1: 1, 64 << 20: 1, 0: 4, 128 << 20: 2, 1 << 40: 16} {
		s := New(Options{Memory: memory})
		if len(s.shards) != shards {
			t.Errorf("%d bytes: %d shards", memory, len(s.shards))
		}
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		audit(t, s)
	}
}

// In the memory that there is by default, eight clients change one document of 3 MB at once. Each has its own revision in hand, and what it
// wrote before. All of that is far less than the memory, and so no client's base is lost.
func TestClientsOfOneLargeDocumentKeepTheirBases(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 0 })
	text := strings.Repeat("x", 3<<20)
	body := func(n int64) string { return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, text) }
	var clients []Session
	for i := range int64(8) {
		c := identity.Named(alice, fmt.Append(nil, "thread-", i))
		clients = append(clients, c)
		s.Read(c, ref, rev(1+i, body(i)), s.Epoch())
		b := take(t, s, c, body(100+i))
		b.Commit(Ack{Stored: rev(100+i, body(100+i)), Sent: []byte(body(100 + i))})
		s.Read(c, ref, rev(100+i, body(100+i)), s.Epoch())
	}
	for i, c := range clients {
		b := take(t, s, c, body(200))
		want(t, b, KindRead, 100+int64(i))
		if b.View == nil {
			t.Errorf("client %d: the body isn't known", i)
		}
		b.Release()
	}
}

// Clients without a session each have a large document in hand, in a revision of their own.
func TestReadsOfOneLargeDocumentAddUp(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 0 })
	text := strings.Repeat("x", 1<<20)
	for i := range int64(8) {
		s.Read(pool, ref, rev(1+i, fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, text)), s.Epoch())
	}
	if n := s.Stats().Crowded; n != 0 {
		t.Errorf("%d reads were given up", n)
	}
}

// The first read is too old by now, and goes when the second one makes room for itself: its bytes must not be shared any more.
func TestAReadSharesNoBodyThatGoesForItsAge(t *testing.T) {
	s, c := newTest(t)
	s.Wrote(Credentials{}, "shop")
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(maxAge)
	s.Wrote(Credentials{}, "shop")
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	audit(t, s)
}

// A choice keeps what it has made of the candidates to compare them, and the write that is chosen for leaves a history: while the write is
// in flight, too, all of that is within the bound.
func TestWhatAChoiceKeepsIsWithinTheMemory(t *testing.T) {
	s := ranked(t, func(o *Options) { o.Memory = 64 << 10 })
	n := int64(1)
	for round := range 20 {
		for range 64 {
			s.Read(pool, ref, rev(n, `{`+strings.Repeat(`"k":1,`, 16)+fmt.Sprintf(`"n":%d}`, n)), s.Epoch())
			n++
		}
		n++
		sent := fmt.Sprintf(`{"n":%d}`, n)
		_, _ = s.Glance().Take(ended(), pool, ref, []byte(sent))
		b := take(t, s, pool, sent)
		audit(t, s)
		if round%2 == 0 {
			b.Release()
		} else {
			commit(b, n, sent)
			n++
		}
		audit(t, s)
	}
}

// An index that is only read needs no bodies. But who names its session will write: its first write may meet another's, too.
func TestBodiesOfNamedSessionsAreKeptWhereNobodyHasWrittenYet(t *testing.T) {
	s, c := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(maxAge)
	for sess, view := range map[Session]string{pool: "", one: `{"a":1}`} {
		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
		b := take(t, s, sess, `{"a":2}`)
		if want(t, b, KindRead, 5); string(b.View) != view {
			t.Errorf("the view is %q, want %q", b.View, view)
		}
		b.Release()
	}
}
