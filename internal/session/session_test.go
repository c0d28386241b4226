package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// clock is a clock that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

const maxAge = 5 * time.Minute

// newTest returns a store that is older than the sessions' age, so that its start explains nothing.
func newTest(t *testing.T, change ...func(*Options)) (*Store, *clock) {
	t.Helper()
	c := &clock{t: time.Unix(1_700_000_000, 0)}
	o := Options{MaxAge: maxAge, Memory: 1 << 20, Now: c.now, Rank: inHand}
	for _, f := range change {
		f(&o)
	}
	s := New(o)
	c.advance(maxAge)
	t.Cleanup(func() { audit(t, s) })
	return s, c
}

var (
	alice = identity.CredentialsOf([]byte("Basic alice"))
	bob   = identity.CredentialsOf([]byte("Basic bob"))
	here  = netip.MustParseAddr("192.0.2.1")
	there = netip.MustParseAddr("192.0.2.2")
	pool  = identity.Inferred(alice, here)
	one   = identity.Named(alice, []byte("thread-1"))
	ref   = doc.Ref{Index: "shop", ID: "1"}
)

func rev(n int64, body string) doc.Revision {
	r := doc.Revision{Numbers: doc.Numbers{SeqNo: n, PrimaryTerm: 1}, Version: n + 1}
	if body != "" {
		r.Source = []byte(body)
	}
	return r
}

func num(n int64) doc.Numbers { return doc.Numbers{SeqNo: n, PrimaryTerm: 1} }

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// take takes a base that must be there without waiting.
func take(t *testing.T, s *Store, sess Session, sent string) Base {
	t.Helper()
	b, err := s.Take(ended(), sess, ref, []byte(sent))
	if err != nil {
		t.Fatalf("Take had to wait")
	}
	return b
}

// want checks a base's kind and numbers.
func want(t *testing.T, b Base, k Kind, n int64) {
	t.Helper()
	x := num(n)
	if n < 0 {
		x = doc.Numbers{}
	}
	if b.Kind != k || b.Numbers != x {
		t.Fatalf("base is %v (%v) %v, want %v %v", b.Kind, b.Reason, b.Numbers, k, x)
	}
}

func wantLost(t *testing.T, b Base, why Reason) {
	t.Helper()
	if b.Kind != KindLost || b.Reason != why {
		t.Fatalf("base is %v (%v), want lost (%v)", b.Kind, b.Reason, why)
	}
}

func TestReadIsTheBase(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		body := []byte(`{"a":1}`)
		s.Read(sess, ref, doc.Revision{Numbers: num(5), Version: 3, Source: body}, s.Epoch())
		copy(body, "XXXXXXX") // the caller's buffer is reused
		b := take(t, s, sess, `{"a":2}`)
		want(t, b, KindRead, 5)
		if string(b.View) != `{"a":1}` || string(b.Stored) != `{"a":1}` || b.Version != 3 || b.Ambiguous {
			t.Fatalf("base %q %q version %d ambiguous %v", b.View, b.Stored, b.Version, b.Ambiguous)
		}
	}
}

func TestEachReadServesOneWrite(t *testing.T) {
	s, _ := newTest(t)
	for range 3 {
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	}
	for range 3 {
		want(t, take(t, s, pool, `{"a":2}`), KindRead, 5)
	}
	if _, err := s.Take(ended(), pool, ref, []byte(`{"a":2}`)); !errors.Is(err, context.Canceled) {
		t.Fatalf("a fourth write got a base from three reads: %v", err)
	}
}

func TestReadIsOutstandingUntilAWriteIsAcknowledged(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	b = take(t, s, pool, `{"a":3}`)
	want(t, b, KindView, 6)
}

func TestFailedWriteGivesItsReadBack(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
		b := take(t, s, sess, `{"a":2}`)
		b.View = []byte("the caller's")
		b.Release()
		b = take(t, s, sess, `{"a":2}`)
		want(t, b, KindRead, 5)
		if string(b.View) != `{"a":1}` {
			t.Fatalf("view %q", b.View)
		}
	}
}

