package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"optimist/internal/identity"
	"optimist/internal/rank"
)

// dist counts the fields of flat objects that differ, and how far their numbers are apart.
type dist struct{ edits, delta int }

func (d dist) Compare(o dist) int {
	return cmp.Or(cmp.Compare(d.edits, o.edits), cmp.Compare(d.delta, o.delta))
}

func distance(base, sent []byte) (dist, error) {
	var a, b map[string]any
	if base != nil {
		if err := json.Unmarshal(base, &a); err != nil {
			return dist{}, err
		}
	}
	if err := json.Unmarshal(sent, &b); err != nil {
		return dist{}, err
	}
	var d dist
	for k, v := range b {
		if was, ok := a[k]; !ok || !reflect.DeepEqual(was, v) {
			d.edits++
			x, number := was.(float64)
			if y, ok := v.(float64); ok && number {
				d.delta += max(int(x-y), int(y-x))
			}
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			d.edits++
		}
	}
	return d, nil
}

func TestClosestByNumberOfEditsIsTheBase(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1,"b":1,"c":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"a":2,"b":2,"c":1}`), s.Epoch())
	s.Read(pool, ref, rev(7, `{"a":3,"b":3,"c":3}`), s.Epoch())
	b := take(t, s, pool, `{"a":2,"b":2,"c":900}`)
	want(t, b, KindRead, 6)
	if !b.Ambiguous {
		t.Fatal("not ambiguous")
	}
}

func TestBaseWithNoEditOnlyIfThereIsNoOther(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"a":2,"b":2}`), s.Epoch())
	want(t, take(t, s, pool, `{"a":2,"b":2}`), KindRead, 5)
	b := take(t, s, pool, `{"a":2,"b":2} `)
	want(t, b, KindRead, 6)
	if b.Ambiguous {
		t.Fatal("ambiguous")
	}
}

func TestWhatMayBeARepetitionIsAGuess(t *testing.T) {
	for name, end := range map[string]func(b *Base){
		"in flight":    func(*Base) {},
		"acknowledged": func(b *Base) { b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
			first := take(t, s, pool, `{"a":2}`)
			if first.Ambiguous {
				t.Error("nothing else has been sent or read")
			}
			end(&first)
			for sent, guess := range map[string]bool{`{"a":2}`: true, `{"a":3}`: false} {
				s.Read(pool, ref, rev(7, `{"a":7}`), s.Epoch())
				b := take(t, s, pool, sent)
				want(t, b, KindRead, 7)
				if b.Ambiguous != guess {
					t.Errorf("%s: ambiguous %v", sent, b.Ambiguous)
				}
				b.Release()
				_ = take(t, s, pool, `{"a":8}`)
			}
		})
	}
}

func TestWhatNobodyCouldHaveMadeWasSavedUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		older, saved, newer string // revisions 5, 6 or more, and 9
		at                  int64
		base                int64
	}{
		"a count, one write apart":      {`{"a":1}`, `{"a":2}`, "", 6, 5},
		"two fields, one write apart":   {`{"a":1,"b":1}`, `{"a":2,"b":2}`, "", 6, 5},
		"three fields, one write apart": {`{"a":1,"b":1,"c":1}`, `{"a":2,"b":2,"c":2}`, "", 6, 6},
		"a count, two writes apart":     {`{"a":1}`, `{"a":2}`, "", 7, 7},
		"put back to what it was":       {"", `{"a":1}`, `{"a":2}`, 6, 9},
		"three fields put back":         {"", `{"a":1,"b":1,"c":1}`, `{"a":2,"b":2,"c":2}`, 6, 6},
		"older far, newer near":         {`{"a":1,"b":1,"c":1}`, `{"a":2,"b":2,"c":2}`, `{"a":2,"b":2,"c":3}`, 6, 9},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			for _, r := range []struct {
				n    int64
				body string
			}{{5, c.older}, {c.at, c.saved}, {9, c.newer}} {
				if r.body != "" {
					s.Read(pool, ref, rev(r.n, r.body), s.Epoch())
				}
			}
			b := take(t, s, pool, c.saved)
			want(t, b, KindRead, c.base)
			if !b.Ambiguous {
				t.Error("a guess that isn't said")
			}
		})
	}
}

