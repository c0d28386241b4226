// Package notefile keeps, in a small file, the numbers of the revisions that sessions know, so that they survive any end of the
// process.
//
// The file is mapped into memory: the next process finds the notes, also after kill -9. It isn't synced to the disk, so a power
// cut, or a crash of the system, may lose it. If another process cuts the file off, the notes are lost, and nothing else. The
// file holds no names and no documents: a note stands under a keyed hash. It has a fixed size. If a part of it is full, the oldest note
// that doesn't count any more makes room. If all count, the network with most notes there loses its oldest one.
package notefile

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"optimist/internal/doc"
	"optimist/internal/filelock"
	"optimist/internal/hook"
	"optimist/internal/note"
)

// The file is an array of words in the machine's own order: a head, the moments at which indices were dropped, and the slots.
const (
	// Size is the file's, in bytes.
	Size = 4 << 20

	headWords   = 64
	dropWords   = 448
	slotsFrom   = headWords + dropWords
	slotWords   = 6
	slots       = 8 // in a bucket
	bucketWords = slots * slotWords
	words       = Size / 8
	buckets     = (words - slotsFrom) / bucketWords

	magicAt  = 0 // the last that is written of a new file
	secretAt = 1
	clockAt  = 3                     // see clock.go
	magic    = 0x0131_7473_696d_6974 // with the number of the format
)

// The words of a slot. A slot is changed with its tag at 0.
const (
	tagAt = iota
	seqNoAt
	termAt
	timeAt
	metaAt
	sumAt
)

// ErrLost reports that somebody has cut the file off, or that it can't be read or written any more. The book is empty from then on, and
// stays so.
var ErrLost = errors.New("it was cut off, or can't be read or written any more")

// errForeign reports that the file is damaged, or isn't ours.
var errForeign = errors.New("it isn't a file of notes, or is damaged")

// Book is an open file of notes. It is safe for concurrent use. It implements note.Notebook.
type Book struct {
	file   *os.File
	data   []byte
	words  []atomic.Uint64 // data; nil once the book is closed
	secret [sha256.Size]byte
	clocks clocks
	locks  [64]sync.Mutex // each of the buckets whose number is its own modulo 64; the first also of the drops. All: of words
	lost   atomic.Bool

	// Lost is called, once, with ErrLost. It is called with locks of the book held. Set it before the book is used.
	Lost hook.Func1[error]
	// MaxAge is how long a note counts. 0: always. Set it before the book is used.
	MaxAge time.Duration
}

// Open opens the file, and makes it where it is missing. realm stands for what its notes are about: those of another realm are not
// found. A file that is damaged, or isn't one of notes, is set aside under the name in the second result, and made anew. The error is
// filelock.ErrInUse where another process has the file.
func Open(path string, realm []byte) (b *Book, aside string, err error) {
	b, err = open(path, realm)
	if !errors.Is(err, errForeign) {
		return b, "", err
	}
	aside = path + ".damaged"
	if err := os.Rename(path, aside); err != nil {
		return nil, "", err
	}
	if b, err = open(path, realm); err != nil {
		return nil, aside, err
	}
	return b, aside, nil
}

func open(path string, realm []byte) (*Book, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b := &Book{file: f, clocks: systemClocks}
	if err := b.load(realm); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// load locks the file, and maps it.
func (b *Book) load(realm []byte) (err error) {
	defer func(before bool) {
		debug.SetPanicOnFault(before)
		if faulted(recover()) {
			err = errForeign
		}
	}(debug.SetPanicOnFault(true))
	if err := filelock.Take(b.file); err != nil {
		return err
	}
	st, err := b.file.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New("it isn't a file")
	}
	fresh := st.Size() == 0
	if fresh {
		// Not a hole: a write to one on a full disk, through the map, ends the process.
		if _, err := b.file.Write(make([]byte, Size)); err != nil {
			_ = b.file.Truncate(0) // the next process tries again
			return err
		}
	} else if st.Size() != Size {
		return errForeign
	}
	if b.data, err = mapFile(b.file, Size); err != nil {
		return err
	}
	b.words = unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b.data[0])), words) //nolint:gosec // pages are aligned, and as long as data
	if !fresh && b.words[magicAt].Load() != magic {
		return errForeign
	}
	if fresh {
		var secret [16]byte
		if _, err := io.ReadFull(rand.Reader, secret[:]); err != nil {
			return err
		}
		copy(b.data[8*secretAt:], secret[:])
		b.words[magicAt].Store(magic)
	}
	b.secret = sha256.Sum256(append(append([]byte(nil), b.data[8*secretAt:8*secretAt+16]...), realm...))
	return nil
}

