package deadletter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"optimist/internal/enginetest"
)

// breaking is a store whose nth Put breaks off.
type breaking struct {
	Store
	nth  int
	how  string
	late func() // does the Put that hasn't arrived yet; nil: there is none
	dead bool   // its process is gone
}

func (b *breaking) Put(ctx context.Context, l *Letter, in Revision) (Revision, error) {
	if b.dead {
		return Revision{}, ErrAway
	}
	if b.nth--; b.nth != 0 {
		return b.Store.Put(ctx, l, in)
	}
	late := *l
	put := func() { _, _ = b.Store.Put(context.WithoutCancel(ctx), &late, in) }
	if b.late = put; b.how != "late" {
		b.late = nil
		put()
	}
	b.dead = b.how == "killed"
	return Revision{}, ErrUnsure
}

func (b *breaking) Get(ctx context.Context, id string) (*Letter, Revision, error) {
	if b.dead {
		return nil, Revision{}, ErrAway
	}
	return b.Store.Get(ctx, id)
}

// ending is a store that is told to end while it puts a letter.
type ending struct {
	Store
	end context.CancelFunc
}

func (e ending) Put(ctx context.Context, l *Letter, in Revision) (Revision, error) {
	e.end()
	if ctx.Err() != nil {
		return Revision{}, ErrUnsure
	}
	return e.Store.Put(ctx, l, in)
}

func TestAProxyThatIsToldToEndEndsTheMoveOfTheLetterItIsAtAndBeginsNoOther(t *testing.T) {
	x, f := index(enginetest.New()), folder(t, t.TempDir(), 1<<20)
	first, second := newLetter(1), newLetter(2)
	put(t, f, first, Revision{})
	put(t, f, second, Revision{})
	ctx, end := context.WithCancel(t.Context())
	d := NewDesk(Options{Store: ending{x, end}, Folder: f})
	if err := d.moveAll(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the moves end with %v", err)
	}
	here, _, err := x.Get(t.Context(), first.ID)
	if err != nil || here.State != Waiting {
		t.Errorf("the first letter is %+v, %v", here, err)
	}
	if _, _, err := x.Get(t.Context(), second.ID); !errors.Is(err, ErrNoLetter) {
		t.Errorf("the second letter has left: %v", err)
	}
	if list, err := f.List(t.Context(), &Query{}); err != nil || len(list) != 1 || f.isLeaving(second.ID) {
		t.Errorf("in the folder: %+v, %v", list, err)
	}
}

// permutations of the numbers below n.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for _, p := range permutations(n - 1) {
		for at := range n {
			all = append(all, append(append(append([]int{}, p[:at]...), n-1), p[at:]...))
		}
	}
	return all
}

// TestALetterWhoseMoveIsBrokenOffIsWrittenOnceAtMost: a move breaks off at a request to the store, whose answer is lost, or that arrives
// late, or after which the process is killed. Then everything else happens in any order. Nobody says that a doubtful letter may be
// replayed.
func TestALetterWhoseMoveIsBrokenOffIsWrittenOnceAtMost(t *testing.T) {
	for _, how := range []string{"lost", "late", "killed"} {
		for nth := 1; nth <= 2; nth++ {
			for _, order := range permutations(4) {
				t.Run(fmt.Sprint(how, nth, order), func(t *testing.T) { brokenMove(t, how, nth, order) })
			}
		}
	}
}

func brokenMove(t *testing.T, how string, nth int, order []int) {
	e, dir, made := enginetest.New(), t.TempDir(), 0
	count := func(context.Context, *Letter) Written {
		made++
		return Written{Done: true, Status: 200}
	}
	x, ctx := index(e), t.Context()
	f := folder(t, dir, 1<<20)
	put(t, x, newLetter(7), Revision{}) // the index is there
	b := &breaking{Store: x, nth: nth, how: how}
	l := newLetter(1)
	put(t, f, l, Revision{})
	one, other := NewDesk(Options{Store: b, Folder: f}), NewDesk(Options{Store: x})
	if err := one.moveAll(ctx); !errors.Is(err, ErrUnsure) && (how != "lost" || err != nil) {
		t.Fatalf("the move: %v", err)
	}
	restart := func() {
		_ = f.Close()
		f = folder(t, dir, 1<<20)
		one = NewDesk(Options{Store: x, Folder: f})
		_ = one.moveAll(ctx)
	}
	deleted := false
	if order[0] == 2 && order[1] == 0 { // the operator deletes it at the other proxy
		deleted = other.Delete(ctx, l.ID) == nil
	}
	for _, step := range order {
		switch step {
		case 0:
			if b.late != nil {
				b.late()
			}
		case 1:
			restart()
		case 2:
			_, _ = other.Replay(ctx, l.ID, Allow{}, count)
		case 3:
			_, _ = one.Replay(ctx, l.ID, Allow{}, count)
		}
	}
	restart()
	for _, d := range []*Desk{one, other} {
		_, _ = d.Replay(ctx, l.ID, Allow{}, count)
	}
	_, err := one.Get(ctx, l.ID)
	switch {
	case made > 1 || deleted && made > 0:
		t.Errorf("written %d times (deleted: %v)", made, deleted)
	case made == 0 && !deleted && err != nil:
		t.Errorf("the letter is lost: %v", err)
	}
	if n, _ := f.Held(); n != 0 {
		t.Error("it is in the folder still")
	}
}

func TestAMoveThatTheStoreRefusesLeavesTheLetterAsItWas(t *testing.T) {
	m := &moody{Store: index(enginetest.New()), put: ErrAway}
	f := folder(t, t.TempDir(), 1<<20)
	d := NewDesk(Options{Store: m, Folder: f})
	id := keepOne(t, d)
	if err := d.moveAll(t.Context()); !errors.Is(err, ErrAway) {
		t.Error(err)
	}
	if l, err := d.Get(t.Context(), id); err != nil || l.State != Waiting {
		t.Errorf("%+v, %v", l, err)
	}
	if r, err := d.Replay(t.Context(), id, Allow{}, done); err != nil || r.Result != Replayed {
		t.Errorf("%+v, %v", r, err)
	}
}
