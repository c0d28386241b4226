package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// two is another thread of work under the same credentials as one.
var two = identity.Named(alice, []byte("thread-2"))

// write has the session write what is stored as it is, and be acknowledged at n.
func write(t *testing.T, s *Store, sess Session, n int64, body string) {
	t.Helper()
	b := take(t, s, sess, body)
	b.Commit(ack(n, body))
}

// wantKnown checks whether what the session has read or written is still a base.
func wantKnown(t *testing.T, s *Store, sess Session, known bool) {
	t.Helper()
	b := take(t, s, sess, `{"z":1}`)
	if known != (b.Kind == KindRead || b.Kind == KindView) || !known && b.Reason != ReasonIndex {
		t.Errorf("base %v %v, want it known: %v", b.Kind, b.Reason, known)
	}
	b.Release()
}

func TestOtherBytesUnderTheSameNumbersAreAnotherIndex(t *testing.T) {
	for name, c := range map[string]struct {
		ticket  bool // the reads have a place in the order
		body    string
		dropped bool
	}{
		"another document":                       {true, `{"a":2}`, true},
		"the same document":                      {true, `{"a":1,"n":9007199254740993.0}`, false},
		"the same document in another form":      {true, "{\n  \"a\" : 1, \"n\" : 9.007199254740992E15\n}", false},
		"another document, found by a search":    {false, `{"a":2}`, false}, // it may be another form of the same
		"no JSON, which can't be another's form": {true, `{"a"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			read := func(sess Session, body string) {
				if c.ticket {
					s.ReadWithTicket(sess, ref, rev(5, body), s.Epoch(), s.Ticket())
				} else {
					s.Read(sess, ref, rev(5, body), s.Epoch())
				}
			}
			read(one, `{"a":1,"n":9007199254740993.0}`)
			read(two, c.body)
			b := take(t, s, two, `{"z":1}`)
			want(t, b, KindRead, 5)
			if string(b.View) != c.body {
				t.Errorf("the client has read %s, and its base is %s", c.body, b.View)
			}
			wantKnown(t, s, one, !c.dropped)
		})
	}
}

func TestBytesThatWereWrittenAreNotThoseThatAreRead(t *testing.T) {
	// Field level security, or an engine that makes _source up: what a client reads back isn't what it wrote. That is no other
	// index.
	s, _ := newTest(t)
	s.ReadWithTicket(one, ref, rev(4, `{"a":1}`), s.Epoch(), s.Ticket())
	write(t, s, one, 5, `{"a":1,"secret":1}`)
	for _, sess := range []Session{two, pool} {
		s.ReadWithTicket(sess, ref, rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
		b := s.TakeAt(identity.Named(alice, nil), ref, num(5), nil)
		if want(t, b, KindExplicit, 5); string(b.View) != `{"a":1}` {
			t.Errorf("who names the revision has read %s", b.View)
		}
		b.Release()
		b = take(t, s, sess, `{"a":2}`)
		if want(t, b, KindRead, 5); string(b.View) != `{"a":1}` {
			t.Errorf("the client has read {\"a\":1}, and its base is %s", b.View)
		}
	}
	b := take(t, s, one, `{"a":2}`)
	if want(t, b, KindView, 5); string(b.View) != `{"a":1,"secret":1}` || string(b.Stored) != `{"a":1,"secret":1}` {
		t.Errorf("what was sent is %s, and what was stored %s", b.View, b.Stored)
	}
}

func TestALargeBodyOfAnotherIndex(t *testing.T) {
	s, _ := newTest(t)
	large := fmt.Sprintf(`{"a":1,"text":"%0*d"}`, 2*copyOutside, 0)
	for _, sess := range []Session{one, pool} {
		s.ReadWithTicket(sess, ref, rev(5, large), s.Epoch(), s.Ticket())
	}
	if n := s.Stats().Bodies; n != 1 {
		t.Errorf("%d bodies of one revision", n)
	}
	s.ReadWithTicket(two, ref, rev(5, large[:len(large)-3]+`1"}`), s.Epoch(), s.Ticket())
	wantKnown(t, s, one, false)
	wantKnown(t, s, pool, false)
	wantKnown(t, s, two, true)
}

func TestAReadOfAnOlderRevisionThanWasAcknowledgedIsOfAnotherIndex(t *testing.T) {
	type answer struct {
		n      doc.Numbers
		before bool // it was asked before the write was known to be acknowledged
		search bool
	}
	for name, c := range map[string]struct {
		answer
		dropped bool
	}{
		"an older one":            {answer{n: num(3)}, true},
		"the one that was left":   {answer{n: num(8)}, false},
		"a newer one":             {answer{n: num(9)}, false},
		"asked before the answer": {answer{n: num(3), before: true}, false}, // the write has overtaken it
		"found by a search":       {answer{n: num(3), search: true}, false}, // which sees what was refreshed
		"after a new primary":     {answer{n: doc.Numbers{SeqNo: 3, PrimaryTerm: 2}}, false},
		"absent":                  {answer{}, false}, // somebody else may have deleted it
	} {
		t.Run(name, func(t *testing.T) {
			var renewed []string
			s, _ := newTest(t, func(o *Options) { o.Renewed = func(_ Credentials, index string) { renewed = append(renewed, index) } })
			s.ReadWithTicket(one, ref, rev(7, `{"a":1}`), s.Epoch(), s.Ticket())
			s.ReadWithTicket(two, at(2), rev(2, `{"a":1}`), s.Epoch(), s.Ticket())
			ticket := s.Ticket()
			write(t, s, one, 8, `{"a":2}`)
			if !c.before {
				ticket = s.Ticket()
			}
			r := doc.Revision{Numbers: c.n, Source: []byte(`{"b":1}`)}
			if c.search {
				s.Read(pool, ref, r, s.Epoch())
			} else {
				s.ReadWithTicket(pool, ref, r, s.Epoch(), ticket)
			}
			wantKnown(t, s, one, !c.dropped)
			b, _ := s.Take(ended(), two, at(2), nil)
			if dropped := b.Kind == KindLost; dropped != c.dropped || dropped != (len(renewed) == 1) {
				t.Errorf("another document of the index is %v, told %v", b.Kind, renewed)
			}
			if c.n.Known() {
				b = take(t, s, pool, `{"b":2}`)
				if b.Kind != KindRead || b.Numbers != c.n || string(b.View) != `{"b":1}` {
					t.Errorf("what was read is %v %v %s", b.Kind, b.Numbers, b.View)
				}
			}
		})
	}
}

// TestReadsThatWereUnderWayWhenANewIndexWasNoticed: several clients read at once, after the index was made anew. The first answer shows
// that. The others are of the new index, too, although they were asked for before.
func TestReadsThatWereUnderWayWhenANewIndexWasNoticed(t *testing.T) {
	s, _ := newTest(t)
	s.ReadWithTicket(one, ref, rev(7, `{"a":1}`), s.Epoch(), s.Ticket())
	write(t, s, one, 8, `{"a":2}`)
	before, tickets := s.Epoch(), [...]uint64{s.Ticket(), s.Ticket(), s.Ticket(), s.Ticket()}
	for i, sess := range []Session{one, two, pool} {
		s.ReadWithTicket(sess, ref, rev(0, `{"x":1}`), before, tickets[i])
	}
	s.ReadWithTicket(two, at(1), rev(1, `{"y":1}`), before, tickets[3])
	for _, sess := range []Session{one, two, pool} {
		b := take(t, s, sess, `{"x":1,"mine":1}`)
		if want(t, b, KindRead, 0); string(b.View) != `{"x":1}` {
			t.Errorf("the client has read {\"x\":1}, and its base is %s", b.View)
		}
		b.Release()
	}
	b, _ := s.Take(ended(), two, at(1), nil)
	if want(t, b, KindRead, 1); b.View != nil {
		t.Errorf("%s may have been read in the old index", b.View)
	}
}

// Two clients that nothing tells apart read two documents each, by one request, after the index was made anew. The first answer shows that by
// the first document. Both clients have read the second document, and the one that writes later mustn't get the other's write as its base.
func TestAReadThatWasUnderWayIsNoOthers(t *testing.T) {
	s, _ := newTest(t)
	other := at(1)
	s.ReadWithTicket(pool, ref, rev(7, `{"a":1}`), s.Epoch(), s.Ticket())
	write(t, s, pool, 8, `{"a":2}`)
	before := s.Epoch()
	tickets := [...]uint64{s.Ticket(), s.Ticket()}
	for _, ticket := range tickets {
		s.ReadWithTicket(pool, ref, rev(0, `{"x":1}`), before, ticket)
		s.ReadWithTicket(pool, other, rev(1, `{"y":1}`), before, ticket)
	}
	for n := range 2 {
		b, err := s.Take(ended(), pool, other, []byte(`{"y":2}`))
		if err != nil {
			t.Fatal(err)
		}
		if want(t, b, KindRead, 1); b.View != nil {
			t.Errorf("write %d: %s may have been read in the old index", n, b.View)
		}
		if n == 0 {
			b.Commit(ack(2, `{"y":2}`))
		} else {
			b.Release()
		}
	}
	s.ReadWithTicket(pool, ref, rev(0, `{"old":1}`), before, tickets[1]) // other bytes: it is of the old index
	b := take(t, s, pool, `{"x":1,"mine":1}`)
	if want(t, b, KindRead, 0); string(b.View) != `{"x":1}` {
		t.Errorf("the base is %s", b.View)
	}
	b.Release()
	audit(t, s)
}

// The index is made anew twice, and the document has the same numbers each time. A client's two reads are under way meanwhile. The answer to
// the first one shows the first new index. So the answer to the second one, with other bytes, is of the second one, and what the client has
// in hand is no longer what it read before.
func TestAReadThatWasUnderWayIsOfAThirdIndex(t *testing.T) {
	s, _ := newTest(t)
	s.ReadWithTicket(one, ref, rev(2, `{"a":1}`), s.Epoch(), s.Ticket())
	before, first, second := s.Epoch(), s.Ticket(), s.Ticket()
	s.ReadWithTicket(one, ref, rev(2, `{"b":1}`), before, first)
	wantKnown(t, s, one, true)
	s.ReadWithTicket(one, ref, rev(2, `{"c":1}`), before, second)
	wantKnown(t, s, one, false)
}

func TestAnAnswerOfAnOlderRevisionThanWasAcknowledgedIsOfAnotherIndex(t *testing.T) {
	for name, before := range map[string]bool{"began after the other's answer": false, "began before it": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			for _, sess := range []Session{one, two} {
				s.Read(sess, ref, rev(7, `{"a":1}`), s.Epoch())
			}
			var b Base
			if before {
				b = take(t, s, two, `{"a":3}`)
			}
			write(t, s, one, 9, `{"a":2}`)
			if !before {
				b = take(t, s, two, `{"a":3}`)
			}
			b.Commit(ack(8, `{"a":3}`)) // before: the answers have overtaken each other
			wantKnown(t, s, one, before)
			wantKnown(t, s, two, true) // its answer is of the index that is there now
		})
	}
}