// Close gives the file free for others. The book is empty from then on, and stays so.
func (b *Book) Close() {
	for i := range b.locks {
		b.locks[i].Lock()
		defer b.locks[i].Unlock()
	}
	if b.data != nil {
		unmapFile(b.data)
		b.data, b.words = nil, nil
	}
	_ = b.file.Close() // which unlocks it
}

// survive, deferred, ends the use of the map: before is what debug.SetPanicOnFault(true) returned at its beginning. Where another process
// has cut the file off, or the disk fails, the use ends in a fault. Without this it would end the process.
func (b *Book) survive(before bool) {
	debug.SetPanicOnFault(before)
	if faulted(recover()) && b.lost.CompareAndSwap(false, true) {
		b.Lost.Call(ErrLost)
	}
}

// faulted reports whether what was recovered is a fault of memory. Other panics go on.
func faulted(recovered any) bool {
	if recovered == nil {
		return false
	}
	if fault, is := recovered.(interface{ Addr() uintptr }); !is || fault.Addr() < 1<<16 {
		panic(recovered) // nil pointers among them
	}
	return true
}

// Secret is what the hashes of the book are keyed by.
func (b *Book) Secret() [sha256.Size]byte { return b.secret }

// bucket locks the bucket of id, and returns it: nil of a book that is closed.
func (b *Book) bucket(id note.ID) (bucket []atomic.Uint64, l *sync.Mutex) {
	n := id.Place % buckets
	l = &b.locks[n%uint64(len(b.locks))]
	l.Lock()
	if b.words == nil || b.lost.Load() {
		return nil, l
	}
	from := slotsFrom + n*bucketWords
	return b.words[from : from+bucketWords : from+bucketWords], l
}

// Put notes n under id, in the place of what was noted there before. A note of no clients is none: what was noted goes. It doesn't
// allocate, and waits for nothing but another note in the same place.
func (b *Book) Put(id note.ID, n note.Note) {
	bucket, l := b.bucket(id)
	defer l.Unlock()
	if bucket == nil {
		return
	}
	defer b.survive(debug.SetPanicOnFault(true))
	s := find(bucket, id.Tag)
	if n.Clients <= 0 {
		if s != nil {
			s[tagAt].Store(0)
		}
		return
	}
	b.tick(n.At) // first: a note that is later than the last moment would be from the future for the next process
	if s == nil {
		s = b.room(bucket, &n)
	}
	s[tagAt].Store(0)
	s[seqNoAt].Store(uint64(n.Numbers.SeqNo))      //nolint:gosec // the same bits
	s[termAt].Store(uint64(n.Numbers.PrimaryTerm)) //nolint:gosec // likewise
	s[timeAt].Store(uint64(n.At))                  //nolint:gosec // likewise
	s[metaAt].Store(meta(&n))
	s[sumAt].Store(sum(s, id.Tag))
	s[tagAt].Store(id.Tag)
}

