package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// TestALetterThatCanNotBeReadHoldsNobodyUp: a letter's file is cut off while it is served, another one's is removed.
func TestALetterThatCanNotBeReadHoldsNobodyUp(t *testing.T) {
	var log strings.Builder
	f, x := folder(t, t.TempDir(), 1<<20), index(enginetest.New())
	d := NewDesk(Options{Store: x, Folder: f, Log: slog.New(slog.NewTextHandler(&log, nil))})
	cut, removed, whole := newLetter(1), newLetter(2), newLetter(3)
	for _, l := range []*Letter{cut, removed, whole} {
		put(t, f, l, Revision{})
	}
	if err := errors.Join(os.Truncate(f.path(cut.ID), 100), os.Remove(f.path(removed.ID))); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := d.moveAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), cut.ID); n != 1 {
		t.Errorf("the log has it %d times: %s", n, &log)
	}
	page, err := d.List(t.Context(), &Query{})
	if err != nil || len(page.Letters) != 2 || page.InFolder != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if bad := page.Letters[0]; bad.ID != cut.ID || bad.State != Damaged || page.Letters[1].ID != whole.ID {
		t.Errorf("%+v", bad)
	}
	if l, err := d.Get(t.Context(), cut.ID); err != nil || l.State != Damaged || l.Detail == "" {
		t.Errorf("%+v, %v", l, err)
	}
	if r, err := d.Replay(t.Context(), cut.ID, Allow{Doubtful: true, Unchecked: true}, done); err != nil || r.Result != Skipped {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := d.Replay(t.Context(), removed.ID, Allow{}, done); err != nil || r.Result != Missing {
		t.Errorf("%+v, %v", r, err)
	}
	if err := d.Delete(t.Context(), cut.ID); err != nil {
		t.Error(err)
	}
	if n, bytes := f.Held(); n != 0 || bytes != 0 {
		t.Errorf("%d letters of %d bytes are left", n, bytes)
	}
}

func TestADocumentOfTheIndexThatIsNoLetterHoldsNobodyUp(t *testing.T) {
	e := enginetest.New()
	d := NewDesk(Options{Store: index(e)})
	id := keepOne(t, d)
	newer := "0" + id[1:len(id)-1] + "x"
	e.Put(t, "/letters/_doc/"+newer, `{"format":9,"id":"`+newer+`","state":"waiting"}`)
	page, err := d.List(t.Context(), &Query{})
	if err != nil || len(page.Letters) != 2 || page.Letters[1].ID != newer || page.Letters[1].State != Damaged {
		t.Fatalf("%+v, %v", page, err)
	}
	if l, err := d.Get(t.Context(), newer); err != nil || l.State != Damaged {
		t.Errorf("%+v, %v", l, err)
	}
	if r, err := d.Replay(t.Context(), newer, Allow{Doubtful: true}, done); err != nil || r.Result != Skipped {
		t.Errorf("%+v, %v", r, err)
	}
	if err := d.Delete(t.Context(), newer); err != nil {
		t.Error(err)
	}
	if r, err := d.Replay(t.Context(), id, Allow{}, done); err != nil || r.Result != Replayed {
		t.Errorf("%+v, %v", r, err)
	}
}

// refusing is a store that refuses one letter.
type refusing struct {
	Store
	id string
}

func (r *refusing) Put(ctx context.Context, l *Letter, in Revision) (Revision, error) {
	if l.ID == r.id {
		return Revision{}, ErrStore
	}
	return r.Store.Put(ctx, l, in)
}

func TestALetterThatTheStoreRefusesHoldsNobodyUp(t *testing.T) {
	f := folder(t, t.TempDir(), 1<<20)
	bad, good := newLetter(1), newLetter(2)
	put(t, f, bad, Revision{})
	put(t, f, good, Revision{})
	e := enginetest.New()
	d := NewDesk(Options{Store: &refusing{index(e), bad.ID}, Folder: f})
	if err := d.moveAll(t.Context()); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
	if all := list(t, f, &Query{}); len(all) != 1 || all[0].ID != bad.ID {
		t.Errorf("in the folder are %v", all)
	}
}
