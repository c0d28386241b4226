package session

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/rank"
)

// in is the pool of threads, in the trace of this number.
func in(n byte) Session { return pool.In(Trace{15: n}) }

func TestReadsOfTheSameTraceAreTheOnlyCandidates(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(4, `{"n":4}`), s.Epoch())
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	s.Read(in(2), ref, rev(6, `{"n":6}`), s.Epoch())
	s.Read(in(2), ref, rev(7, `{"n":7}`), s.Epoch())
	b := take(t, s, in(1), `{"n":7}`) // closest to the reads of others
	if want(t, b, KindRead, 5); b.Ambiguous {
		t.Error("ambiguous")
	}
	b.Release()
	b = take(t, s, in(2), `{"n":6}`) // two threads of one trace: the closest of its own
	if want(t, b, KindRead, 7); !b.Ambiguous {
		t.Error("not ambiguous")
	}
	b.Release()
	if b = take(t, s, pool, `{"n":5}`); !b.Ambiguous { // whatever it was made from
		t.Error("not ambiguous")
	}
	b.Release()
	if b = take(t, s, in(1), `{"n":7}`); b.Ambiguous { // what is given back is still of its trace
		t.Error("ambiguous")
	}
	want(t, b, KindRead, 5)
	b.Release()
}

func TestATraceWithoutReadsHasThoseOfItsSession(t *testing.T) {
	for name, reader := range map[string]Session{"outside of traces": pool, "in another trace": in(2)} {
		s, _ := newTest(t)
		s.Read(reader, ref, rev(5, `{"n":5}`), s.Epoch())
		b := take(t, s, in(1), `{"n":6}`)
		want(t, b, KindRead, 5)
		b.Commit(Ack{Stored: rev(6, `{"n":6}`), Sent: []byte(`{"n":6}`)})
		b = take(t, s, in(3), `{"n":7}`)
		if want(t, b, KindView, 6); b.Ambiguous {
			t.Errorf("%s: ambiguous", name)
		}
		b.Release()
	}
}

func TestAReadInATraceIsTheBaseOfAWriteWithout(t *testing.T) {
	s, _ := newTest(t)
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	b := take(t, s, pool, `{"n":6}`)
	want(t, b, KindRead, 5)
	b.Release()
	b = take(t, s, in(1), `{"n":6}`)
	want(t, b, KindRead, 5)
	b.Release()
}

// Two clients read one revision, one of them outside of traces: a write without takes the latter's.
func TestAWriteWithoutATraceLeavesATraceItsReadOfTheSameRevision(t *testing.T) {
	s, _ := newTest(t)
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	s.Read(pool, ref, rev(5, `{"n":5}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"n":6}`), s.Epoch())
	b := take(t, s, pool, `{"n":5,"m":1}`)
	want(t, b, KindRead, 5)
	b.Commit(Ack{Stored: rev(7, `{"n":6,"m":1}`), Sent: []byte(`{"n":5,"m":1}`)})
	b = take(t, s, in(1), `{"n":6,"o":1}`)
	if want(t, b, KindRead, 5); b.Ambiguous {
		t.Error("ambiguous")
	}
	b.Release()
}

// A trace that reads once and writes twice: what it wrote is what it has seen, whatever others have read and written.
func TestATraceWritesAgainFromWhatItWrote(t *testing.T) {
	s, _ := newTest(t)
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	s.Read(in(2), ref, rev(5, `{"n":5}`), s.Epoch())
	b := take(t, s, in(1), `{"n":6}`)
	b.Commit(Ack{Stored: rev(6, `{"n":6}`), Sent: []byte(`{"n":6}`)})
	b = take(t, s, in(2), `{"n":6}`)
	if want(t, b, KindRead, 5); b.Ambiguous {
		t.Error("an equal change of another trace is ambiguous")
	}
	b.Commit(Ack{Stored: rev(7, `{"n":7}`), Sent: []byte(`{"n":6}`), AnswerNumbers: num(5)})
	s.Read(pool, ref, rev(7, `{"n":7}`), s.Epoch())
	for _, c := range []struct {
		trace  byte
		stored int64
	}{{1, 6}, {2, 7}} {
		b = take(t, s, in(c.trace), `{"n":8}`)
		if want(t, b, KindView, c.stored); b.Ambiguous || string(b.View) != `{"n":6}` {
			t.Errorf("trace %d: ambiguous %v, from %s", c.trace, b.Ambiguous, b.View)
		}
		b.Release()
	}
	b = take(t, s, in(1), `{"n":8}`)
	b.Delete()
	b = take(t, s, in(1), `{"n":1}`)
	want(t, b, KindAbsent, -1)
	b.Release()
}