func TestReadThatIsGivenBackKeepsItsAgeAndItsPlace(t *testing.T) {
	s, c := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":0}`)
	c.advance(time.Minute)
	s.Read(pool, ref, rev(6, `{"a":1}`), s.Epoch())
	b.Release()
	b = take(t, s, pool, `{"a":0}`) // as close to both
	want(t, b, KindRead, 5)
	c.advance(maxAge - time.Minute)
	b.Release() // now it is too old
	want(t, take(t, s, pool, `{"a":0}`), KindRead, 6)
}

func TestReadThatIsGivenBackTooLateIsNotMadeYoungByAnother(t *testing.T) {
	s, c := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":0}`)
	c.advance(maxAge - 1)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(1)
	b.Release()
	want(t, take(t, s, pool, `{"a":0}`), KindRead, 5)
	if _, err := s.Take(ended(), pool, ref, nil); err == nil {
		t.Fatal("two bases of one read that is young enough")
	}
}

func TestReadsOfOneRevisionAreOneInAnyOrderOfTheirReturn(t *testing.T) {
	s, c := newTest(t)
	var bases [2]Base
	for i := range bases {
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		bases[i] = take(t, s, pool, `{"a":0}`)
		c.advance(time.Minute)
		s.Read(pool, at(i), rev(5, `{"a":1}`), s.Epoch())
	}
	s.Read(pool, ref, rev(6, `{"a":1}`), s.Epoch())
	bases[0].Release()
	bases[1].Release()
	c.advance(maxAge - time.Minute - 1) // the first alone would be too old
	want(t, take(t, s, pool, `{"a":0}`), KindRead, 5)
	want(t, take(t, s, pool, `{"a":0}`), KindRead, 5)
	want(t, take(t, s, pool, `{"a":0}`), KindRead, 6)
}

func TestReadThatAgedOutIsNoBase(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, c := newTest(t)
		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
		c.advance(maxAge - 1)
		b := take(t, s, sess, `{"a":2}`)
		want(t, b, KindRead, 5)
		b.Release()
		c.advance(1)
		wantLost(t, take(t, s, sess, `{"a":2}`), ReasonAged)
	}
}

func TestNewerReadReplacesInANamedSession(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	s.Read(one, ref, rev(6, `{"a":2}`), s.Epoch())
	s.Read(one, ref, rev(6, `{"a":2}`), s.Epoch())
	b := take(t, s, one, `{"a":1,"b":1}`) // closer to 5
	want(t, b, KindRead, 6)
	if b.Ambiguous {
		t.Fatal("ambiguous")
	}
	if _, err := s.Take(ended(), one, ref, nil); err == nil {
		t.Fatal("the replaced reads are still outstanding")
	}
}

func TestNewerReadReplacesOneThatIsGivenBackLater(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	first := take(t, s, one, `{"a":2}`)
	s.Read(one, ref, rev(6, `{"a":5}`), s.Epoch())
	second := take(t, s, one, `{"a":6}`)
	first.Release()
	second.Commit(Ack{Stored: rev(7, `{"a":6}`), Sent: []byte(`{"a":6}`)})
	want(t, take(t, s, one, `{"a":7}`), KindView, 7)
}

func TestReplacedReadDoesNotComeBackAfterALateAnswer(t *testing.T) {
	// What is known of the order of the reads in flight must outlive everything else.
	s, _ := newTest(t)
	before := s.Epoch()
	s.DropIndex(Credentials{}, "shop")
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	first := take(t, s, one, `{"a":2}`)
	s.Read(one, ref, rev(6, `{"a":5}`), s.Epoch())
	second := take(t, s, one, `{"a":6}`)
	s.Read(one, ref, rev(1, `{"a":5}`), before)
	first.Release()
	if _, err := s.Take(ended(), one, ref, nil); err == nil {
		t.Fatal("a base beside the write in flight")
	}
	second.Release()
	want(t, take(t, s, one, `{"a":7}`), KindRead, 6)
}

