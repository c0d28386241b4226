package note

import (
	"crypto/sha256"
	"testing"
	"time"

	"optimist/internal/doc"
)

// page is a Notebook of one note.
type page struct {
	Note
	start int64
}

func (p *page) Begin() int64              { return p.start }
func (p *page) Secret() [sha256.Size]byte { return [sha256.Size]byte{} }
func (p *page) Put(_ ID, n Note)          { p.Note = n }
func (p *page) Get(ID) (Note, bool)       { return p.Note, p.Clients > 0 }
func (p *page) Drop(uint64, int64)        {}
func (p *page) DropAll(int64)             {}

func TestOnlyWhatTheProcessBeforeHasNotedIsRecalled(t *testing.T) {
	const age = time.Minute
	start := time.Unix(1000, 0).UnixNano()
	for _, c := range []struct {
		what string
		at   time.Duration // after the start
		then bool
	}{
		{"a note from before the start", -time.Second, true},
		{"a note from before the start that is too old", -age, false},
		{"a note of this process", time.Second, false},
	} {
		b := NewBook(&page{Note{At: start + int64(c.at), Clients: 1}, start}, age)
		if got := b.Recall(ID{}, 0) != nil; got != c.then {
			t.Errorf("%s is recalled: %v", c.what, got)
		}
	}
	var none *Book
	if none.Counts(0) || NewBook(nil, age) != nil {
		t.Error("no notebook counts")
	}
	if b := NewBook(&page{start: start}, age); !b.Counts(int64(age)-1) || b.Counts(int64(age)) {
		t.Error("notes count for another time than the age of what is known")
	}
}

func TestTheOlderOfTwoNotesIsKept(t *testing.T) {
	at := func(n int64) Note { return Note{Numbers: doc.Numbers{SeqNo: n, PrimaryTerm: 1}, Clients: 1} }
	var n Note
	n.Add(at(5))
	n.Add(at(3))
	n.Add(at(4))
	if want := at(3).Numbers; n.Numbers != want || n.Clients != 3 {
		t.Errorf("%+v", n)
	}
}
