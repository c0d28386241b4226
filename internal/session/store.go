package session

import (
	"bytes"
	"cmp"
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
	minMemory = 64 << 10
	maxShards = 16
	// minShard is the least memory of a shard. A document has no more than its shard's memory for all its clients, and a body in it no more
	// than a quarter. With less, several clients of one document of a few MB would push out each other's reads.
	minShard = 64 << 20
	// copyOutside is the size from which a body is copied without holding the shard's lock.
	copyOutside = 16 << 10
)

// Store is what clients have seen. It is safe for concurrent use.
type Store struct {
	*contents
	dryRun  bool       // see Glance
	compare Comparison // see Comparing
}

// Comparison says how the store compares the body of a write with the documents that clients have seen. The zero value is for whole
// documents.
type Comparison struct {
	// On returns the document that a client would send if it had seen the document base; base is nil if there is no document. On must be pure.
	// Nil: the client would send the body of the write, and neither Part nor Marks counts.
	On func(base []byte) ([]byte, error)
	// Part says that the argument sent of Take, TakeAt and TakeCopy is a part of a document. On then returns base with the part merged in, and
	// base itself if the part changes nothing. The Sent of the write's Ack is what On returns for the base's View.
	Part bool
	// Sets reports whether the part means the same from any base: it only sets values. It is called for parts alone; nil: none does.
	Sets func() bool
	// Marks is the name of the member of whole documents in which optimist keeps its marks. Clients may leave it out. On returns the sent
	// document with the marks of base. Empty: documents have no marks.
	Marks string
	Sums  bool      // the rule adds numbers up
	Keys  rank.Keys // the names of members by which the rule tells entries of lists apart
}

type contents struct {
	o       Options
	clock   func() int64 // the time since the store's start
	seed    maphash.Seed
	indices *indexstate.Indices[Session]
	// changers has the threads of work that have changed documents of which nobody knows which ones they are: see ChangedUnknown.
	changers indexstate.Moments[Session]
	habits   viewcache.Habits
	notes    *note.Book // nil: there is none
	shards   []*shard

	// sure is a moment. From then on, a client without a known read certainly has no base. Until then, the client may have read while optimist
	// saw no requests.
	sure atomic.Int64

	tickets  atomic.Uint64
	waited   atomic.Uint64
	tooLarge atomic.Uint64
}

// New returns an empty store. It starts no goroutine and needs no closing.
func New(o Options) *Store {
	o.MaxAge, o.Candidates = cmp.Or(o.MaxAge, 5*time.Minute), cmp.Or(o.Candidates, 128)
	o.Memory = max(cmp.Or(o.Memory, 256<<20), minMemory)
	if o.Rank == nil {
		o.Rank = rank.Likeliest
	}
	if o.Left == nil {
		o.Left = func(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
	}
	start := time.Now()
	clock := func() int64 { return int64(time.Since(start)) } // costs a third of time.Now, and a write asks for the time four times
	if o.Now != nil {
		start = o.Now()
		clock = func() int64 { return int64(o.Now().Sub(start)) }
	}
	n := 1
	for n < maxShards && o.Memory/int64(2*n) >= minShard {
		n *= 2
	}
	s := &Store{contents: &contents{
		o: o, clock: clock, seed: maphash.MakeSeed(), indices: indexstate.New[Session](o.MaxAge), habits: viewcache.NewHabits(),
		shards: make([]*shard, n),
	}}
	s.sure.Store(int64(o.MaxAge))
	s.notes = note.NewBook(o.Notes, o.MaxAge)
	for i := range s.shards {
		s.shards[i] = newShard(s, o.Memory/int64(n))
	}
	return s
}

// Glance returns the same store for a dry run, which only asks which base a write would have. The dry run reserves nothing: during a
// reservation, however short, another write of the session would get another base. It counts nothing, and ending its bases changes nothing.
// The methods that note what a session has read, written or been shown do nothing. Carry does what it does for any write.
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

// Epoch returns the current epoch. It costs one load.
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

// Wrote notes that clients overwrite documents of the index. So bodies that clients read from it are worth keeping. Commit and Delete note
// this themselves.
func (s *Store) Wrote(c Credentials, index string) {
	if !s.dryRun {
		s.index(index, c, s.clock()).Wrote()
	}
}

// Dropped reports whether the store has forgotten the index since the epoch at.
func (s *Store) Dropped(c Credentials, index string, at Epoch) bool {
	return at < s.Epoch() && at < s.find(index, c, s.clock()).Gone() // the first is mostly false, and cheap
}

// index returns the state of the index of that name, for clients with those credentials. The engine must have the index.
func (s *Store) index(name string, c Credentials, now int64) indexstate.Index[Session] {
	return s.indices.Index(name, indexstate.Owner(c), now)
}

// find is index for a name that may be of no index.
func (s *Store) find(name string, c Credentials, now int64) indexstate.Index[Session] {
	return s.indices.Find(name, indexstate.Owner(c), now)
}

// findOf is find for the index of k.
func (s *Store) findOf(k viewcache.Key, now int64) indexstate.Index[Session] {
	return s.find(k.Ref.Index, k.Session.Credentials(), now)
}

// renewed is called without a lock held, when clients with these credentials have shown that somebody has made the index anew.
func (s *Store) renewed(c Credentials, index string) {
	s.notes.DropIndex(index, s.clock())
	s.o.Renewed.Call(c, index)
}

// DropIndex forgets an index for clients with those credentials: its numbers may mean other documents from now on. For all other clients
// that is a suspicion: see Suspicion. Call it after the answer to a request that deletes or changes an index or alias, or when that answer
// is lost.
func (s *Store) DropIndex(c Credentials, index string) {
	now := s.clock()
	s.find(index, c, now).Drop()
	s.notes.DropIndex(index, now)
}

// Resume is called when optimist begins to see requests that it didn't see for a while. As after a start, a client without a known read may
// have read before. missed says that optimist had seen earlier requests of the same clients. Their next writes may be based on reads or
// writes that optimist has missed. So the store forgets what these clients have read and written.
func (s *Store) Resume(missed bool) {
	s.sure.Store(s.clock() + int64(s.o.MaxAge))
	if missed {
		s.indices.DropAll()
		s.notes.DropIndices(s.clock())
	}
}