func TestReadsOfAnInferredSessionAddUp(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"a":1,"b":1}`), s.Epoch())
	want(t, take(t, s, pool, `{"a":2,"b":1}`), KindRead, 6)
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 5)
}

func TestAfterAWriteTheSessionKnowsWhatItSent(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, one, `{"a":2}`)
	sent, stored := []byte(`{"a":2}`), []byte(`{"a":2,"b":9}`)
	b.Commit(Ack{Stored: doc.Revision{Numbers: num(8), Version: 4, Source: stored}, Sent: sent})
	copy(sent, "XXXXXXX")
	copy(stored, "XXXXXXX")
	b = take(t, s, one, `{"a":3}`)
	want(t, b, KindView, 8)
	if string(b.View) != `{"a":2}` || string(b.Stored) != `{"a":2,"b":9}` || b.Version != 4 {
		t.Fatalf("view %q stored %q version %d", b.View, b.Stored, b.Version)
	}
	b.Release()
	want(t, take(t, s, one, `{"a":3}`), KindView, 8)
}

func TestOwnViewIsACandidateOnlyWhenNoReadIsOutstanding(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	s.Read(pool, ref, rev(4, `{"a":7,"b":7,"c":7}`), s.Epoch())
	b = take(t, s, pool, `{"a":3}`) // much closer to the view
	want(t, b, KindRead, 4)
	if b.Ambiguous {
		t.Fatal("ambiguous with one read")
	}
	// The read is reserved and so still outstanding.
	if _, err := s.Take(ended(), pool, ref, []byte(`{"a":3}`)); err == nil {
		t.Fatal("the view was taken beside a write in flight")
	}
	b.Release()
	want(t, take(t, s, pool, `{"a":3}`), KindRead, 4)
}

func TestViewIsGivenBackOnlyIfNoneIsNewer(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	old := take(t, s, pool, `{"a":3}`)
	want(t, old, KindView, 6)
	s.Read(pool, ref, rev(6, `{"a":2}`), s.Epoch())
	b = take(t, s, pool, `{"b":1}`)
	b.Commit(Ack{Stored: rev(7, `{"b":1}`), Sent: []byte(`{"b":1}`)})
	newer := take(t, s, pool, `{"b":2}`)
	want(t, newer, KindView, 7)
	old.Release()
	if _, err := s.Take(ended(), pool, ref, nil); err == nil {
		t.Fatal("the older view is back while the newer one is in flight")
	}
	newer.Release()
	want(t, take(t, s, pool, `{"b":2}`), KindView, 7)
}

// A client gives a write up, reads again, and writes what it has read now. Only then is the first write answered. What it had sent there is
// no longer what the client has in hand: from there, all that came since would count twice.
func TestALateAnswerLeavesANamedSessionWhatItHasInHand(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"l":[]}`), s.Epoch())
	late := take(t, s, one, `{"l":[1]}`)
	s.Read(one, ref, rev(7, `{"l":[1,9]}`), s.Epoch())
	next := take(t, s, one, `{"l":[1,9,2]}`)
	want(t, next, KindRead, 7)
	next.Commit(Ack{Stored: rev(8, `{"l":[1,9,2]}`), Sent: []byte(`{"l":[1,9,2]}`)})
	late.Commit(Ack{Stored: rev(6, `{"l":[1]}`), Sent: []byte(`{"l":[1]}`)})
	b := take(t, s, one, `{"l":[1,9,2,3]}`)
	want(t, b, KindView, 8)
	if string(b.View) != `{"l":[1,9,2]}` {
		t.Errorf("from %s", b.View)
	}
}

// newGivenUp is a store whose named client has given the write late up, has read again, and has written {"l":[9,2]}, which left revision 8.
func newGivenUp(t *testing.T, with ...func(*Options)) (s *Store, late Base) {
	t.Helper()
	s, _ = newTest(t, with...)
	s.Read(one, ref, rev(5, `{"l":[]}`), s.Epoch())
	late = take(t, s, one, `{"l":[1]}`)
	s.Read(one, ref, rev(7, `{"l":[9]}`), s.Epoch())
	next := take(t, s, one, `{"l":[9,2]}`)
	next.Commit(Ack{Stored: rev(8, `{"l":[9,2]}`), Sent: []byte(`{"l":[9,2]}`)})
	return s, late
}

// The write that was given up may even be merged after the one that came later.
func TestAWriteThatItsClientGaveUpIsNoViewThoughItIsTheNewest(t *testing.T) {
	s, late := newGivenUp(t)
	late.Commit(Ack{Stored: rev(9, `{"l":[9,2,1]}`), Sent: []byte(`{"l":[1]}`), AnswerNumbers: num(5), StoredDiffers: true})
	b := take(t, s, one, `{"l":[9,2]}`)
	if want(t, b, KindView, 8); string(b.View) != `{"l":[9,2]}` {
		t.Errorf("from %s", b.View)
	}
}