func TestAnIndexThatIsMissingIsForgotten(t *testing.T) {
	for name, late := range map[string]bool{"missing since": false, "made by the write": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			ticket := s.Ticket()
			s.ReadWithTicket(one, ref, rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
			write(t, s, one, 6, `{"a":2}`)
			if !late {
				ticket = s.Ticket()
			}
			s.IndexMissing(one.Credentials(), "shop", ticket)
			wantKnown(t, s, one, late)
		})
	}
}

// TestAnIndexThatIsMissingIsForgottenWhateverOthersWriteInTheirs: a client of another cluster writes all the time in its index of that name.
// If what was read of the lost index counted on, a write would be accepted under its numbers in the index that is made next.
func TestAnIndexThatIsMissingIsForgottenWhateverOthersWriteInTheirs(t *testing.T) {
	s, _ := newTest(t)
	other := identity.Named(bob, []byte("o"))
	s.ReadWithTicket(one, ref, rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
	s.ReadWithTicket(other, ref, rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
	ticket := s.Ticket()
	write(t, s, other, 6, `{"a":2}`)
	s.IndexMissing(one.Credentials(), "shop", ticket)
	wantKnown(t, s, one, false)
}

// TestAMissingIndexIsFoundOutOnce, however often clients ask for it, and although others see theirs meanwhile.
func TestAMissingIndexIsFoundOutOnce(t *testing.T) {
	found := 0
	s := New(Options{Memory: 4 << 20, Renewed: func(Credentials, string) { found++ }})
	for n := range 40_000 { // as many as it takes to have each place among what was seen
		sess := identity.Named(identity.CredentialsOf([]byte{byte(n), byte(n >> 8)}), []byte("s"))
		s.ReadWithTicket(sess, ref, rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
	}
	for range 3 {
		s.IndexMissing(one.Credentials(), "none", s.Ticket())
	}
	if found != 0 {
		t.Errorf("an index that there never was has ended %d times, and all that is known of others is asked again", found)
	}
}

// TestBasesOfAnIndexThatIsMadeAnewAreWhatTheirClientsHave has clients read and write a document of which each makes its change
// once. The index is deleted and made anew at any moment, around optimist. Whatever is detected of that, and when: the view of a
// base is what its client has in hand, and no change counts twice. So no sum and no list can run away.
func TestBasesOfAnIndexThatIsMadeAnewAreWhatTheirClientsHave(t *testing.T) {
	dropped := 0
	rapid.Check(t, func(t *rapid.T) {
		w := &renewal{s: New(Options{Memory: 4 << 20, Renewed: func(Credentials, string) { dropped++ }}), count: map[string]int{}}
		for i := range 3 {
			w.clients = append(w.clients, &renewalClient{name: fmt.Sprint("c", i), sess: identity.Named(alice, []byte{byte(i)})})
		}
		w.clients[2].sess = pool // alone in it
		t.Repeat(map[string]func(*rapid.T){
			"ask":    w.ask,
			"answer": w.answer,
			"search": w.search,
			"write":  w.write,
			"again":  w.write,
			"renew":  w.renew,
			"":       func(t *rapid.T) { audit(t, w.s) },
		})
	})
	if dropped == 0 {
		t.Error("no new index was detected: nothing was tested")
	}
}

// renewal is a document as the engine has it, and its clients.
type renewal struct {
	s       *Store
	seq     int64          // of the last write in the index
	n       int64          // of the document's revision; 0: there is none
	count   map[string]int // how often each change counts
	clients []*renewalClient
}

type renewalClient struct {
	name    string
	sess    Session
	changes int
	has     map[string]int // what it has in hand; nil: nothing
	read    bool           // as it was read
	asked   []askedRead
}

// askedRead is a read that the engine has answered, and its client hasn't seen.
type askedRead struct {
	at     Epoch
	ticket uint64
	n      int64
	count  map[string]int
}

func (w *renewal) client(t *rapid.T) *renewalClient {
	return rapid.SampledFrom(w.clients).Draw(t, "client")
}

func counted(count map[string]int) string {
	b, err := json.Marshal(count)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *renewal) ask(t *rapid.T) {
	if c := w.client(t); w.n != 0 {
		c.asked = append(c.asked, askedRead{at: w.s.Epoch(), ticket: w.s.Ticket(), n: w.n, count: maps.Clone(w.count)})
	}
}

func (w *renewal) answer(t *rapid.T) {
	c := w.client(t)
	if len(c.asked) == 0 || c.read && !c.sess.IsNamed() {
		t.Skip("nothing is asked, or what was read isn't written back yet: of an unnamed session each read is written back once")
	}
	i := rapid.IntRange(0, len(c.asked)-1).Draw(t, "read")
	r := c.asked[i]
	c.asked = slices.Delete(c.asked, 0, i+1) // those before it are given up
	w.s.ReadWithTicket(c.sess, ref, rev(r.n, counted(r.count)), r.at, r.ticket)
	c.has, c.read = r.count, true
}

func (w *renewal) search(t *rapid.T) {
	if c := w.client(t); w.n != 0 && c.sess.IsNamed() {
		c.asked = nil
		w.s.Read(c.sess, ref, rev(w.n, counted(w.count)), w.s.Epoch())
		c.has = maps.Clone(w.count)
	}
}

// renew makes the index anew, with a document whose numbers may be those of the old one.
func (w *renewal) renew(t *rapid.T) {
	w.seq = rapid.Int64Range(0, w.seq+1).Draw(t, "seq")
	w.n, w.count = 0, map[string]int{}
	if rapid.Bool().Draw(t, "restored") && w.seq > 0 {
		w.n, w.count = w.seq, map[string]int{fmt.Sprint("r", w.seq): 1}
	}
}

// write has a client change what it has, and the engine do it as package write would have it: under the guard of its base, or
// merged.
func (w *renewal) write(t *rapid.T) {
	c := w.client(t)
	sent := maps.Clone(c.has)
	if sent == nil {
		sent = map[string]int{}
	}
	c.changes++
	sent[fmt.Sprint(c.name, "-", c.changes)] = 1
	body := counted(sent)
	b, err := w.s.Take(ended(), c.sess, ref, []byte(body))
	switch {
	case err != nil:
		t.Fatal("it waits for itself")
	case b.Ambiguous:
		b.Release() // it is said that this is a guess
		return
	case b.View != nil && string(b.View) != counted(c.has):
		t.Fatalf("%s has %s in hand, and its base is %s (%v %v)", c.name, counted(c.has), b.View, b.Kind, b.Numbers)
	}
	var view map[string]int
	if b.View != nil {
		if err := json.Unmarshal(b.View, &view); err != nil {
			t.Fatal(err)
		}
	}
	after := sent
	if b.Numbers.Known() && b.Numbers != num(w.n) {
		if b.View == nil || b.OnlyGuards() || w.n == 0 {
			b.Release()
			return
		}
		after = maps.Clone(w.count)
		for k, n := range sent {
			after[k] += n - view[k]
		}
		maps.DeleteFunc(after, func(_ string, n int) bool { return n == 0 })
	}
	for k, n := range after {
		if n > 1 || n < 0 {
			t.Fatalf("%s counts %d times after the write of %s", k, n, c.name)
		}
	}
	w.seq++
	w.n, w.count, c.has, c.asked, c.read = w.seq, after, sent, nil, false // what it has asked for before, it has given up
	told := num(w.n)
	if stored := counted(after); stored != body {
		told = b.Numbers
	}
	b.Commit(Ack{Stored: rev(w.n, counted(after)), Sent: []byte(body), AnswerNumbers: told})
}

// The engine acknowledges a write with an older revision than one that was there before the write: the index is another one. What is only
// found, by a read or by a write that changes nothing, may come from a node that is cut off.
func TestAWriteThatLeavesAnOlderRevisionIsOfAnotherIndex(t *testing.T) {
	at := func(seqNo, term int64) doc.Numbers { return doc.Numbers{SeqNo: seqNo, PrimaryTerm: term} }
	for name, c := range map[string]struct {
		base, acked, left doc.Numbers // acked: of a write of another client before; zero: there was none
		found             bool        // the engine has only found the revision
		dropped           bool
	}{
		"than its base":                         {base: at(5, 1), left: at(2, 1), dropped: true},
		"than its base, and is only found":      {base: at(5, 1), left: at(2, 1), found: true},
		"of an older term than its base":        {base: at(5, 2), left: at(9, 1), dropped: true},
		"of an older term, and is only found":   {base: at(5, 2), left: at(9, 1), found: true},
		"of an older term than another write":   {base: at(1, 1), acked: at(5, 2), left: at(9, 1), dropped: true},
		"of an older term, found, as another":   {base: at(1, 1), acked: at(5, 2), left: at(9, 1), found: true},
		"a newer one than its base":             {base: at(5, 1), left: at(6, 1)},
		"of a newer term than its base":         {base: at(5, 1), left: at(2, 2)},
		"an unknown one":                        {base: at(5, 1)},
		"a newer one than another write's, too": {base: at(6, 2), acked: at(6, 2), left: at(7, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			var renewed int
			s, _ := newTest(t, func(o *Options) { o.Renewed = func(Credentials, string) { renewed++ } })
			if c.acked.Known() {
				b := take(t, s, two, `{"a":0}`)
				b.Commit(Ack{Stored: doc.Revision{Numbers: c.acked}, Sent: []byte(`{"a":0}`), Written: true})
			}
			read := doc.Revision{Numbers: c.base, Source: []byte(`{"a":1}`)}
			s.ReadWithTicket(one, ref, read, s.Epoch(), s.Ticket())
			s.ReadWithTicket(pool, ref, read, s.Epoch(), s.Ticket())
			b := take(t, s, one, `{"a":2}`)
			b.Commit(Ack{Stored: doc.Revision{Numbers: c.left, Source: []byte(`{"a":2}`)}, Sent: []byte(`{"a":2}`), Written: !c.found})
			wantKnown(t, s, pool, !c.dropped)
			if c.dropped != (renewed == 1) {
				t.Errorf("told %d times", renewed)
			}
			if c.dropped {
				wantKnown(t, s, one, true) // it has written in the new index
			}
		})
	}
}

// The shard's primary changes while a write is under way. Its answer, of the earlier term, may come after one of the later term.
func TestALateAnswerOfAnEarlierTermShowsNoOtherIndex(t *testing.T) {
	s, _ := newTest(t)
	acked := func(b Base, seqNo, term int64) {
		rev := doc.Revision{Numbers: doc.Numbers{SeqNo: seqNo, PrimaryTerm: term}}
		b.Commit(Ack{Stored: rev, Sent: []byte(`{"a":2}`), Written: true})
	}
	for _, sess := range []Session{one, two, pool} {
		s.Read(sess, ref, rev(1, `{"a":1}`), s.Epoch())
	}
	late := take(t, s, one, `{"a":2}`)
	acked(take(t, s, two, `{"a":3}`), 3, 2)
	acked(late, 2, 1)
	wantKnown(t, s, pool, true)
}

func TestAReadOfAnOlderRevisionIsNotNotedBeforeTheEngineWasAsked(t *testing.T) {
	s, _ := newTest(t)
	s.ReadWithTicket(one, ref, rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
	before := s.Ticket()
	b := take(t, s, one, `{"a":2}`)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(6), Written: true})
	for name, c := range map[string]struct {
		n      int64
		ticket uint64
		older  bool
	}{
		"sent before the write": {5, before, false},
		"sent after it":         {5, s.Ticket(), true},
		"the newest":            {6, s.Ticket(), false},
	} {
		reader := identity.Named(alice, []byte(name))
		if older := s.ReadUnlessOlder(reader, ref, rev(c.n, fmt.Sprintf(`{"a":%d}`, c.n-4)), s.Epoch(), c.ticket); older != c.older {
			t.Errorf("%s: %v", name, older)
		}
		if known := s.MayHaveBase(reader, ref); known == c.older {
			t.Errorf("%s: it is noted: %v", name, known)
		}
		wantKnown(t, s, one, true)
	}
}
