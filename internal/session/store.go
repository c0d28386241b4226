package session

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"optimist/internal/indexstate"
	"optimist/internal/note"
	"optimist/internal/rank"
	"optimist/internal/viewcache"
)

const (
	defaultMaxAge     = 5 * time.Minute
	defaultMemory     = 256 << 20
	minMemory         = 64 << 10
	defaultCandidates = 128

	maxShards = 16
	// minShard is what a shard gets at least: with less, ordinary documents would be too large for it.
	minShard = 4 << 20
	// copyOutside is the size from which a body is copied without holding the shard's lock.
	copyOutside = 16 << 10
)

// Store is what clients have seen. It is safe for concurrent use.
type Store struct {
	*contents
	dryRun  bool       // see Glance
	compare Comparison // see Comparing
}

// Comparison says how what writes send is compared with what clients have seen. The zero value is for whole documents.
type Comparison struct {
	// On returns what would be sent by a client that has seen the document base; base is nil if there is no document. On must be pure. Nil:
	// the same would be sent, and neither Part nor Marks counts.
	On func(base []byte) ([]byte, error)
	// Part says that the argument sent of Take, TakeAt and TakeCopy is a part of a document. On returns what that makes of base then, and
	// base itself if the part changes nothing. The Sent of the write's Ack is what On makes of the base's View.
	Part bool
	// Marks is the name of a member of whole documents that isn't the client's, and that clients may leave out: the marks. On returns what was
	// sent with those of base. Empty: there are none.
	Marks string
	Sums  bool      // the rule adds numbers up
	Keys  rank.Keys // the names of members by which the rule tells entries of lists apart
}

type contents struct {
	o       Options
	clock   func() int64 // the time since the store's start
	seed    maphash.Seed
	indices *indexstate.Indices[Session]
	// changers are threads of work that have changed documents, and nobody knows which ones: see ChangedUnknown.
	changers indexstate.Moments[Session]
	notes    *note.Book // nil: there is none
	shards   []*shard

	// sure is the moment from which on a client without a known read certainly has no base. Before it, the client may have read at a time
	// when optimist saw no requests.
	sure atomic.Int64

	tickets  atomic.Uint64
	waited   atomic.Uint64
	tooLarge atomic.Uint64
}

// New returns an empty store. It starts no goroutine and needs no closing.
func New(o Options) *Store {
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	o.Memory = max(o.Memory, minMemory)
	if o.Candidates <= 0 {
		o.Candidates = defaultCandidates
	}
	if o.Rank == nil {
		o.Rank = rank.Likeliest
	}
	if o.Left == nil {
		o.Left = func(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
	}
	start := time.Now()
	clock := func() int64 { return int64(time.Since(start)) } // costs a third of time.Now, and is asked four times a write
	if o.Now != nil {
		start = o.Now()
		clock = func() int64 { return int64(o.Now().Sub(start)) }
	}
	n := 1
	for n < maxShards && o.Memory/int64(2*n) >= minShard {
		n *= 2
	}
	s := &Store{contents: &contents{
		o: o, clock: clock, seed: maphash.MakeSeed(), indices: indexstate.New[Session](o.MaxAge), shards: make([]*shard, n),
	}}
	s.sure.Store(int64(o.MaxAge))
	s.notes = note.NewBook(o.Notes, o.MaxAge)
	for i := range s.shards {
		s.shards[i] = newShard(s, o.Memory/int64(n))
	}
	return s
}

// Glance returns the same store for a dry run, which only asks which base a write would have. Nothing is reserved: a reservation, however
// short, would leave another base to a write of the same session. Nothing is counted, and ending a base changes nothing. A Witness, Read,
// Wrote and WroteElse do nothing.
func (s *Store) Glance() *Store { return &Store{contents: s.contents, dryRun: true} }

// Comparing returns the same store for writes that are compared so.
func (s *Store) Comparing(c Comparison) *Store {
	if now := &s.compare; c.On == nil && now.On == nil && c.Sums == now.Sums && c.Keys == now.Keys {
		return s
	}
	other := *s
	other.compare = c
	return &other
}

// shard returns the shard of k's document, which is the same for all sessions with the same credentials.
func (s *Store) shard(k viewcache.Key) *shard {
	return s.shards[k.Hash(s.seed)%uint64(len(s.shards))]
}

// Epoch returns the current moment, by which incarnations of indices are told apart. It is one load.
func (s *Store) Epoch() Epoch { return s.indices.Epoch() }

// Now is the time since the store's start, in nanoseconds.
func (s *Store) Now() int64 { return s.clock() }

// worth returns data if it is worth keeping, else nil. A client that names its session does so because it writes.
func (s *Store) worth(data []byte, named bool, ix indexstate.Index[Session], now int64) []byte {
	if keeps := ix.KeepsBodies(now); !keeps && !named {
		return nil
	}
	if !s.shards[0].HasRoomFor(data) {
		s.tooLarge.Add(1)
		return nil
	}
	return data
}

// bodies returns copies of an acknowledged write's bodies. If they are equal, it returns one copy twice.
func (s *Store) bodies(a *Ack, named bool, ix indexstate.Index[Session], now int64) (stored, sent []byte) {
	if a.Stored.Source != nil {
		stored = bytes.Clone(s.worth(a.Stored.Source, named, ix, now))
	}
	switch {
	case a.Sent == nil:
	case viewcache.Same(stored, a.Sent):
		sent = stored
	default:
		sent = bytes.Clone(s.worth(a.Sent, named, ix, now))
	}
	return stored, sent
}

// Wrote notes that documents of the index are overwritten. Bodies that are read from it are worth keeping then. Commit and Delete
// note that for their own writes.
func (s *Store) Wrote(c Credentials, index string) {
	if !s.dryRun {
		s.index(index, c, s.clock()).Wrote()
	}
}

// Dropped reports whether the store has forgotten since that moment what it knew of the index.
func (s *Store) Dropped(c Credentials, index string, at Epoch) bool {
	return at < s.find(index, c, s.clock()).Gone()
}

// index returns the state of the index that the name stands for, for clients with those credentials. The index is there.
func (s *contents) index(name string, c Credentials, now int64) indexstate.Index[Session] {
	return s.indices.Index(name, indexstate.Owner(c), now)
}

// find is index for an index that may not be there.
func (s *contents) find(name string, c Credentials, now int64) indexstate.Index[Session] {
	return s.indices.Find(name, indexstate.Owner(c), now)
}

// DropIndex forgets an index for clients with those credentials: its numbers may mean other documents from now on. For all other clients
// that is a suspicion: see Suspicion. Call it after the answer to a request that deletes or changes an index or alias, or when that answer
// is lost.
func (s *Store) DropIndex(c Credentials, index string) {
	now := s.clock()
	s.find(index, c, now).Drop()
	s.notes.DropIndex(index, now)
}

// Resume is called when optimist sees requests again that it didn't see for a while. As after a start, an unknown client may have read
// before. missed says that optimist had seen earlier requests of the same clients. Then it forgets these clients' reads and writes: their
// next writes may be based on reads or writes that it didn't see.
func (s *Store) Resume(missed bool) {
	s.sure.Store(s.clock() + int64(s.o.MaxAge))
	if missed {
		s.indices.DropAll()
		s.notes.DropIndices(s.clock())
	}
}