// Meanwhile the memory was full, and what the session has in hand had to be forgotten, once or twice. What it had sent by the late write is no
// view all the same.
func TestAWriteThatItsClientGaveUpIsNoViewAfterAnEviction(t *testing.T) {
	for _, again := range []bool{false, true} {
		s, late := newGivenUp(t, func(o *Options) { o.Memory = 64 << 10 })
		crowd(s, one)
		if again {
			s.Read(one, ref, rev(8, `{"l":[9,2]}`), s.Epoch())
			crowd(s, one)
		}
		late.Commit(Ack{Stored: rev(9, `{"l":[9,2,1]}`), Sent: []byte(`{"l":[1]}`), AnswerNumbers: num(5), StoredDiffers: true})
		b := take(t, s, one, `{"l":[9,2,3]}`)
		wantLost(t, b, ReasonEvicted)
		b.Release()
	}
}

// Without that, an eviction while a write is out takes nothing from the session: it has in hand what it has sent.
func TestAWriteIsAViewAfterAnEviction(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 64 << 10 })
	s.Read(one, ref, rev(5, `{"l":[]}`), s.Epoch())
	b := take(t, s, one, `{"l":[1]}`)
	crowd(s, one)
	b.Commit(Ack{Stored: rev(6, `{"l":[1]}`), Sent: []byte(`{"l":[1]}`)})
	want(t, take(t, s, one, `{"l":[1,2]}`), KindView, 6)
}

// The write that was given up comes to the engine after the client has found no document, and has deleted it to be sure. The client's next
// document is a new one: counted from the late write, it would take away what that one has stored.
func TestAWriteThatItsClientGaveUpIsNoViewAfterADelete(t *testing.T) {
	s, _ := newTest(t)
	late := take(t, s, one, `{"l":[1]}`)
	want(t, late, KindNone, -1)
	s.ReadAbsent(one, ref, s.Epoch())
	next, _ := s.Take(ended(), one, ref, nil)
	want(t, next, KindAbsent, -1)
	next.Delete()
	late.Commit(Ack{Stored: rev(7, `{"l":[1]}`), Sent: []byte(`{"l":[1]}`)})
	want(t, take(t, s, one, `{"l":[2]}`), KindAbsent, -1)
}

// What the client has in hand stays, too, if a later write of its own has it reserved, and fails.
func TestALateAnswerLeavesANamedSessionWhatItsNextWriteGivesBack(t *testing.T) {
	s, late := newGivenUp(t)
	refused := s.TakeAt(one, ref, num(8), []byte(`{"l":[9,2,3]}`))
	want(t, refused, KindView, 8)
	late.Commit(Ack{Stored: rev(9, `{"l":[9,2,1]}`), Sent: []byte(`{"l":[1]}`), StoredDiffers: true})
	refused.Release()
	want(t, take(t, s, one, `{"l":[9,2,3]}`), KindView, 8)
}

