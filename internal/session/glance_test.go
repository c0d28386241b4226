package session

import (
	"context"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/viewcache"
)

// glances are a store's, for all that a session can know of a document, with what Take says afterwards.
func TestAGlanceSeesWhatTakeWouldReserveAndLeavesIt(t *testing.T) {
	ref := doc.Ref{Index: "shop", ID: "1"}
	named := identity.Named(Credentials{}, []byte("a"))
	inferred := identity.Inferred(Credentials{}, netip.MustParseAddr("127.0.0.1"))
	for _, c := range []struct {
		name string
		sess Session
		make func(s *Store, sess Session)
	}{
		{"nothing, named", named, func(*Store, Session) {}},
		{"nothing, inferred", inferred, func(*Store, Session) {}},
		{"a read", named, func(s *Store, sess Session) { s.Read(sess, ref, revision(1, "a"), 0) }},
		{"reads", inferred, func(s *Store, sess Session) {
			s.Read(sess, ref, revision(1, "a"), 0)
			s.Read(sess, ref, revision(1, "a"), 0)
			s.Read(sess, ref, revision(2, "b"), 0)
		}},
		{"absent", named, func(s *Store, sess Session) { s.ReadAbsent(sess, ref, 0) }},
		{"a view", named, func(s *Store, sess Session) {
			b, _ := s.Take(context.Background(), sess, ref, []byte("v"))
			b.Commit(Ack{Stored: revision(3, "w"), Sent: []byte("v"), AnswerNumbers: doc.Numbers{SeqNo: 2, PrimaryTerm: 1}})
		}},
		{"a loss", named, func(s *Store, sess Session) {
			s.Read(sess, ref, revision(1, "a"), 0)
			s.DropIndex(Credentials{}, "shop")
			b, _ := s.Take(context.Background(), sess, ref, []byte("v")) // it is found out by the next who looks
			b.Release()
		}},
		{"a doubt", named, func(s *Store, sess Session) {
			s.Read(sess, ref, revision(1, "a"), 0)
			b, _ := s.Take(context.Background(), sess, ref, []byte("v"))
			b.Doubt()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now()
			s := New(Options{Now: func() time.Time { return now }})
			now = now.Add(time.Hour)
			s.Wrote(Credentials{}, "shop") // bodies are kept
			c.make(s, c.sess)
			before := s.Stats()
			var saw []Base
			for range 3 {
				b, err := s.Glance().Take(t.Context(), c.sess, ref, []byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				b.Commit(Ack{Stored: revision(9, "x"), Sent: []byte("x")}) // it ends nothing
				b.Delete()
				b.Release()
				saw = append(saw, b)
				at := s.Glance().TakeAt(c.sess, ref, doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, []byte("x"))
				at.Commit(Ack{Stored: revision(9, "x"), Sent: []byte("x")})
				copied, err := s.Glance().TakeCopy(t.Context(), c.sess, ref, Copy{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, Token: 7, Served: true}, []byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				copied.Commit(Ack{Stored: revision(9, "x"), Sent: []byte("x")})
			}
			if after := s.Stats(); !reflect.DeepEqual(before, after) {
				t.Errorf("the store was\n%+v and is\n%+v", before, after)
			}
			b, err := s.Take(t.Context(), c.sess, ref, []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			b.claim = claim{}
			for _, g := range saw {
				if !reflect.DeepEqual(g, b) {
					t.Errorf("saw %+v, and then took %+v", g, b)
				}
			}
		})
	}
}

// TestAGlanceLeavesNobodyAnotherBase: who looks while others write must not have them choose from what is left.
func TestAGlanceLeavesNobodyAnotherBase(t *testing.T) {
	ref := doc.Ref{Index: "shop", ID: "1"}
	sess := identity.Inferred(Credentials{}, netip.MustParseAddr("127.0.0.1"))
	s := New(Options{})
	s.Wrote(Credentials{}, "shop")
	s.Read(sess, ref, revision(1, "a"), 0)
	s.Read(sess, ref, revision(2, "b"), 0)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = s.Glance().Take(context.Background(), sess, ref, []byte("x"))
				}
			}
		})
	}
	for range 20000 {
		b, err := s.Take(t.Context(), sess, ref, []byte("x"))
		if err != nil || b.Numbers.SeqNo != 1 || !b.Ambiguous {
			t.Errorf("took %d (%v), ambiguous %v", b.Numbers.SeqNo, err, b.Ambiguous)
			break
		}
		b.Release()
	}
	close(done)
	wg.Wait()
}

// TestAGlanceNotesNothing: what a dry run notes of a session is no news of a real request.
func TestAGlanceNotesNothing(t *testing.T) {
	ref := doc.Ref{Index: "shop", ID: "1"}
	sess := identity.Named(Credentials{}, []byte("a"))
	numbers := func(seq int64) doc.Revision { return doc.Revision{Numbers: doc.Numbers{SeqNo: seq, PrimaryTerm: 1}} }
	for name, note := range map[string]func(*Store){
		"a read":               func(s *Store) { s.Read(sess, ref, revision(3, "c"), s.Epoch()) },
		"a read, absent":       func(s *Store) { s.ReadAbsent(sess, ref, s.Epoch()) },
		"a read, unknown":      func(s *Store) { s.ReadUnknown(sess, ref) },
		"a part":               func(s *Store) { s.ReadPart(sess, ref, doc.Revision{}) },
		"a search":             func(s *Store) { s.Found(sess, ref, revision(1, "a"), s.Epoch()) },
		"something":            func(s *Store) { s.ShownUnknown(sess, "shop") },
		"a forwarded write":    func(s *Store) { s.WroteForwarded(sess, ref, numbers(3), true, s.Epoch()) },
		"an update by query":   func(s *Store) { s.ChangedUnknown(sess) },
		"a write that is gone": func(s *Store) { s.WriteUndone(sess, ref, doc.Numbers{}) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, noted := range []bool{false, true} {
				now := time.Now()
				s := New(Options{Now: func() time.Time { return now }})
				s.Wrote(Credentials{}, "shop") // bodies are kept
				s.Read(sess, ref, revision(2, "b"), s.Epoch())
				now = now.Add(time.Second)
				k := viewcache.KeyOf(sess, ref)
				before := *s.shard(k).Peek(k)
				if note(s.Glance()); !reflect.DeepEqual(*s.shard(k).Peek(k), before) {
					t.Error("the dry run has changed what is known of the document")
				}
				if noted {
					note(s)
				}
				b, err := s.Take(t.Context(), sess, ref, []byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				as := b.Kind == KindRead && b.Numbers.SeqNo == 2 && b.Use == UseMerge
				if as == noted {
					t.Errorf("noted: %v, and the base is %+v", noted, b)
				}
			}
		})
	}
}

func revision(seq int64, body string) doc.Revision {
	return doc.Revision{Numbers: doc.Numbers{SeqNo: seq, PrimaryTerm: 1}, Version: seq + 1, Source: []byte(body)}
}