// Get returns the note under id. Notes from before their index was dropped don't count.
func (b *Book) Get(id note.ID) (n note.Note, ok bool) {
	bucket, l := b.bucket(id)
	defer l.Unlock()
	defer b.survive(debug.SetPanicOnFault(true))
	s := find(bucket, id.Tag)
	if s == nil || s[sumAt].Load() != sum(s, id.Tag) {
		return n, false
	}
	m := s[metaAt].Load()
	n = note.Note{
		Numbers: doc.Numbers{SeqNo: int64(s[seqNoAt].Load()), PrimaryTerm: int64(s[termAt].Load())}, //nolint:gosec // the same bits
		At:      int64(s[timeAt].Load()),                                                            //nolint:gosec // likewise
		Clients: int(m & 0xff), Written: m&(1<<8) != 0, StoredDiffers: m&(1<<9) != 0, Network: uint32(m >> 32),
	}
	return n, n.At > int64(b.dropped(id.Index).Load()) //nolint:gosec // likewise
}

// Drop makes all that was noted of an index up to the moment at none. It may make what was noted of another
// index none, too.
func (b *Book) Drop(index uint64, at int64) {
	l := &b.locks[0]
	l.Lock()
	defer l.Unlock()
	if b.words == nil || b.lost.Load() {
		return
	}
	defer b.survive(debug.SetPanicOnFault(true))
	b.tick(at)
	if d := b.dropped(index); int64(d.Load()) < at { //nolint:gosec // the same bits
		d.Store(uint64(at)) //nolint:gosec // likewise
	}
}

// DropAll is Drop for all indices.
func (b *Book) DropAll(at int64) {
	for i := range uint64(dropWords) {
		b.Drop(i, at)
	}
}

func (b *Book) dropped(index uint64) *atomic.Uint64 { return &b.words[headWords+index%dropWords] }

// find returns the slot of the tag, or nil.
func find(bucket []atomic.Uint64, tag uint64) []atomic.Uint64 {
	for i := 0; i < len(bucket); i += slotWords {
		if bucket[i+tagAt].Load() == tag {
			return bucket[i : i+slotWords : i+slotWords]
		}
	}
	return nil
}

// room returns the slot for n: one that is free, or else one whose note doesn't count any more when n is made, or else leaving.
func (b *Book) room(bucket []atomic.Uint64, n *note.Note) []atomic.Uint64 {
	oldest := bucket
	for i := 0; i < len(bucket); i += slotWords {
		s := bucket[i : i+slotWords : i+slotWords]
		if s[tagAt].Load() == 0 {
			return s
		}
		if at(s) < at(oldest) {
			oldest = s
		}
	}
	if b.MaxAge > 0 && at(oldest) <= n.At-int64(b.MaxAge) {
		return oldest[:slotWords:slotWords]
	}
	return leaving(bucket, n.Network)
}

// at is when the note in a slot was made.
func at(s []atomic.Uint64) int64 { return int64(s[timeAt].Load()) } //nolint:gosec // the same bits

// leaving returns the slot that makes room in a full bucket: the oldest one of the network that has most notes there, the new one included.
// So nobody who makes up clients takes the places of others.
func leaving(bucket []atomic.Uint64, newcomer uint32) (leaves []atomic.Uint64) {
	most := 0
	for i := 0; i < len(bucket); i += slotWords {
		h, has := network(bucket, i), 0
		if h == newcomer {
			has++
		}
		for j := 0; j < len(bucket); j += slotWords {
			if network(bucket, j) == h {
				has++
			}
		}
		if s := bucket[i : i+slotWords : i+slotWords]; has > most || has == most && at(s) < at(leaves) {
			leaves, most = s, has
		}
	}
	return leaves
}

// network is the network of the note in the slot at i.
func network(bucket []atomic.Uint64, i int) uint32 {
	return uint32(bucket[i+metaAt].Load() >> 32)
}

func meta(n *note.Note) uint64 {
	m := uint64(min(n.Clients, 0xff)) | uint64(n.Network)<<32 //nolint:gosec // not negative
	if n.Written {
		m |= 1 << 8
	}
	if n.StoredDiffers {
		m |= 1 << 9
	}
	return m
}

// sum tells a slot that is whole from one that isn't.
func sum(s []atomic.Uint64, tag uint64) uint64 {
	h := tag
	for i := seqNoAt; i < sumAt; i++ {
		h = (h ^ s[i].Load()) * 0x9e37_79b9_7f4a_7c15
		h ^= h >> 29
	}
	return h
}