// A script of the client has changed what its earlier write left.
func TestALateAnswerLeavesNoViewBeforeWhatTheSessionHasDoneSince(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"l":[]}`), s.Epoch())
	late := take(t, s, one, `{"l":[1]}`)
	s.Read(one, ref, rev(6, `{"l":[1]}`), s.Epoch())
	s.ReadUnknown(one, ref)
	late.Commit(Ack{Stored: rev(6, `{"l":[1]}`), Sent: []byte(`{"l":[1]}`)})
	if b := take(t, s, one, `{"l":[1,2]}`); b.Kind != KindLost {
		t.Errorf("base is %v: nobody knows what the client has in hand", b.Kind)
	}
}

func TestNotFoundIsTheBaseAbsent(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.ReadAbsent(sess, ref, s.Epoch())
		b := take(t, s, sess, `{"a":1}`)
		want(t, b, KindAbsent, -1)
		b.Commit(Ack{Stored: rev(0, `{"a":1}`), Sent: []byte(`{"a":1}`), Created: true})
		want(t, take(t, s, sess, `{"a":2}`), KindView, 0)
	}
}

func TestTwoClientsThatBothReadNotFound(t *testing.T) {
	s, _ := newTest(t)
	s.ReadAbsent(pool, ref, s.Epoch())
	s.ReadAbsent(pool, ref, s.Epoch())
	first, second := take(t, s, pool, `{"a":1}`), take(t, s, pool, `{"b":1}`)
	want(t, first, KindAbsent, -1)
	want(t, second, KindAbsent, -1)
	if first.Ambiguous || second.Ambiguous {
		t.Fatal("ambiguous")
	}
}

func TestAfterADeleteTheBaseIsAbsent(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b, _ := s.Take(ended(), pool, ref, nil)
	b.Delete()
	b = take(t, s, pool, `{"a":2}`)
	want(t, b, KindAbsent, -1)
	b.Release()
	want(t, take(t, s, pool, `{"a":2}`), KindAbsent, -1)
}

func TestBlindDeleteLeavesNothing(t *testing.T) {
	s, _ := newTest(t)
	b, _ := s.Take(ended(), pool, ref, nil)
	want(t, b, KindNone, -1)
	b.Delete()
	want(t, take(t, s, pool, `{"a":2}`), KindNone, -1)
}

func TestOtherCredentialsAreAnotherSession(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	for _, sess := range []Session{
		identity.Inferred(bob, here), identity.Inferred(alice, there), identity.Named(bob, []byte("thread-1")), identity.Named(alice, []byte("thread-2")),
	} {
		want(t, take(t, s, sess, `{"a":1}`), KindNone, -1)
	}
	want(t, s.TakeAt(identity.Inferred(bob, here), ref, num(5), nil), KindExplicit, 5)
	if b := s.TakeAt(identity.Inferred(bob, here), ref, num(5), nil); b.View != nil {
		t.Fatal("bytes under other credentials")
	}
}

func TestNameAndAddressAreNeverTheSameSession(t *testing.T) {
	a := here.As16()
	if identity.Named(alice, a[:]) == pool || identity.Named(alice, nil) == identity.Inferred(alice, netip.Addr{}) {
		t.Fatal("same session")
	}
	if identity.Inferred(alice, netip.MustParseAddr("::ffff:192.0.2.1")) != pool {
		t.Fatal("an address in its two forms is two sessions")
	}
}

func TestCredentialsKeepTheirBoundaries(t *testing.T) {
	seen := map[Credentials]bool{}
	for _, v := range [][][]byte{nil, {[]byte("a"), []byte("b")}, {[]byte("ab")}, {[]byte("ab"), nil}, {nil, []byte("ab")}} {
		c := identity.CredentialsOf(v...)
		if seen[c] {
			t.Fatalf("%q are the credentials of others", v)
		}
		seen[c] = true
	}
	if identity.CredentialsOf(nil, []byte{}) != (Credentials{}) {
		t.Fatal("nothing is something")
	}
}

func TestRoutingsAreDifferentDocuments(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	routed := ref
	routed.Routing = "r"
	b, _ := s.Take(ended(), pool, routed, nil)
	want(t, b, KindNone, -1)
}

func TestEndingTwiceDoesNothing(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	b.Release()
	b.Release()
	b.Commit(Ack{Stored: rev(6, `{}`)})
	b.Delete()
	b = take(t, s, pool, `{"a":2}`)
	want(t, b, KindRead, 5)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	b.Release()
	want(t, take(t, s, pool, `{"a":2}`), KindView, 6)
	var zero Base
	zero.Release()
	zero.Commit(Ack{})
	zero.Delete()
}

func TestAnOverwriteWithoutABaseLeavesNoView(t *testing.T) {
	s, _ := newTest(t)
	for range 2 {
		b := take(t, s, pool, `{"a":1}`)
		want(t, b, KindNone, -1)
		b.Commit(Ack{Stored: rev(5, `{"a":1}`), Sent: []byte(`{"a":1}`)})
	}
}

func TestWriteWithoutABaseLeavesAViewInANamedSession(t *testing.T) {
	for _, created := range []bool{true, false} {
		s, _ := newTest(t)
		b := take(t, s, one, `{"a":1}`)
		want(t, b, KindNone, -1)
		b.Commit(Ack{Stored: rev(5, `{"a":1}`), Sent: []byte(`{"a":1}`), Created: created})
		want(t, take(t, s, one, `{"a":2}`), KindView, 5)
	}
}

func TestAcknowledgementWithoutNumbersIsLost(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	b.Commit(Ack{Sent: []byte(`{"a":2}`)})
	wantLost(t, take(t, s, pool, `{"a":3}`), ReasonEvicted)
}

func TestReadWithoutNumbersIsIgnored(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, doc.Revision{Source: []byte(`{}`)}, s.Epoch())
	want(t, take(t, s, pool, `{"a":3}`), KindNone, -1)
}

func TestBodyIsHeldOncePerRevisionAndCredentials(t *testing.T) {
	s, _ := newTest(t)
	body := fmt.Sprintf(`{"a":%q}`, bytes.Repeat([]byte("x"), 1000))
	var bases []Base
	for i := range 10 {
		s.Read(identity.Named(alice, []byte(strconv.Itoa(i))), ref, rev(5, body), s.Epoch())
	}
	if n := s.Stats().Bodies; n != 1 {
		t.Fatalf("%d bodies of one revision", n)
	}
	s.Read(identity.Inferred(bob, here), ref, rev(5, body), s.Epoch())
	if n := s.Stats().Bodies; n != 2 {
		t.Fatalf("%d bodies of one revision under two credentials", n)
	}
	for i := range 10 {
		bases = append(bases, take(t, s, identity.Named(alice, []byte(strconv.Itoa(i))), "{}"))
	}
	if n := s.Stats().Bodies; n != 1 {
		t.Fatalf("%d bodies after all reads of one are reserved", n)
	}
	for i := range bases {
		bases[i].Release()
	}
	if n := s.Stats().Bodies; n != 2 {
		t.Fatalf("%d bodies", n)
	}
}

func TestWordsOfKindsAndReasons(t *testing.T) {
	for k, w := range map[Kind]string{
		KindNone: "none", KindRead: "read", KindView: "view", KindAbsent: "absent", KindLost: "lost", KindExplicit: "given",
	} {
		if k.String() != w {
			t.Errorf("%d is %q", k, k)
		}
	}
	for r, w := range map[Reason]string{
		ReasonNone: "", ReasonEvicted: "evicted", ReasonAged: "aged", ReasonRestart: "restart", ReasonIndex: "index", ReasonBlind: "blind",
		ReasonUnwatched: "unwatched",
	} {
		if r.String() != w {
			t.Errorf("%d is %q", r, r)
		}
	}
}

func TestAReadOfAnUnknownRevisionEndsWhatWasKnown(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.ReadUnknown(sess, ref) // of which nothing was known
		b := take(t, s, sess, `{"a":1}`)
		want(t, b, KindNone, -1)
		b.Release()

		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
		b = take(t, s, sess, `{"a":2}`)
		b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		b = take(t, s, sess, `{"a":3}`)
		want(t, b, KindView, 6)
		s.ReadUnknown(sess, ref)
		b.Release() // it doesn't come back
		b = take(t, s, sess, `{"a":3}`)
		want(t, b, KindLost, -1)
		b.Release()

		s.Read(sess, ref, rev(7, `{"a":1}`), s.Epoch())
		s.ReadUnknown(sess, ref)
		if b = take(t, s, sess, `{"a":3}`); sess == pool {
			want(t, b, KindRead, 7) // it may be another thread's
		} else {
			want(t, b, KindLost, -1)
		}
		audit(t, s)
	}
}

// TestAWriteThatIsUndoneIsNoBase: its client may send the same again, and would have changed nothing.
func TestAWriteThatIsUndoneIsNoBase(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.WriteUndone(sess, ref, rev(6, "").Numbers) // of which nothing was known
		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
		write := func(seq int64) {
			t.Helper()
			b := take(t, s, sess, `{"a":2}`)
			b.Commit(Ack{Stored: rev(seq, `{"a":2}`), Sent: []byte(`{"a":2}`)})
			b.NoteAnswer()
		}
		write(6)
		s.WriteUndone(sess, ref, rev(6, "").Numbers)
		b := take(t, s, sess, `{"a":2}`)
		want(t, b, KindLost, -1)
		b.Release()

		s.Read(sess, ref, rev(8, `{"a":1}`), s.Epoch())
		write(9)
		s.WriteUndone(sess, ref, rev(6, "").Numbers) // it comes late: the client has written since
		b = take(t, s, sess, `{"a":3}`)
		want(t, b, KindView, 9)
		b.Release()

		s.Read(sess, ref, rev(10, `{"a":1}`), s.Epoch())
		s.WriteUndone(sess, ref, rev(9, "").Numbers) // the client has read since
		b = take(t, s, sess, `{"a":2}`)
		want(t, b, KindRead, 10)
		b.Release()
		s.WriteUndone(sess, ref, doc.Numbers{}) // nobody knows what it had left
		if b = take(t, s, sess, `{"a":2}`); sess == pool {
			want(t, b, KindRead, 10) // it may be another thread's
		} else {
			want(t, b, KindLost, -1)
		}
		audit(t, s)
	}
}

func TestAViewThatMayNotBeWhatIsWrittenFromIsAGuardAlone(t *testing.T) {
	s, _ := newTest(t)
	shown := func(b *Base, doubtful bool) {
		t.Helper()
		if want(t, *b, KindView, 6); b.OnlyGuards() != doubtful {
			t.Fatalf("doubtful: %v", b.OnlyGuards())
		}
		b.Release()
	}
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	s.ReadPart(one, ref, doc.Revision{Source: []byte(`{"a":9}`)})
	b := take(t, s, one, `{"a":2}`)
	if want(t, b, KindRead, 5); b.Use != UseUnclear {
		t.Fatal("it may have been written from what was shown after the read")
	}
	b.Release()
	b = s.TakeAt(one, ref, num(5), []byte(`{"a":2}`))
	if want(t, b, KindRead, 5); b.OnlyGuards() {
		t.Fatal("who names it means it")
	}
	b.Release()
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	s.ReadPart(one, ref, doc.Revision{Source: []byte(`{"a": 1}`)})
	b = take(t, s, one, `{"a":2}`)
	if want(t, b, KindRead, 5); b.OnlyGuards() {
		t.Fatal("it was shown what it had read")
	}
	b.Commit(Ack{Stored: rev(6, `{"a":2,"b":1}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(5)})
	s.ReadPart(one, ref, doc.Revision{Source: []byte(`{ "a" : 2 }`)}) // what it sent
	b = take(t, s, one, `{"a":3}`)
	shown(&b, false)
	s.ReadPart(one, ref, doc.Revision{Source: []byte(`{"a":2,"b":1}`)})
	b = s.TakeAt(one, ref, num(5), []byte(`{"a":3}`))
	shown(&b, false) // who names it means it
	s.ReadPart(one, ref, doc.Revision{Source: []byte(`{"a":2,"b":2}`)})
	b = take(t, s, one, `{"a":3}`)
	shown(&b, true) // though a write was refused since: it would go unguarded

	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b = take(t, s, pool, `{"a":2}`)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	s.ReadPart(pool, ref, doc.Revision{Source: []byte(`{"a":9}`)})
	b = take(t, s, pool, `{"a":3}`)
	shown(&b, false) // it may have been another thread
	audit(t, s)
}

