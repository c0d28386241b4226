//go:build unix

package notefile

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/filelock"
	"optimist/internal/note"
)

func opened(t testing.TB, path, realm string) *Book {
	t.Helper()
	b, aside, err := Open(path, []byte(realm))
	if err != nil || aside != "" {
		t.Fatal(err, aside)
	}
	t.Cleanup(b.Close)
	return b
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "sessions") }

func noteAt(seqNo int64) note.Note {
	return note.Note{Numbers: doc.Numbers{SeqNo: seqNo, PrimaryTerm: 1}, At: 1000 + seqNo, Clients: 1 + int(seqNo)%9, Written: seqNo%2 == 0, StoredDiffers: seqNo%3 == 0, Network: uint32(seqNo) % 3}
}

func id(n uint64) note.ID { return note.ID{Place: n % 7, Tag: n<<1 | 1, Index: n % 5} }

func TestABookHoldsWhatAMapHolds(t *testing.T) {
	path, model := file(t), map[note.ID]note.Note{}
	b := opened(t, path, "engine")
	r := rand.New(rand.NewPCG(1, 2))
	for n := range int64(5000) {
		switch i := id(r.Uint64N(7 * slots)); r.IntN(4) {
		case 0:
			b.Put(i, note.Note{})
			delete(model, i)
		case 1:
			if n%500 == 0 { // the next process
				b.Close()
				b = opened(t, path, "engine")
			}
		default:
			b.Put(i, noteAt(n))
			model[i] = noteAt(n)
		}
	}
	for n := range uint64(7 * slots) {
		got, ok := b.Get(id(n))
		want, known := model[id(n)]
		if ok != known || got != want && known {
			t.Fatalf("%d: %v %v, want %v %v", n, got, ok, want, known)
		}
	}
}

func TestInAFullBucketTheOldestGoes(t *testing.T) {
	b := opened(t, file(t), "")
	for n := range int64(slots + 1) {
		b.Put(note.ID{Tag: uint64(n) + 1}, noteAt((n+3)%(slots+1)))
	}
	for n := range int64(slots + 1) {
		oldest := (n+3)%(slots+1) == 0
		if n == slots || oldest {
			continue // the last one found all places taken, and the oldest gone
		}
		if _, ok := b.Get(note.ID{Tag: uint64(n) + 1}); !ok && (n+3)%(slots+1) != 1 {
			t.Errorf("%d is gone", n)
		}
	}
	if _, ok := b.Get(note.ID{Tag: slots + 1}); !ok {
		t.Error("the newest isn't there")
	}
}

// Clients can be made up in any number, but not where they are.
func TestWhoHasMostOfABucketMakesRoom(t *testing.T) {
	b := opened(t, file(t), "")
	put := func(tag uint64, network uint32, at int64) {
		b.Put(note.ID{Tag: tag}, note.Note{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, At: at, Clients: 1, Network: network})
	}
	for n := range uint64(slots) { // one note of an honest client among those of others
		put(n+1, uint32(n)+1, int64(n)+1)
	}
	for n := range uint64(1000) {
		put(n+100, 77, int64(n)+100)
	}
	gone := 0
	for n := range uint64(slots) {
		if _, ok := b.Get(note.ID{Tag: n + 1}); !ok {
			gone++
		}
	}
	if _, ok := b.Get(note.ID{Tag: 1099}); gone != 1 || !ok {
		t.Errorf("%d notes of others are gone, and the newest is there: %v", gone, ok)
	}
	for n := range uint64(slots) { // one who has the bucket alone gives half of it away
		put(n+10_000, 5, int64(n)+10_000)
	}
	left := 0
	for n := range uint64(1000) {
		put(n+20_000, 6, int64(n)+20_000)
	}
	for n := range uint64(slots) {
		if _, ok := b.Get(note.ID{Tag: n + 10_000}); ok {
			left++
		}
	}
	if left == 0 {
		t.Error("nothing is left of one network's notes")
	}
}

// Many clients are often at one address, behind a gateway. Their notes take the places of those that count no more, before they take each
// other's.
func TestWhatDoesntCountAnyMoreMakesRoomFirst(t *testing.T) {
	const maxAge, start = 1000, int64(10_000)
	b := opened(t, file(t), "")
	b.MaxAge = maxAge
	put := func(tag uint64, network uint32, at int64) {
		b.Put(note.ID{Tag: tag}, note.Note{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, At: at, Clients: 1, Network: network})
	}
	known := func(from, to uint64) (n int) {
		for tag := from; tag < to; tag++ {
			if _, ok := b.Get(note.ID{Tag: tag}); ok {
				n++
			}
		}
		return n
	}
	const count, gone, busy = 1, 10, 100 // the tags of notes that count, of those that don't, and of the busy address
	put(count, 1, start-maxAge+slots)
	for n := range uint64(slots - 1) {
		put(gone+n, uint32(n)+2, start-maxAge-int64(n))
	}
	for n := range uint64(slots - 1) {
		put(busy+n, 77, start+int64(n))
		if known(busy, busy+n+1) != int(n)+1 {
			t.Fatalf("after %d notes of the busy address, %d are left", n+1, known(busy, busy+n+1))
		}
	}
	if known(gone, gone+slots) != 0 || known(count, count+1) != 1 {
		t.Error("what doesn't count didn't go first")
	}
	if put(busy+slots, 77, start+slots-1); known(count, count+1) != 1 || known(busy, busy+1) != 0 {
		t.Error("where all count, it isn't the busy address whose oldest goes")
	}
	if put(busy+slots+1, 77, start+slots); known(count, count+1) != 0 {
		t.Error("a note that is max age old counts")
	}
}