func TestThenTheSmallestTotalDelta(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"a":8}`), s.Epoch())
	s.Read(pool, ref, rev(7, `{"a":4}`), s.Epoch())
	want(t, take(t, s, pool, `{"a":9}`), KindRead, 6)
	want(t, take(t, s, pool, `{"a":9}`), KindRead, 7)
}

func TestThenTheOldest(t *testing.T) {
	s, _ := newTest(t)
	for _, n := range []int64{7, 5, 6} {
		s.Read(pool, ref, rev(n, `{"a":1}`), s.Epoch())
	}
	for _, n := range []int64{5, 6, 7} {
		want(t, take(t, s, pool, `{"a":2}`), KindRead, n)
	}
}

func TestCandidateWithoutABodyComesAfterThoseThatCanBeMeasured(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, ""), s.Epoch())
	s.Read(pool, ref, rev(6, `{"a":9}`), s.Epoch())
	s.Read(pool, ref, rev(7, `{"b":9}`), s.Epoch())
	want(t, take(t, s, pool, `{"b":9}`), KindRead, 6)
	b := take(t, s, pool, `{"b":9}`) // no edit to 7: 5 is another
	want(t, b, KindRead, 5)
	if b.View != nil || b.Stored != nil {
		t.Fatalf("bodies of a revision that was never seen: %q", b.View)
	}
	want(t, take(t, s, pool, `{"b":9}`), KindRead, 7)
}

func TestOldestWhereNothingCanBeMeasured(t *testing.T) {
	s, _ := newTest(t)
	for n := int64(5); n < 9; n++ {
		s.Read(pool, ref, rev(n, `{"a":1}`), s.Epoch())
	}
	want(t, take(t, s, pool, `no json`), KindRead, 5)
	b, err := s.Take(ended(), pool, ref, nil) // a delete
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, KindRead, 6)
	s.o.Rank = func(cs []rank.Candidate, _ rank.Sent) rank.Choice {
		return rank.Choice{Best: slices.IndexFunc(cs, func(c rank.Candidate) bool { return !c.Spent }), Ambiguous: true}
	}
	b = take(t, s, pool, `{"a":1}`)
	want(t, b, KindRead, 7)
	if !b.Ambiguous {
		t.Fatal("not ambiguous")
	}
}

func TestAbsentIsMeasuredAsAnEmptyDocument(t *testing.T) {
	s, _ := newTest(t)
	s.ReadAbsent(pool, ref, s.Epoch())
	s.Read(pool, ref, rev(3, `{"a":1,"b":1,"c":1}`), s.Epoch())
	want(t, take(t, s, pool, `{"x":1}`), KindAbsent, -1)
	s.ReadAbsent(pool, ref, s.Epoch())
	want(t, take(t, s, pool, `{"a":1,"b":1,"c":2}`), KindRead, 3)
}

func TestGivenNumbersTakeTheirRead(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"a":2}`), s.Epoch())
	b := s.TakeAt(pool, ref, num(6), []byte(`{"a":2}`))
	want(t, b, KindRead, 6)
	if string(b.View) != `{"a":2}` || b.Ambiguous {
		t.Fatalf("view %q ambiguous %v", b.View, b.Ambiguous)
	}
	b.Commit(Ack{Stored: rev(7, `{"a":3}`), Sent: []byte(`{"a":3}`)})
	b = take(t, s, pool, `{"a":4}`)
	want(t, b, KindRead, 5)
	if b.Ambiguous {
		t.Fatal("the read that was used up is still a candidate")
	}
}

