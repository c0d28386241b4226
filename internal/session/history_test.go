package session

import (
	"fmt"
	"slices"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/rank"
	"optimist/internal/viewcache"
)

// ranked is a store that guesses as the product does.
func ranked(t *testing.T, set ...func(*Options)) *Store {
	s, _ := newTest(t, append(set, func(o *Options) { o.Rank = nil })...)
	return s
}

// commit acknowledges a write that left what it sent at n.
func commit(b Base, n int64, sent string) { b.Commit(Ack{Stored: rev(n, sent), Sent: []byte(sent)}) }

// Client A and client B read the same, A writes, and somebody looks at that. B appends an entry of its own: from what was looked at it
// would have taken A's out.
func TestWhoWritesHasntTakenOutWhatOthersPutIn(t *testing.T) {
	s := ranked(t)
	for range 2 {
		s.Read(pool, ref, rev(5, `{"items":[],"count":0,"at":"12:00"}`), s.Epoch())
	}
	commit(take(t, s, pool, `{"items":["apples"],"count":1,"at":"12:01"}`), 6, `{"items":["apples"],"count":1,"at":"12:01"}`)
	s.Read(pool, ref, rev(6, `{"items":["apples"],"count":1,"at":"12:01"}`), s.Epoch())
	b := take(t, s, pool, `{"items":["bread"],"count":1,"at":"12:02"}`)
	want(t, b, KindRead, 5)
	if !b.Ambiguous {
		t.Error("there was another candidate, and it isn't said")
	}
}

// A client whose read was taken for another's writes all the same: what it has read is known.
func TestAReadThatWasTakenIsStillABase(t *testing.T) {
	s := ranked(t)
	s.Read(pool, ref, rev(5, `{"text":"the quick brown fox jumps over the lazy dog","a":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"text":"another text altogether, of as many words as this","a":1}`), s.Epoch())
	first := `{"text":"the quick brown fox jumps over the lazy dog","a":7}`
	commit(take(t, s, pool, first), 7, first)
	second := `{"text":"the quick brown fox jumps over the lazy cat","a":1}`
	b := take(t, s, pool, second)
	if want(t, b, KindRead, 5); !b.Ambiguous {
		t.Error("nobody is known to have it in hand, and it isn't said")
	}
	b.Release()
	// What was given back wasn't reserved: the other read is there.
	want(t, take(t, s, pool, `{"text":"another text altogether, of as many words as that","a":1}`), KindRead, 6)
}

// Clients that write again from memory have what they sent themselves as their base, however many others have written since.
func TestManyWriteAgainFromMemory(t *testing.T) {
	s := ranked(t)
	const clients = 8
	for range clients {
		s.Read(pool, ref, rev(5, `{"lines":["nobody"]}`), s.Epoch())
	}
	sent := func(i int, more string) string {
		return fmt.Sprintf(`{"lines":["nobody","client %d begins"%s]}`, i, more)
	}
	stored := "nobody"
	for i := range clients {
		stored += fmt.Sprintf(`","client %d begins`, i)
		b := take(t, s, pool, sent(i, ""))
		b.Commit(Ack{Stored: rev(int64(6+i), `{"lines":["`+stored+`"]}`), Sent: []byte(sent(i, ""))})
	}
	for i := range clients {
		b := take(t, s, pool, sent(i, `,"and goes on"`))
		if want(t, b, KindView, int64(6+i)); string(b.View) != sent(i, "") {
			t.Errorf("client %d has the view %s", i, b.View)
		}
		b.Release()
	}
}

func TestNamedSessionsHaveNoHistory(t *testing.T) {
	s := ranked(t)
	for n := int64(5); n < 9; n++ {
		s.Read(one, ref, rev(n, fmt.Sprintf(`{"a":%d}`, n)), s.Epoch())
		commit(take(t, s, one, `{"a":9}`), n+1, `{"a":9}`)
	}
	b := take(t, s, one, `{"a":6}`)
	if want(t, b, KindView, 9); b.Ambiguous {
		t.Error("a named session has one base")
	}
}