// A write that failed before the session was shown the document wasn't refused for that, and who only looks wasn't refused at
// all.
func TestAViewThatIsShownOtherwiseStaysAGuardUntilAWriteIsRefusedForThat(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, one, `{"a":2}`)
	b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
	b = take(t, s, one, `{"a":"x"}`)
	b.Release() // a 400
	for range 2 {
		s.Found(one, ref, rev(5, `{"a":1}`), s.Epoch())
		if _, err := s.Glance().Take(t.Context(), one, ref, []byte(`{"a":3}`)); err != nil {
			t.Fatal(err)
		}
	}
	b = take(t, s, one, `{"a":3}`)
	if want(t, b, KindView, 6); !b.OnlyGuards() {
		t.Fatal("it isn't known what the session writes from")
	}
	b.Release()
	if _, err := s.Glance().Take(t.Context(), one, ref, []byte(`{"a":3}`)); err != nil {
		t.Fatal(err)
	}
	s.Found(one, ref, rev(5, `{"a":1}`), s.Epoch())
	want(t, take(t, s, one, `{"a":3}`), KindRead, 5)
}

func TestAReadThatANamedSessionHasWrittenOverIsNoBase(t *testing.T) {
	for _, c := range []struct {
		name    string
		left    doc.Revision
		whole   bool
		kind    Kind
		seqNo   int64
		differs bool
	}{
		{"a document", rev(6, ""), true, KindView, 6, false},
		{"a part", rev(6, ""), false, KindView, 6, false},
		{"a part, behind somebody else's write", rev(8, ""), false, KindView, 8, true},
		{"nobody knows which revision", doc.Revision{}, false, KindLost, -1, false},
	} {
		for _, wrote := range []bool{false, true} {
			s, _ := newTest(t)
			at := s.Epoch()
			s.Read(one, ref, rev(5, `{"a":1}`), at)
			if wrote {
				b := take(t, s, one, `{"a":1}`)
				b.Commit(Ack{Stored: rev(5, `{"a":1}`), Sent: []byte(`{"a":1}`)})
				s.Read(one, ref, rev(5, `{"a":1}`), at)
			}
			s.WroteForwarded(one, ref, c.left, c.whole, at)
			b := take(t, s, one, `{"a":1}`) // as it read it
			want(t, b, c.kind, c.seqNo)
			if b.View != nil || b.StoredDiffers != c.differs {
				t.Errorf("%s, wrote %v: view %s, differs %v", c.name, wrote, b.View, b.StoredDiffers)
			}
			b.Release()
			audit(t, s)
		}
	}
}