func TestGivenNumbersOfTheLastAnswerNameTheView(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1,"f":1}`), s.Epoch())
	b := take(t, s, one, `{"a":2,"f":1}`)
	b.Commit(Ack{Stored: rev(9, `{"a":2,"f":8}`), Sent: []byte(`{"a":2,"f":1}`), AnswerNumbers: num(5)})
	b = s.TakeAt(one, ref, num(5), []byte(`{"a":1,"f":1}`))
	want(t, b, KindView, 9)
	if string(b.View) != `{"a":2,"f":1}` || string(b.Stored) != `{"a":2,"f":8}` {
		t.Fatalf("view %q stored %q", b.View, b.Stored)
	}
	b.Release()
	// Only who has read what was stored knows its numbers.
	b = s.TakeAt(one, ref, num(9), []byte(`{"a":1,"f":1}`))
	want(t, b, KindExplicit, 9)
	if string(b.View) != `{"a":2,"f":8}` {
		t.Fatalf("view %q", b.View)
	}
	b.Release()
}

// Three clients have read a revision, and two have written from it. The answer to the second has the numbers of what it read.
func TestGivenNumbersOfAReadAreNotSomebodyElsesView(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1,"f":1}`), s.Epoch())
	s.Read(pool, ref, rev(5, `{"a":1,"f":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2,"f":1}`)
	b.Commit(Ack{Stored: rev(9, `{"a":2,"f":8}`), Sent: []byte(`{"a":2,"f":1}`), AnswerNumbers: num(5)})
	given := func() Base { return s.TakeAt(pool, ref, num(5), []byte(`{"a":3,"f":1}`)) }
	b = given()
	if want(t, b, KindRead, 5); !b.Ambiguous || !b.Guessed || string(b.View) != `{"a":1,"f":1}` {
		t.Fatalf("%+v: it may be who has the answer", b)
	}
	b.Release()
	read, err := s.TakeCopy(ended(), pool, ref, Copy{Numbers: num(5), Served: true}, []byte(`{"a":3,"f":1}`))
	if err != nil {
		t.Fatal(err)
	}
	want(t, read, KindRead, 5) // who has the tag of a read means what was read
	s.Read(one, ref, rev(5, `{"a":1,"f":1}`), s.Epoch())
	b = given()
	want(t, b, KindExplicit, 5)
	if b.View != nil {
		t.Fatalf("view %q, which may be another's", b.View)
	}
}

func TestDoubtKeepsTheNumbersOnly(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, one, `{"a":2}`)
	b.Doubt()
	b = take(t, s, one, `{"a":2}`)
	want(t, b, KindRead, 5)
	if b.View != nil || b.Stored != nil || !b.OnlyGuards() {
		t.Fatalf("view %q stored %q, doubtful %v", b.View, b.Stored, b.OnlyGuards())
	}
	b.Release()
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	if b = take(t, s, one, `{"a":2}`); b.OnlyGuards() || b.View == nil {
		t.Fatalf("a read leaves no doubt: view %q", b.View)
	}
}

func TestGivenNumbersHaveTheBodyThatAnotherSessionHolds(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	b := s.TakeAt(pool, ref, num(5), []byte(`{"a":2}`))
	want(t, b, KindExplicit, 5)
	if string(b.View) != `{"a":1}` {
		t.Fatalf("view %q", b.View)
	}
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	want(t, take(t, s, pool, `{"a":3}`), KindView, 6)
	want(t, take(t, s, one, `{"a":3}`), KindRead, 5) // each its own
}

func TestNumbersFromWhichANamedSessionHasWrittenHaveNoBody(t *testing.T) {
	s, _ := newTest(t)
	for _, sess := range []Session{one, identity.Named(alice, []byte("two"))} { // the body stays for the other one
		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
	}
	b := s.TakeAt(one, ref, num(5), []byte(`{"a":2}`))
	want(t, b, KindRead, 5)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(6)})

	b = s.TakeAt(one, ref, num(5), []byte(`{"a":2}`)) // the same again, by a client that gave up waiting
	want(t, b, KindView, 6)
	wantView(t, b, `{"a":2}`, `{"a":2}`)
	b.Release()
	b = s.TakeAt(one, ref, num(5), []byte(`{"a":2,"b":1}`)) // from memory, with the numbers of before
	want(t, b, KindExplicit, 5)
	if b.View != nil {
		t.Errorf("counted from %q, of which a part is written", b.View)
	}
	b.Release()
	b = s.TakeAt(one, ref, num(6), []byte(`{"a":2,"b":1}`))
	want(t, b, KindView, 6)
	b.Commit(Ack{Stored: rev(8, `{"a":2,"b":1,"c":1}`), Sent: []byte(`{"a":2,"b":1}`), AnswerNumbers: num(6)})
	b = s.TakeAt(one, ref, num(6), []byte(`{"a":3,"b":1}`)) // what was told now
	want(t, b, KindView, 8)
	b.Release()

	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	want(t, s.TakeAt(one, ref, num(5), []byte(`{"a":3}`)), KindRead, 5) // who reads it again has it
}

