package session

import (
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// A client that writes, searches before the refresh, and is refused looks again. It finds the same, and writes from that.
func TestWhoIsRefusedAndFindsTheSameAgainWritesFromIt(t *testing.T) {
	s, _ := newTest(t)
	find := func(n int64, body string) bool { return s.Found(one, ref, rev(n, body), s.Epoch()) }
	find(5, `{"tags":[]}`)
	commit(take(t, s, one, `{"tags":["a"]}`), 6, `{"tags":["a"]}`)
	for range 2 {
		if !find(5, `{"tags":[]}`) {
			t.Error("it isn't stale")
		}
		b := take(t, s, one, `{"tags":["b"]}`)
		if want(t, b, KindView, 5); b.Use != UseUnclear {
			t.Error("the client has written from what it found, and the view isn't only a guard")
		}
		if b.Release(); find(5, `{"tags":[]}`) {
			t.Error("the client was refused, and has it in hand again")
		}
		b = take(t, s, one, `{"tags":["b"]}`)
		if want(t, b, KindRead, 5); b.OnlyGuards() || !b.Guessed || string(b.View) != `{"tags":[]}` {
			t.Errorf("%+v", b)
		}
		b.Release()
		find(4, `{}`) // an older copy of the index
		b = take(t, s, one, `{"tags":["b"]}`)
		want(t, b, KindRead, 5)
		b.Commit(Ack{Stored: rev(6, `{"tags":["a"]}`), Sent: []byte(`{"tags":["a"]}`)})
	}
}

// Answers without numbers are no base, and they end none: a write would go unguarded.
func TestWhatIsShownWithoutNumbersLeavesTheGuard(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	commit(take(t, s, one, `{"a":2}`), 6, `{"a":2}`)
	for range 3 {
		s.ReadPart(one, ref, doc.Revision{Source: []byte(`{"a":7}`)})
		b := take(t, s, one, `{"a":8}`)
		if want(t, b, KindView, 6); b.Use != UseUnclear {
			t.Error("it may be merged")
		}
		b.Release()
	}
	s.Read(one, ref, rev(9, `{"a":7}`), s.Epoch())
	b := take(t, s, one, `{"a":8}`)
	if want(t, b, KindRead, 9); b.Use == UseUnclear || b.Guessed {
		t.Errorf("%+v", b)
	}
}

// Two clients search before anybody is known to write, and then save what they have found. The second has not seen what the first wrote.
func TestAViewIsAmbiguousWhereClientsHaveSearchedBefore(t *testing.T) {
	s, c := newTest(t)
	search := func() { // for long enough to show that nobody writes there
		for range 2 {
			s.WatchesSearches(pool, "shop", true)
			c.advance(maxAge / 2)
		}
	}
	if search(); s.WatchesSearches(pool, "shop", true) {
		t.Error("nobody writes there")
	}
	save := func(n int64, ambiguous bool) {
		t.Helper()
		b := take(t, s, pool, `{"a":2}`)
		if want(t, b, KindView, n); b.Ambiguous != ambiguous {
			t.Errorf("ambiguous: %v", b.Ambiguous)
		}
		commit(b, n+1, `{"a":2}`)
	}
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	commit(take(t, s, pool, `{"a":1,"b":1}`), 6, `{"a":1,"b":1}`)
	save(6, true)
	c.advance(maxAge - 1)
	save(7, true)
	c.advance(1)
	save(8, false) // what they found is too old
	c.advance(2 * maxAge)
	if !s.WatchesSearches(pool, "shop", true) {
		t.Error("it isn't known any more that clients write there")
	}
	c.advance(24 * time.Hour)
	if search(); s.WatchesSearches(pool, "shop", true) {
		t.Error("it is known for longer than a day")
	}
}

// Nobody knows yet whether clients that have just begun to search will write what they find.
func TestSearchesAreWatchedUntilTheirClientsHaveOnlySearchedForLong(t *testing.T) {
	s, c := newTest(t)
	for i, want := range []bool{true, true, true, false, false} {
		if got := s.WatchesSearches(pool, "shop", true); got != want {
			t.Errorf("search %d: %v", i, got)
		}
		c.advance(maxAge * 2 / 5)
	}
	if s.WatchesSearches(pool, "shop", true) || !s.WatchesSearches(pool, "another", true) || !s.WatchesSearches(identity.Inferred(bob, here), "shop", true) {
		t.Error("each index, and each client, counts by itself")
	}
	c.advance(maxAge)
	if !s.WatchesSearches(pool, "shop", true) {
		t.Error("after a pause it may be another application")
	}
}

// Of a large page nothing is known but that the client has seen it, whether the client is new or writes in the index.
func TestALargePageIsNotWatchedAndNoted(t *testing.T) {
	for _, writes := range []bool{false, true} {
		s, _ := newTest(t)
		if writes {
			s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
			commit(take(t, s, pool, `{"a":2}`), 6, `{"a":2}`)
		}
		if s.WatchesSearches(pool, ref.Index, false) {
			t.Error("it is watched")
		}
		if !s.find(ref.Index, pool.Credentials(), s.clock()).HasSearched(pool.Bare(), s.clock()) {
			t.Errorf("writes: %v: the client counts as one that has seen nothing", writes)
		}
	}
}

// Of an answer that nobody could read, any client of an inferred session may know what it has shown.
func TestAViewIsAmbiguousAfterAnUnknownAnswer(t *testing.T) {
	for _, index := range []string{ref.Index, ""} {
		s, c := newTest(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		commit(take(t, s, pool, `{"a":2}`), 6, `{"a":2}`)
		is := func(ambiguous bool) {
			t.Helper()
			b := take(t, s, pool, `{"a":3}`)
			if want(t, b, KindView, 6); b.Ambiguous != ambiguous || b.Use == UseUnclear {
				t.Errorf("ambiguous %v, use %d", b.Ambiguous, b.Use)
			}
			b.Release()
		}
		s.ShownUnknown(one, index)
		is(false)
		s.ShownUnknown(pool, index)
		is(true)
		c.advance(maxAge / 4)
		s.ShownUnknown(pool, index)
		is(true)
		s.Read(pool, ref, rev(6, `{"a":2}`), s.Epoch())
		b := take(t, s, pool, `{"a":3}`)
		if want(t, b, KindRead, 6); b.Ambiguous {
			t.Error("a read is one that nobody was shown otherwise")
		}
		b.Release()
	}
}

// Of an answer that nobody could read, only its client knows what it has shown: all of the index, or of any.
func TestWhatIsKnownFromBeforeAnUnknownAnswerIsAGuardAlone(t *testing.T) {
	for _, index := range []string{ref.Index, ""} {
		s, c := newTest(t)
		s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
		c.advance(1)
		s.ShownUnknown(pool, index)           // is many threads
		s.Wrote(one.Credentials(), "another") // or its name might share a cell with the first one's
		s.ShownUnknown(one, "another")
		is := func(k Kind, n int64, unclear bool) Base {
			t.Helper()
			b := take(t, s, one, `{"a":2}`)
			if want(t, b, k, n); (b.Use == UseUnclear) != unclear || b.OnlyGuards() != unclear {
				t.Errorf("use %d", b.Use)
			}
			return b
		}
		b := is(KindRead, 5, false)
		b.Release()
		s.ShownUnknown(one, index)
		for range 2 {
			b = is(KindRead, 5, true)
			b.Release()
			c.advance(1)
		}
		b = s.TakeAt(one, ref, num(5), []byte(`{"a":2}`))
		if want(t, b, KindRead, 5); b.OnlyGuards() {
			t.Error("who names it means it")
		}
		b.Release()
		commit(is(KindRead, 5, true), 6, `{"a":2}`)
		b = is(KindView, 6, false) // which it has seen after that
		b.Release()
		c.advance(1)
		s.ShownUnknown(one, index)
		b = is(KindView, 6, true)
		b.Release()
		c.advance(1)
		s.Read(one, ref, rev(9, `{"a":9}`), s.Epoch())
		b = is(KindRead, 9, false)
		b.Release()
	}
}