// That there was no document is seen, too.
func TestNoDocumentIsNoViewAfterTheSessionWroteOne(t *testing.T) {
	for name, see := range map[string]func(s *Store){
		"a read": func(s *Store) { s.ReadAbsent(one, ref, s.Epoch()) },
		"its own delete": func(s *Store) {
			s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
			b := take(t, s, one, "")
			b.Delete()
		},
	} {
		s, _ := newTest(t)
		see(s)
		s.WroteForwarded(one, ref, rev(7, ""), true, s.Epoch())
		b := take(t, s, one, `{"a":1}`)
		if want(t, b, KindView, 7); b.View != nil || b.StoredDiffers {
			t.Errorf("%s: view %s, differs %v", name, b.View, b.StoredDiffers)
		}
		b.Release()
		audit(t, s)
	}
}

func TestAViewThatTheSessionWroteOverIsItsNumbersAlone(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.WroteForwarded(sess, ref, rev(4, ""), true, s.Epoch()) // of which nothing was known
		b := take(t, s, sess, `{"a":1}`)
		want(t, b, KindNone, -1)
		b.Release()

		at := s.Epoch()
		s.Read(sess, ref, rev(5, `{"a":1}`), at)
		b = take(t, s, sess, `{"a":2}`)
		b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		s.WroteForwarded(sess, ref, rev(5, ""), true, at) // a late answer
		b = take(t, s, sess, `{"a":3}`)
		if want(t, b, KindView, 6); string(b.View) != `{"a":2}` {
			t.Fatalf("view %s", b.View)
		}
		b.Release()

		s.WroteForwarded(sess, ref, rev(7, ""), false, at)
		b = take(t, s, sess, `{"a":2}`) // as it sent it before
		if want(t, b, KindView, 7); b.View != nil || b.StoredDiffers {
			t.Fatalf("view %s, apart %v", b.View, b.StoredDiffers)
		}
		b.Release()

		s.WroteForwarded(sess, ref, rev(9, ""), false, at)
		b = take(t, s, sess, `{"a":3}`)
		if want(t, b, KindView, 9); !b.StoredDiffers {
			t.Fatal("somebody else's write is in it")
		}
		b.Release()
		b = s.TakeAt(sess, ref, num(9), []byte(`{"a":3}`))
		if want(t, b, KindView, 9); b.StoredDiffers {
			t.Fatal("who names it means it")
		}
		s.WroteForwarded(sess, ref, rev(10, ""), true, at)
		b.Release() // it doesn't come back
		b = take(t, s, sess, `{"a":3}`)
		want(t, b, KindLost, -1)
		b.Commit(Ack{Stored: rev(11, `{"a":3}`), Sent: []byte(`{"a":3}`)})

		s.DropIndex(Credentials{}, "shop")
		s.Read(sess, ref, rev(2, `{"a":1}`), s.Epoch())
		b = take(t, s, sess, `{"a":2}`)
		b.Commit(Ack{Stored: rev(3, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		s.WroteForwarded(sess, ref, rev(12, ""), true, at) // in the index that was there before
		b = take(t, s, sess, `{"a":3}`)
		want(t, b, KindLost, -1)
		b.Release()
		audit(t, s)
	}
}