// One client reads and writes, again and again. Now and then it looks twice, or another client looks while a write is under way. The first
// one sets the state back to what it was, and that is written.
func TestALoneClientSetsAStateBack(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	states := [3]string{"open", "closed", "review"}
	version := int64(5)
	body := func(n int) string { return `{"state":"` + states[n%len(states)] + `"}` }
	s.Read(pool, ref, rev(version, body(0)), s.Epoch()) // and looks
	for n := range 30 {
		s.Read(pool, ref, rev(version, body(n)), s.Epoch())
		if n%7 == 0 {
			s.Read(pool, ref, rev(version, body(n)), s.Epoch())
		}
		b := take(t, s, pool, body(n+1))
		if string(b.View) == body(n+1) {
			t.Fatalf("change %d, from %s to %s, is taken for a save of what was looked at before", n, body(n), body(n+1))
		}
		if n%5 == 0 {
			s.Read(pool, ref, rev(version, body(n)), s.Epoch())
		}
		version++
		b.Commit(Ack{Stored: rev(version, body(n+1)), Sent: []byte(body(n + 1))})
	}
}

// A client that works alone has its answer, and has read what it wrote, before it writes again. Where a write comes sooner, several clients
// are at work: then one of them may save what it read unchanged, though somebody has read something newer.
func TestSeveralClientsAreKnownByTheirWrites(t *testing.T) {
	for name, write := range map[string]func(s *Store){
		"alone": func(*Store) {},
		"what was written isn't read": func(s *Store) {
			b := take(t, s, pool, `{"state":"review"}`)
			b.Commit(Ack{Stored: rev(6, `{"state":"review"}`), Sent: []byte(`{"state":"review"}`)})
			b = take(t, s, pool, `{"state":"open"}`)
			b.Release()
		},
		"another write is under way": func(s *Store) {
			first, second := take(t, s, pool, `{"state":"review"}`), take(t, s, pool, `{"state":"open"}`)
			first.Release()
			second.Release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t, func(o *Options) { o.Rank = nil })
			for range 2 {
				s.Read(pool, ref, rev(5, `{"state":"new"}`), s.Epoch())
			}
			write(s)
			s.Read(pool, ref, rev(7, `{"state":"closed"}`), s.Epoch())
			s.Read(pool, ref, rev(8, `{"state":"open"}`), s.Epoch())
			b := take(t, s, pool, `{"state":"closed"}`)
			if saved := b.Numbers == num(7); saved != (name != "alone") {
				t.Errorf("its base is %v", b.Numbers)
			}
			b.Release()
		})
	}
}

// A client that is alone enters itself, takes itself out again, and counts that. The document returns to what somebody else has looked at,
// but for the count. Once nothing has shown other clients for several writes, the base is what the client has read last.
func TestALoneClientReturnsToWhatOthersLookedAt(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	body := func(n int) string {
		in := `{}`
		if n%2 == 1 {
			in = `{"ada":"since nine"}`
		}
		return fmt.Sprintf(`{"in":%s,"n":%d}`, in, n)
	}
	for n := range 40 {
		now := rev(int64(n+5), body(n))
		s.Read(pool, ref, now, s.Epoch())
		if n%2 == 0 {
			s.Read(pool, ref, now, s.Epoch()) // and somebody looks
		}
		b := take(t, s, pool, body(n+1))
		if n >= 16 && string(b.View) != body(n) {
			t.Fatalf("change %d: its base is %s", n, b.View)
		}
		b.Commit(Ack{Stored: rev(int64(n+6), body(n+1)), Sent: []byte(body(n + 1))})
	}
}