// A base of the history of which nobody knows what became is doubtful for its repeat, as any other is.
func TestDoubtAboutABaseOfTheHistoryIsKept(t *testing.T) {
	s := ranked(t)
	s.Read(pool, ref, rev(5, `{"text":"the quick brown fox jumps over the lazy dog"}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"text":"another text altogether, of as many words"}`), s.Epoch())
	first := `{"text":"the quick brown fox jumps over the lazy cat"}`
	commit(take(t, s, pool, first), 7, first)
	second := `{"text":"the quick brown fox jumps over the lazy cow"}`
	b := take(t, s, pool, second)
	want(t, b, KindRead, 5)
	b.Doubt()
	b = take(t, s, pool, second)
	if want(t, b, KindRead, 5); !b.OnlyGuards() || b.View != nil {
		t.Errorf("doubtful %v, view %s: it may be stored already", b.OnlyGuards(), b.View)
	}
}

// However often it is used: what a client read long ago isn't what it writes from.
func TestTheHistoryIsNoOlderThanWhatIsOutstanding(t *testing.T) {
	s, clock := newTest(t, func(o *Options) { o.Rank = nil })
	text := func(last string) string { return `{"text":"the quick brown fox jumps over the lazy ` + last + `"}` }
	s.Read(pool, ref, rev(5, text("dog")), s.Epoch())
	s.Read(pool, ref, rev(6, `{"text":"another text altogether, of as many words"}`), s.Epoch())
	clock.advance(maxAge - 1)
	commit(take(t, s, pool, text("cat")), 7, text("cat"))
	s.Read(pool, ref, rev(8, `{"text":"and one more that has nothing of it"}`), s.Epoch())
	b := take(t, s, pool, text("cow"))
	want(t, b, KindRead, 5)
	b.Release()
	clock.advance(1)
	b = take(t, s, pool, text("cow"))
	if b.Numbers == num(5) {
		t.Error("it is older than any base may be")
	}
	b.Release()
}

func TestTheHistoryIsBounded(t *testing.T) {
	s := ranked(t)
	for n := int64(5); n < 500; n++ {
		body := fmt.Sprintf(`{"n":%d,"text":"this is the text of revision %d"}`, n, n)
		s.Read(pool, ref, rev(n, body), s.Epoch())
		s.Read(pool, ref, rev(n, body), s.Epoch())
		commit(take(t, s, pool, body[:len(body)-1]+`,"x":1}`), n+1, body)
		s.shard(viewcache.Key{Session: pool, Ref: ref}).mu.Lock()
		e := s.shard(viewcache.Key{Session: pool, Ref: ref}).Peek(viewcache.Key{Session: pool, Ref: ref})
		if len(e.Past) > viewcache.MaxPast {
			t.Fatalf("%d", len(e.Past))
		}
		s.shard(viewcache.Key{Session: pool, Ref: ref}).mu.Unlock()
	}
}

// A write that held several clients' changes is known as one wherever its revision may be a base.
func TestACombinedWriteIsKnownAsOne(t *testing.T) {
	var got []int
	s, _ := newTest(t, func(o *Options) {
		o.Rank = func(cs []rank.Candidate, sent rank.Sent) rank.Choice {
			got = got[:0]
			for _, c := range cs {
				got = append(got, c.Changes)
			}
			return rank.Likeliest(cs, sent)
		}
	})
	for range 3 {
		s.Read(pool, ref, rev(5, `{"n":0}`), s.Epoch())
	}
	a, b := take(t, s, pool, `{"n":1}`), take(t, s, pool, `{"n":1}`)
	for _, base := range []Base{a, b} {
		base.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":1}`)})
	}
	s.Combined(pool, ref, rev(6, "").Numbers, 2)
	s.Combined(pool, doc.Ref{Index: "shop", ID: "another"}, rev(6, "").Numbers, 2)
	s.Combined(pool, ref, doc.Numbers{}, 2)
	s.Read(pool, ref, rev(6, `{"n":2}`), s.Epoch())
	take(t, s, pool, `{"n":3}`)
	if len(got) < 2 || got[0] != 0 || !slices.Contains(got, 2) {
		t.Errorf("changes of the candidates, oldest first: %v", got)
	}
}