func TestASlotThatIsTornIsNone(t *testing.T) {
	for word := range slotWords {
		b := opened(t, file(t), "")
		b.Put(id(3), noteAt(3))
		bucket, l := b.bucket(id(3))
		l.Unlock()
		s := find(bucket, id(3).Tag)
		s[word].Store(s[word].Load() + 2)
		if n, ok := b.Get(id(3)); ok {
			t.Errorf("word %d: %v", word, n)
		}
	}
}

func TestNotesFromBeforeADropAreNone(t *testing.T) {
	b := opened(t, file(t), "")
	for n := range uint64(5) {
		b.Put(id(n), noteAt(int64(n)))
	}
	b.Drop(id(2).Index, noteAt(2).At)
	for n := range uint64(5) {
		if _, ok := b.Get(id(n)); ok != (n != 2) {
			t.Error(n, ok)
		}
	}
	if b.Put(id(2), noteAt(7)); true {
		if _, ok := b.Get(id(2)); !ok {
			t.Error("what was noted after the drop is none")
		}
	}
	b.DropAll(noteAt(9).At)
	if _, ok := b.Get(id(2)); ok {
		t.Error("something outlives the drop of all")
	}
}

func TestASecondProcessGetsNone(t *testing.T) {
	path := file(t)
	b := opened(t, path, "")
	if _, _, err := Open(path, nil); !errors.Is(err, filelock.ErrInUse) {
		t.Fatal(err)
	}
	b.Close()
	opened(t, path, "")
}

func TestWhatIsNoFileOfNotesIsSetAside(t *testing.T) {
	for name, content := range map[string][]byte{"short": []byte("hello"), "foreign": make([]byte, Size), "long": make([]byte, Size+1)} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			b, aside, err := Open(path, nil)
			if err != nil || aside != path+".damaged" {
				t.Fatal(err, aside)
			}
			defer b.Close()
			if kept, err := os.ReadFile(aside); err != nil || string(kept) != string(content) {
				t.Error("what was there is gone", err)
			}
			b.Put(id(1), noteAt(1))
			if _, ok := b.Get(id(1)); !ok {
				t.Error("the new file isn't used")
			}
		})
	}
	if _, _, err := Open(t.TempDir(), nil); err == nil {
		t.Error("a folder is no file")
	}
}

func TestEachRealmHasASecret(t *testing.T) {
	path := file(t)
	b := opened(t, path, "one")
	one := b.Secret()
	b.Close()
	if b := opened(t, path, "two"); b.Secret() == one {
		t.Error("another engine's notes are found")
	} else {
		b.Close()
	}
	if opened(t, path, "one").Secret() != one {
		t.Error("the next process finds nothing")
	}
}

func TestAClosedBookIsEmpty(t *testing.T) {
	b := opened(t, file(t), "")
	b.Put(id(1), noteAt(1))
	b.Close()
	b.Put(id(1), noteAt(1))
	b.DropAll(5)
	if _, ok := b.Get(id(1)); ok {
		t.Error("it holds something")
	}
}

// Somebody cuts the file off while it is in use. What a process reads behind the end of a file that is mapped is a fault.
func TestAFileThatIsCutOffEndsNobody(t *testing.T) {
	for name, use := range map[string]func(b *Book){
		"put":      func(b *Book) { b.Put(id(1), noteAt(2)) },
		"get":      func(b *Book) { b.Get(id(1)) },
		"drop":     func(b *Book) { b.Drop(1, 5) },
		"drop all": func(b *Book) { b.DropAll(5) },
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			b := opened(t, path, "")
			b.Put(id(1), noteAt(1))
			var lost []error
			b.Lost = func(err error) { lost = append(lost, err) }
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			use(b)
			if len(lost) != 1 || !errors.Is(lost[0], ErrLost) {
				t.Fatalf("told: %v", lost)
			}
			b.Put(id(2), noteAt(2))
			b.Drop(2, 5)
			for n := range uint64(4) {
				if _, ok := b.Get(id(n)); ok {
					t.Errorf("%d is still known", n)
				}
			}
			if len(lost) != 1 {
				t.Errorf("told %d times", len(lost))
			}
			b.Close()
			next, aside, err := Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close()
			if next.Put(id(1), noteAt(1)); aside != "" {
				t.Errorf("an empty file is a new one: %s", aside)
			}
			if _, ok := next.Get(id(1)); !ok {
				t.Error("the next process can't use the file")
			}
		})
	}
}

func TestPanicsThatAreNoFaultsGoOn(t *testing.T) {
	b := opened(t, file(t), "")
	for name, bad := range map[string]func(){
		"a nil pointer": func() { var n *note.Note; n.At++ },
		"an index":      func() { _ = make([]int, 1)[len(b.words)] },
		"one of ours":   func() { panic("ours") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is hidden", name)
				}
			}()
			defer b.survive(false)
			bad()
		}()
	}
}

func TestANoteAllocatesNothing(t *testing.T) {
	b := opened(t, file(t), "")
	if n := testing.AllocsPerRun(100, func() { b.Put(id(1), noteAt(1)); b.Get(id(1)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPut(b *testing.B) {
	book := opened(b, file(b), "")
	b.ReportAllocs()
	n := uint64(0)
	for b.Loop() {
		n++
		book.Put(note.ID{Place: n * 7919, Tag: n | 1}, noteAt(5))
	}
}
