package session

import (
	"context"
	"testing"

	"optimist/internal/doc"
)

// next takes the base of a series' next write, which must be there without waiting.
func next(t *testing.T, s *Store, sess Session, series *Series, sent string) Base {
	t.Helper()
	b, err := s.TakeNext(ended(), sess, ref, series, []byte(sent))
	if err != nil {
		t.Fatal(err)
	}
	series.Begin(&b)
	return b
}

// TestAWriteOfASeriesIsBasedOnTheOneBeforeIt: another client's read stays that client's.
func TestAWriteOfASeriesIsBasedOnTheOneBeforeIt(t *testing.T) {
	s, _ := newTest(t)
	for range 2 {
		s.Read(pool, ref, rev(1, `{"a":1}`), s.Epoch())
	}
	var series Series
	for n, sent := range []string{`{"a":2}`, `{"a":1}`, `{"a":2}`} {
		b := next(t, s, pool, &series, sent)
		if n > 0 && (b.Kind != KindView || b.Numbers != num(int64(n+1)) || b.Ambiguous || b.Guessed) {
			t.Fatalf("write %d: %+v", n, b)
		}
		b.Commit(Ack{Stored: rev(int64(n+2), sent), Sent: []byte(sent), AnswerNumbers: num(int64(n + 2))})
		series.End(true, false)
	}
	want(t, take(t, s, pool, `{"a":3}`), KindRead, 1)
}

// TestWhatAWriteOfASeriesLeavesForTheNext: an acknowledged one what it has left, one that failed nothing new, and one of which nobody knows
// a guard.
func TestWhatAWriteOfASeriesLeavesForTheNext(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(b *Base, series *Series)
		kind     Kind
		n        int64
		doubtful bool
		view     string
	}{
		"deleted": {func(b *Base, series *Series) { b.Delete(); series.End(true, false) }, KindAbsent, -1, false, ""},
		"failed":  {func(b *Base, series *Series) { b.Release(); series.End(false, false) }, KindView, 2, false, `{"a":2}`},
		"unknown": {func(b *Base, series *Series) { b.Doubt(); series.End(false, true) }, KindView, 2, true, ""},
		"unknown, and may go again": {func(b *Base, series *Series) { b.Release(); series.End(false, true) },
			KindView, 2, true, ""},
		"merged by the engine": {func(b *Base, series *Series) {
			b.LeaveToEngine(func([]byte) ([]byte, error) { return []byte(`{"a":2,"b":1}`), nil })
			b.EngineMerged(rev(7, ""))
			series.End(true, false)
		}, KindView, 7, false, `{"a":2,"b":1}`},
		"nobody knows what it left": {func(b *Base, series *Series) { b.Release(); series.End(true, false) }, KindRead, 1, false, `{"a":1}`},
		"passed": {func(b *Base, series *Series) { b.Release(); series.End(false, false); series.End(true, false) },
			KindRead, 1, false, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			for range 2 {
				s.Read(pool, ref, rev(1, `{"a":1}`), s.Epoch())
			}
			var series Series
			b := next(t, s, pool, &series, `{"a":2}`)
			b.Commit(Ack{Stored: rev(2, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(2)})
			series.End(true, false)
			b = next(t, s, pool, &series, `{"a":3}`)
			c.end(&b, &series)
			b = next(t, s, pool, &series, `{"a":4}`)
			want(t, b, c.kind, c.n)
			if b.OnlyGuards() != c.doubtful || string(b.View) != c.view {
				t.Errorf("doubtful: %v, view: %s", b.OnlyGuards(), b.View)
			}
			b.Release()
		})
	}
}

// A write of a series was merged, so that more is stored than its client knows. The outcome of the next one is unknown. The numbers of what
// is stored are no guard for the one after that: it would take out what others have put in.
func TestWhatASeriesHasNotSeenIsNoGuardForItsNextWrite(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(1, `{"list":[]}`), s.Epoch())
	var series Series
	b := next(t, s, one, &series, `{"list":["mine"]}`)
	b.Commit(Ack{Stored: rev(3, `{"list":["another's","mine"]}`), Sent: []byte(`{"list":["mine"]}`), AnswerNumbers: num(3)})
	series.End(true, false)
	b = next(t, s, one, &series, `{"list":["mine",2]}`)
	if want(t, b, KindView, 3); !b.StoredDiffers {
		t.Error("after the merge: the client hasn't seen what is stored")
	}
	b.Doubt()
	series.End(false, true)
	b = next(t, s, one, &series, `{"list":["mine",2,3]}`)
	if want(t, b, KindView, 3); !b.OnlyGuards() || !b.StoredDiffers || b.View != nil {
		t.Errorf("after the unknown outcome: doubtful %t, differs %t, view %s", b.OnlyGuards(), b.StoredDiffers, b.View)
	}
	b.Release()
}

// TestWritesOfASeriesOfTwoDocumentsAreToldApart: they differ in their routing.
func TestWritesOfASeriesOfTwoDocumentsAreToldApart(t *testing.T) {
	s, _ := newTest(t)
	other := doc.Ref{Index: ref.Index, ID: ref.ID, Routing: "r"}
	s.Read(pool, ref, rev(1, `{"a":1}`), s.Epoch())
	s.Read(pool, other, rev(2, `{"a":1}`), s.Epoch())
	var series Series
	b := next(t, s, pool, &series, `{"a":2}`)
	b.Commit(Ack{Stored: rev(3, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(3)})
	series.End(true, false)
	b, err := s.TakeNext(ended(), pool, other, &series, []byte(`{"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	want(t, b, KindRead, 2)
}

// TestAWriteOfASeriesThatIsSentAgainCountsOnce: the client left before it had the answer, and sends the request again.
func TestAWriteOfASeriesThatIsSentAgainCountsOnce(t *testing.T) {
	gone, leave := context.WithCancel(context.Background())
	s, c := newTest(t)
	s.Read(pool, ref, rev(1, `{"a":1}`), s.Epoch())
	first, again := Series{}, Series{}
	bodies := []string{`{"a":2}`, `{"a":3}`, `{"a":4}`}
	for n, sent := range bodies {
		b, err := s.TakeNext(gone, pool, ref, &first, []byte(sent))
		if err != nil {
			t.Fatal(err)
		}
		first.Begin(&b)
		b.Commit(Ack{Stored: rev(int64(n+2), sent), Sent: []byte(sent), AnswerNumbers: num(int64(n + 2))})
		first.End(true, false)
	}
	leave()
	c.advance(1e9)
	s.Read(pool, ref, rev(4, bodies[2]), s.Epoch()) // another client's
	for _, sent := range bodies {
		b, err := s.TakeNext(context.Background(), pool, ref, &again, []byte(sent))
		if err != nil {
			t.Fatal(err)
		}
		again.Begin(&b)
		if string(b.View) != sent {
			t.Errorf("the base of %s is %v %s", sent, b.Kind, b.View)
		}
		b.Commit(Ack{Stored: rev(4, bodies[2]), Sent: []byte(sent), AnswerNumbers: num(4), StoredDiffers: sent != bodies[2]})
		again.End(true, false)
	}
}