// What the session is known to have written last is no view of the trace any more once it has written the document in another way.
func TestATraceThatWroteOtherwiseHasNoViewOfBefore(t *testing.T) {
	for name, otherwise := range map[string]func(s *Store){
		"a part":  func(s *Store) { s.WroteForwarded(in(1), ref, rev(7, ""), false, s.Epoch()) },
		"unknown": func(s *Store) { s.ReadUnknown(in(1), ref) },
		"shown, refused": func(s *Store) {
			thread, _ := in(1).Thread()
			s.ReadPart(thread, ref, doc.Revision{Source: []byte(`{"n":9}`)})
		},
	} {
		s, _ := newTest(t)
		s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
		b := take(t, s, in(1), `{"n":6}`)
		b.Commit(Ack{Stored: rev(6, `{"n":6}`), Sent: []byte(`{"n":6}`)})
		otherwise(s)
		b = take(t, s, in(1), `{"n":6}`)
		if b.View != nil && !b.OnlyGuards() {
			t.Errorf("%s: the base is %s with %s", name, b.Kind, b.View)
		}
		b.Release()
	}
}

// Who was shown the document in an unknown revision may write from that. What others of the session write meanwhile, it hasn't seen.
func TestATraceThatHasSeenTheUnknownHasALostBase(t *testing.T) {
	for name, before := range map[string]func(s *Store){
		"nothing": func(*Store) {},
		"a read":  func(s *Store) { s.Read(in(1), ref, rev(4, `{"n":4}`), s.Epoch()) },
		"a write": func(s *Store) {
			s.Read(in(1), ref, rev(3, `{"n":3}`), s.Epoch())
			commit(take(t, s, in(1), `{"n":4}`), 4, `{"n":4}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			before(s)
			s.ReadUnknown(in(1), ref)
			s.Read(in(2), ref, rev(5, `{"n":5}`), s.Epoch())
			commit(take(t, s, in(2), `{"n":6}`), 6, `{"n":6}`)
			b := take(t, s, in(1), `{"n":7}`)
			want(t, b, KindLost, -1)
			b.Release()
			b = take(t, s, in(1), `{"n":7}`) // still
			want(t, b, KindLost, -1)
			commit(b, 7, `{"n":7}`)
			b = take(t, s, in(1), `{"n":8}`)
			want(t, b, KindView, 7)
			b.Release()
			s.ReadUnknown(in(3), ref)
			s.Read(in(3), ref, rev(9, `{"n":9}`), s.Epoch())
			b = take(t, s, in(3), `{"n":10}`)
			want(t, b, KindRead, 9)
			b.Release()
			audit(t, s)
		})
	}
}

// The same bytes in the same trace are a repeat; in another one they are an equal change.
func TestARepeatIsOfTheSameTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
		s.Read(in(2), ref, rev(5, `{"n":5}`), s.Epoch())
		client, leave := context.WithCancel(context.Background())
		first := start(client, s, in(1), `{"n":6}`)
		time.Sleep(time.Second)
		leave()
		other := start(t.Context(), s, in(2), `{"n":6}`)
		want(t, other.base, KindRead, 5)
		other.base.Commit(Ack{Stored: rev(6, `{"n":6}`), Sent: []byte(`{"n":6}`)})
		again := start(t.Context(), s, in(1), `{"n":6}`)
		if again.done {
			t.Fatal("the repeat didn't wait")
		}
		first.base.Commit(Ack{Stored: rev(7, `{"n":7}`), Sent: []byte(`{"n":6}`), AnswerNumbers: num(5)})
		synctest.Wait()
		if want(t, again.base, KindView, 7); string(again.base.View) != `{"n":6}` {
			t.Errorf("the repeat counts from %s", again.base.View)
		}
	})
}

// A failed first try gives its read back, and the repeat has it.
func TestARepeatInATraceHasTheBaseOfAFirstTryThatFailed(t *testing.T) {
	s, _ := newTest(t)
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"n":6}`), s.Epoch())
	first := take(t, s, in(1), `{"n":6}`)
	first.Doubt()
	b := take(t, s, in(1), `{"n":6}`)
	if want(t, b, KindRead, 5); !b.OnlyGuards() {
		t.Error("may be merged")
	}
	b.Release()
}

func TestANamedSessionHasNoTrace(t *testing.T) {
	if one.In(Trace{1}) != one {
		t.Error("it has one")
	}
}

// Set-ups that begin a trace with each request are as many strangers as requests: nothing is kept of them beyond their reads.
func TestTracesWithoutReadsAndReadsWithoutWritesAreBounded(t *testing.T) {
	s, _ := newTest(t)
	for i := range 5000 {
		trace := Trace{1, 14: byte(i >> 8), 15: byte(i)}
		s.Read(pool.In(trace), ref, rev(int64(5+i/1000), `{"n":5}`), s.Epoch())
		trace[0] = 2
		b := take(t, s, pool.In(trace), fmt.Sprintf(`{"n":%d}`, i))
		if b.Kind != KindRead {
			t.Fatalf("%d: %v", i, b.Kind)
		}
		b.Release()
	}
	if st := s.Stats(); st.Entries != 1 || st.Bytes > 64<<10 || st.Markers != 0 {
		t.Errorf("%+v", st)
	}
	for i := range 1000 {
		trace := Trace{3, 14: byte(i >> 8), 15: byte(i)}
		b := take(t, s, pool.In(trace), `{"n":6}`)
		b.Commit(Ack{Stored: rev(int64(20+i), `{"n":6}`), Sent: []byte(`{"n":6}`)})
	}
	if st := s.Stats(); st.Entries != 1 || st.Bytes > 64<<10 {
		t.Errorf("%+v", st)
	}
}

// A job that overwrites what it hasn't read makes its session blind; a trace that has read the document isn't.
func TestATraceThatReadsIsNoBlindWriter(t *testing.T) {
	s, _ := newTest(t)
	overwriteMany(t, s, pool)
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	if b := take(t, s, pool, `{"n":6}`); b.Reason != ReasonBlind {
		t.Errorf("%v %v", b.Kind, b.Reason)
	}
	b := take(t, s, in(1), `{"n":6}`)
	want(t, b, KindRead, 5)
	b.Release()
}

func TestTracesOfOtherAddressesAreOthers(t *testing.T) {
	s, _ := newTest(t)
	trace := Trace{15: 1}
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	b := take(t, s, in(1), `{"n":6}`)
	b.Commit(Ack{Stored: rev(6, `{"n":6}`), Sent: []byte(`{"n":6}`)})
	for _, sess := range []Session{identity.Inferred(alice, there).In(trace), identity.Inferred(bob, here).In(trace), identity.Inferred(alice, netip.Addr{}).In(trace)} {
		b := take(t, s, sess, `{"n":7}`)
		if b.Kind != KindNone {
			t.Errorf("%v", b.Kind)
		}
		b.Release()
	}
}

// A form is opened in one request and saved in the next one, which has another trace, and looks first whether the document is still there.
func TestTracesThatMisleadDontCount(t *testing.T) {
	for name, c := range map[string]struct {
		forms int   // that were saved before
		want  int64 // the base of a form of which content says little
	}{
		"none":            {0, 6},
		"one, by chance":  {1, 6},
		"two of the kind": {2, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t, func(o *Options) { o.Rank = rank.Likeliest })
			for n := range c.forms {
				of := ref
				of.ID = fmt.Sprint("form", n)
				s.Read(in(1), of, rev(5, `{"a":"violet dragon","b":"candle harbor","c":"zephyr"}`), s.Epoch())
				s.Read(in(2), of, rev(6, `{"a":"quartz tulip","b":"river fjord","c":"zephyr"}`), s.Epoch())
				sent := []byte(`{"a":"violet dragon","b":"candle harbor","c":"lemon hazel"}`)
				b, err := s.Take(ended(), in(2), of, sent)
				if err != nil {
					t.Fatal(err)
				}
				want(t, b, KindRead, 6)
				if !b.Ambiguous {
					t.Error("not ambiguous")
				}
				b.Commit(Ack{Stored: rev(7, `{"a":"quartz tulip","b":"river fjord","c":"lemon hazel"}`), Sent: sent})
			}
			s.Read(in(3), ref, rev(5, `{"a":"violet","b":"x"}`), s.Epoch())
			s.Read(in(4), ref, rev(6, `{"a":"candle","b":"x"}`), s.Epoch())
			b := take(t, s, in(4), `{"a":"violet","b":"y"}`)
			if want(t, b, KindRead, c.want); !b.Ambiguous {
				t.Error("not ambiguous")
			}
			b.Release()
		})
	}
}
