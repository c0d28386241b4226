package session

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

func benchRevision() doc.Revision {
	return rev(5, `{"a":1,"text":"`+strings.Repeat("x", 1000)+`"}`)
}

func BenchmarkSession(b *testing.B) {
	auth, name := []byte("Basic dXNlcjpwYXNzd29yZA=="), []byte("0b1946a8-1d3e-4f0e-9a2a-7f3b7d2f1f6c")
	b.ReportAllocs()
	for b.Loop() {
		identity.Named(identity.CredentialsOf(auth), name)
	}
}

func BenchmarkReadOfAKnownRevision(b *testing.B) {
	for _, sess := range []Session{pool, one} {
		b.Run(fmt.Sprintf("named=%v", sess.IsNamed()), func(b *testing.B) {
			s := New(Options{})
			r := benchRevision()
			b.ReportAllocs()
			for b.Loop() {
				s.Read(sess, ref, r, s.Epoch())
			}
		})
	}
}

func BenchmarkReadOfANewRevision(b *testing.B) {
	s := New(Options{})
	r := benchRevision()
	b.ReportAllocs()
	for b.Loop() {
		r.SeqNo++
		s.Read(one, ref, r, s.Epoch())
	}
}

func BenchmarkReadOfANewDocument(b *testing.B) {
	s := New(Options{})
	refs := make([]doc.Ref, 1<<18)
	for i := range refs {
		refs[i] = at(i)
	}
	r := benchRevision()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Read(pool, refs[i%len(refs)], r, s.Epoch())
		i++
	}
}

func BenchmarkReadsOfManyDocuments(b *testing.B) {
	s := New(Options{})
	refs := make([]doc.Ref, 10_000)
	for i := range refs {
		refs[i] = at(i)
	}
	r := benchRevision()
	var next atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		sess := identity.Inferred(alice, netip.AddrFrom4([4]byte{10, 0, 0, byte(next.Add(1))}))
		i := int(next.Load()) * 1000
		for pb.Next() {
			s.Read(sess, refs[i%len(refs)], r, s.Epoch())
			i++
		}
	})
}

func BenchmarkTakeOfNothing(b *testing.B) {
	s := New(Options{MaxAge: 1})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		base, _ := s.Take(ctx, pool, ref, nil)
		base.Release()
	}
}

func BenchmarkReadTakeRelease(b *testing.B) {
	s := New(Options{})
	r := benchRevision()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		s.Read(one, ref, r, s.Epoch())
		base, _ := s.Take(ctx, one, ref, r.Source)
		base.Release()
	}
}

func BenchmarkReadTakeCommit(b *testing.B) {
	s := New(Options{})
	r := benchRevision()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		s.Read(one, ref, r, s.Epoch())
		base, _ := s.Take(ctx, one, ref, r.Source)
		r.SeqNo++
		base.Commit(Ack{Stored: r, Sent: r.Source})
	}
}

// BenchmarkReadTakeCommitOfMany is of a session without a name, whose repeats are looked for.
func BenchmarkReadTakeCommitOfMany(b *testing.B) {
	s := New(Options{})
	r := benchRevision()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		s.Read(pool, ref, r, s.Epoch())
		base, _ := s.Take(ctx, pool, ref, r.Source)
		r.SeqNo++
		base.Commit(Ack{Stored: r, Sent: r.Source})
		base.NoteAnswer()
	}
}

// The state of a Take is larger than all that it leaves, and stays on the stack.
func TestATakeOfNothingAllocatesNothing(t *testing.T) {
	s := New(Options{MaxAge: 1})
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		base, _ := s.Take(ctx, pool, ref, nil)
		base.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