// A client works for a while, and is taken to be alone. Then a text shows that a second one has written from an older revision. From then on
// a switch is enough for that: alone, one client would have turned it back.
func TestContentShowsThatAnotherClientHasWritten(t *testing.T) {
	for name, both := range map[string]bool{"alone": false, "two": true} {
		s, _ := newTest(t, func(o *Options) { o.Rank = nil })
		version := int64(5)
		write := func(sent, stored string) (view string) {
			b := take(t, s, pool, sent)
			version++
			b.Commit(Ack{Stored: rev(version, stored), Sent: []byte(sent)})
			s.Read(pool, ref, rev(version, stored), s.Epoch())
			return string(b.View)
		}
		body := func(text string, a, b bool) string { return fmt.Sprintf(`{"text":"%s","a":%v,"b":%v}`, text, a, b) }
		last := body("a long story begins", false, false)
		for range 2 { // and somebody looks
			s.Read(pool, ref, rev(version, last), s.Epoch())
		}
		for n := range 8 {
			next := body(fmt.Sprintf("a long story goes on for the time %d", n), false, false)
			write(next, next)
			last = next
		}
		s.Read(pool, ref, rev(version, last), s.Epoch())
		after := body("and then something else", false, false)
		write(after, after)
		if both { // it has read what was there before
			write(strings.Replace(last, `"b":false`, `"b":true`, 1), strings.Replace(after, `"b":false`, `"b":true`, 1))
			after = strings.Replace(after, `"b":false`, `"b":true`, 1)
		}
		s.Read(pool, ref, rev(version, after), s.Epoch())
		flipped := strings.Replace(after, `"a":false`, `"a":true`, 1)
		write(flipped, flipped)
		got := write(strings.Replace(after, "something", "nothing", 1), strings.Replace(flipped, "something", "nothing", 1))
		if older := got == after; older != both {
			t.Errorf("%s: the base is %s", name, got)
		}
	}
}

// The session has deleted a document that its clients have read. A write then makes a new document, or saves one of the reads.
func TestAfterADeleteContentTellsWhatIsNew(t *testing.T) {
	const was, stale, anew = `{"name":"tea of spring","note":"green and dry","n":1}`, `{"name":"tea of spring","note":"green and dry","n":2}`,
		`{"name":"rum of winter","note":"brown and old","n":9}`
	for name, c := range map[string]struct {
		body, sent string
		read404    bool
		kind       Kind
		ambiguous  bool
	}{
		"a new one":                   {was, anew, false, KindAbsent, true},
		"a new one, seen":             {was, anew, true, KindAbsent, true},
		"a stale one":                 {was, stale, false, KindRead, false},
		"a stale one, seen":           {was, stale, true, KindRead, false},
		"of what isn't known":         {"", anew, false, KindRead, true},
		"of what isn't known, seen":   {"", anew, true, KindAbsent, true},
		"no JSON":                     {was, "no json", false, KindRead, true},
		"a counter":                   {`{"n":1}`, `{"n":2}`, false, KindRead, true},
		"a counter that was not read": {`{"n":1}`, `{"n":2}`, true, KindAbsent, true},
	} {
		for name, earlier := range map[string]bool{name: false, name + ", with a history": true} {
			t.Run(name, func(t *testing.T) {
				s, _ := newTest(t, func(o *Options) { o.Rank = nil })
				if earlier {
					s.Read(pool, ref, rev(4, strings.ReplaceAll(c.body, "1", "0")), s.Epoch())
				}
				for range 2 {
					s.Read(pool, ref, rev(5, c.body), s.Epoch())
				}
				b, err := s.Take(ended(), pool, ref, nil)
				if err != nil {
					t.Fatal(err)
				}
				b.Delete()
				if c.read404 {
					s.ReadAbsent(pool, ref, s.Epoch())
				}
				b = take(t, s, pool, c.sent)
				if b.Kind != c.kind || b.Ambiguous != c.ambiguous && !earlier {
					t.Errorf("%v, ambiguous %v; want %v, %v", b.Kind, b.Ambiguous, c.kind, c.ambiguous)
				}
			})
		}
	}
	// A second delete makes no new document.
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	for range 3 {
		s.Read(pool, ref, rev(5, was), s.Epoch())
	}
	for range 3 {
		b, err := s.Take(ended(), pool, ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		want(t, b, KindRead, 5)
		if b.Ambiguous {
			t.Error("a delete is ambiguous")
		}
		b.Delete()
	}
}

// Somebody has looked for the document before it was made, and has written nothing. That guards no delete.
func TestADeletesClientHasSeenADocument(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	s.ReadAbsent(pool, ref, s.Epoch())
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
	b, err := s.Take(ended(), pool, ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, KindRead, 5)
}

// Two clients have looked for the document, one of them has made it, and deletes it: the other's read is still outstanding.
func TestADeletesClientHasMadeTheDocument(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	s.ReadAbsent(pool, ref, s.Epoch())
	s.ReadAbsent(pool, ref, s.Epoch())
	b, err := s.Take(ended(), pool, ref, []byte(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	b.Commit(Ack{Stored: rev(5, `{"n":1}`), Sent: []byte(`{"n":1}`)})
	b, err = s.Take(ended(), pool, ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, KindView, 5)
}
