package deadletter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/internal/enginetest"
	"optimist/internal/filelock"
	"optimist/internal/jsontext"
	"optimist/internal/upstream"
)

// moody is a store that fails as it is told to.
type moody struct {
	Store
	mu   sync.Mutex
	put  error // in place of a Put
	lost bool  // a Put is done, and its answer is lost
	wait chan struct{}
	held chan struct{}
}

func (m *moody) set(put error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put = put
}

func (m *moody) Put(ctx context.Context, l *Letter, in Revision) (Revision, error) {
	m.mu.Lock()
	put, lost, wait, held := m.put, m.lost, m.wait, m.held
	m.wait, m.held = nil, nil
	m.mu.Unlock()
	if wait != nil {
		close(held)
		<-wait
	}
	if put != nil {
		return Revision{}, put
	}
	at, err := m.Store.Put(ctx, l, in)
	if lost && err == nil {
		return Revision{}, ErrUnsure
	}
	return at, err
}

func index(e *enginetest.Engine) *Index { return NewIndex(IndexOptions{Upstream: e, Name: "letters"}) }

func folder(t *testing.T, dir string, limit int64) *Folder {
	t.Helper()
	f := NewFolder(dir, limit)
	if _, err := f.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func keepOne(t *testing.T, d *Desk) string {
	t.Helper()
	id, err := d.Keep(t.Context(), newLetter(0))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func done(context.Context, *Letter) Written { return Written{Done: true, Status: 200} }

func TestOfTwoWhoReplayALetterAtOnceOneDoes(t *testing.T) {
	e := enginetest.New()
	one, two := NewDesk(Options{Store: index(e)}), NewDesk(Options{Store: index(e)})
	id := keepOne(t, one)
	var mu sync.Mutex
	made := 0
	count := func(context.Context, *Letter) Written {
		mu.Lock()
		defer mu.Unlock()
		made++
		return Written{Done: true, Status: 200}
	}
	results := make([]*Result, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			d := one
			if i%2 == 1 {
				d = two
			}
			r, err := d.Replay(t.Context(), id, Allow{}, count)
			if err != nil {
				t.Error(err)
				return
			}
			results[i] = r
		})
	}
	wg.Wait()
	replayed := 0
	for _, r := range results {
		switch r.Result {
		case Replayed:
			replayed++
		case Busy, Missing:
		default:
			t.Errorf("one got %+v", r)
		}
	}
	if made != 1 || replayed != 1 {
		t.Errorf("made %d times, %d say that they did; want one", made, replayed)
	}
}

func TestALetterWhoseReplayDiedIsDoubtfulAndNotReplayedByItself(t *testing.T) {
	e := enginetest.New()
	now := time.UnixMilli(1_700_000_000_000)
	clock := func() time.Time { return now }
	d := NewDesk(Options{Store: index(e), Now: clock})
	id := keepOne(t, d)
	died := func(ctx context.Context, _ *Letter) Written { // another process looks at it while this one is at it, and then this one is gone
		other := NewDesk(Options{Store: index(e), Now: clock})
		if r, err := other.Replay(ctx, id, Allow{Doubtful: true}, done); err != nil || r.Result != Busy {
			t.Errorf("while it is replayed: %+v, %v", r, err)
		}
		if err := other.Delete(ctx, id); !errors.Is(err, ErrTaken) {
			t.Errorf("deleted while it is replayed: %v", err)
		}
		now = now.Add(time.Hour)
		if l, err := other.Get(ctx, id); err != nil || l.State != Doubtful {
			t.Errorf("an hour later: %+v, %v", l, err)
		}
		if r, err := other.Replay(ctx, id, Allow{}, done); err != nil || r.Result != Skipped || !strings.Contains(r.Reason, "--doubtful") {
			t.Errorf("an hour later: %+v, %v", r, err)
		}
		if r, err := other.Replay(ctx, id, Allow{Doubtful: true}, done); err != nil || r.Result != Replayed {
			t.Errorf("when somebody says so: %+v, %v", r, err)
		}
		return Written{Done: true, Status: 200}
	}
	if r, err := d.Replay(t.Context(), id, Allow{}, died); err != nil || r.Result != Replayed {
		t.Errorf("the late one: %+v, %v", r, err)
	}
}

func TestAReplayWithoutAKnownOutcomeLeavesADoubtfulLetter(t *testing.T) {
	d := NewDesk(Options{Store: index(enginetest.New())})
	id := keepOne(t, d)
	unknown := func(context.Context, *Letter) Written { return Written{Status: 504, Reason: "lost", Unknown: true} }
	if r, err := d.Replay(t.Context(), id, Allow{}, unknown); err != nil || r.Result != Unsure {
		t.Errorf("%+v, %v", r, err)
	}
	l, err := d.Get(t.Context(), id)
	if err != nil || l.State != Doubtful || l.Replays != 1 || l.Last.Status != 504 || l.Last.Reason != "lost" {
		t.Errorf("%+v, %v", l, err)
	}
	if r, err := d.Replay(t.Context(), id, Allow{}, done); err != nil || r.Result != Skipped {
		t.Errorf("again: %+v, %v", r, err)
	}
}

func TestALetterIsInTheFolderWhileTheStoreIsAway(t *testing.T) {
	e := enginetest.New()
	m := &moody{Store: index(e), put: ErrAway}
	f := folder(t, t.TempDir(), 1<<20)
	var places []string
	d := NewDesk(Options{Store: m, Folder: f, Again: time.Millisecond, Kept: func(_, place string) { places = append(places, place) }})
	id := keepOne(t, d)
	if n, bytes := f.Held(); n != 1 || bytes == 0 || strings.Join(places, " ") != "folder" {
		t.Fatalf("%d letters of %d bytes, %v", n, bytes, places)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { d.Move(ctx) })
	m.set(nil)
	enginetest.Wait(t, "the letter is moved", func() bool { n, _ := f.Held(); return n == 0 })
	cancel()
	wg.Wait()
	if l, _, err := m.Store.Get(t.Context(), id); err != nil || l.State != Waiting {
		t.Errorf("%+v, %v", l, err)
	}
	page, err := d.List(t.Context(), &Query{})
	if err != nil || len(page.Letters) != 1 || page.InFolder != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestALetterIsNotReplayedTwiceBecauseItIsBeingMoved(t *testing.T) {
	e := enginetest.New()
	m := &moody{Store: index(e), put: ErrAway}
	f := folder(t, t.TempDir(), 1<<20)
	d := NewDesk(Options{Store: m, Folder: f})
	id := keepOne(t, d)
	m.mu.Lock()
	wait, held := make(chan struct{}), make(chan struct{})
	m.put, m.wait, m.held = nil, wait, held
	m.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.moveAll(t.Context()); err != nil {
			t.Error(err)
		}
	})
	<-held // the store is about to take it
	var first, second *Result
	wg.Go(func() { first, _ = d.Replay(t.Context(), id, Allow{}, done) })
	wg.Go(func() { second, _ = d.Replay(t.Context(), id, Allow{}, done) })
	close(wait)
	wg.Wait()
	replayed := 0
	for _, r := range []*Result{first, second} {
		if r.Result == Replayed {
			replayed++
		}
	}
	page, err := d.List(t.Context(), &Query{})
	if replayed != 1 || err != nil || len(page.Letters) != 0 || page.InFolder != 0 {
		t.Errorf("replayed %d times (%+v, %+v), left %+v, %v", replayed, first, second, page, err)
	}
}

func TestALetterThatIsThereThoughTheAnswerIsLostIsKeptOnce(t *testing.T) {
	m := &moody{Store: index(enginetest.New()), lost: true}
	f := folder(t, t.TempDir(), 1<<20)
	d := NewDesk(Options{Store: m, Folder: f})
	keepOne(t, d)
	if n, _ := f.Held(); n != 0 {
		t.Errorf("%d letters are in the folder, too", n)
	}
	m.lost, m.put = false, ErrUnsure
	id := keepOne(t, d)
	if l, _, err := f.Get(t.Context(), id); err != nil || l.State != Doubtful {
		t.Errorf("one that may be in the store later on is %+v, %v", l, err)
	}
}

func TestWhatCanNotBeKeptIsAnError(t *testing.T) {
	away := &moody{Store: index(enginetest.New()), put: ErrAway}
	big := newLetter(1)
	big.Request.Body = Bytes(strings.Repeat("x", 2000))
	for _, one := range []struct {
		name string
		o    Options
		l    *Letter
		want error
	}{
		{"no folder", Options{Store: away}, newLetter(1), ErrAway},
		{"a full folder", Options{Store: away, Folder: folder(t, t.TempDir(), 1000)}, big, ErrFull},
		{"a large letter", Options{Store: index(enginetest.New()), MaxLetter: 2000}, big, ErrTooLarge},
	} {
		place := ""
		one.o.Kept = func(_, p string) { place = p }
		if id, err := NewDesk(one.o).Keep(t.Context(), one.l); !errors.Is(err, one.want) || id != "" || place != "lost" {
			t.Errorf("%s: %q, %v, %s", one.name, id, err, place)
		}
	}
}

func TestTheFolderIsOneProcessesAndDamagedFilesStay(t *testing.T) {
	dir := t.TempDir()
	f := folder(t, dir, 1<<20)
	put(t, f, newLetter(1), Revision{})
	if _, err := NewFolder(dir, 1<<20).Open(); !errors.Is(err, filelock.ErrInUse) {
		t.Errorf("opened by two: %v", err)
	}
	_ = f.Close()
	whole, _, _ := f.Get(t.Context(), list(t, f, &Query{})[0].ID)
	text, _ := jsontext.Marshal(whole)
	for name, content := range map[string]string{
		newID(time.Now()) + ".json": string(text[:len(text)/2]),                                   // cut off
		newID(time.Now()) + ".json": strings.Replace(string(text), `"format":1`, `"format":2`, 1), // of a newer program
		freshPrefix + "123":         string(text[:10]),                                            // it was being written
		"notes.txt":                 "somebody's",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f = NewFolder(dir, 1<<20)
	damaged, err := f.Open()
	if err != nil || len(damaged) != 2 {
		t.Fatalf("%v, %v", damaged, err)
	}
	defer func() { _ = f.Close() }()
	if n, _ := f.Held(); n != 3 {
		t.Errorf("%d letters", n)
	}
	left, _ := os.ReadDir(dir)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), freshPrefix) {
			t.Errorf("%s is left", e.Name())
		}
	}
	if len(left) != 5 { // the letter, two damaged ones, the notes, the lock
		t.Errorf("%d files are left: %v", len(left), left)
	}
}

func TestTheListOfAFolderIsThereWhileTheStoreIsAway(t *testing.T) {
	e := enginetest.New()
	f := folder(t, t.TempDir(), 1<<20)
	d := NewDesk(Options{Store: index(e), Folder: f})
	put(t, f, newLetter(1), Revision{})
	e.Before = func(context.Context, *upstream.Request) (*upstream.Response, error) {
		return nil, &upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}
	}
	page, err := d.List(t.Context(), &Query{})
	if err != nil || len(page.Letters) != 1 || page.Away == "" {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestALetterOfAClientThatNobodyHasCheckedIsReplayedOnlyIfSomebodySaysSo(t *testing.T) {
	d := NewDesk(Options{Store: index(enginetest.New())})
	l := newLetter(1)
	l.Checked = false
	id, err := d.Keep(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := d.Replay(t.Context(), id, Allow{Doubtful: true}, done); err != nil || r.Result != Skipped {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := d.Replay(t.Context(), id, Allow{Unchecked: true}, done); err != nil || r.Result != Replayed {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestALetterWithANameIsKeptOnce: whoever keeps it doesn't know that it was kept before, in the store or in the folder.
func TestALetterWithANameIsKeptOnce(t *testing.T) {
	for _, away := range []bool{false, true} {
		e := enginetest.New()
		if away {
			e.Before = func(context.Context, *upstream.Request) (*upstream.Response, error) {
				return nil, &upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}
			}
		}
		d := NewDesk(Options{Store: index(e), Folder: folder(t, t.TempDir(), 1<<20)})
		want := IDOf(time.UnixMilli(5), "what it is about")
		for range 2 {
			l := newLetter(1)
			l.ID = want
			if id, err := d.Keep(t.Context(), l); err != nil || id != want {
				t.Errorf("away %v: %q, %v", away, id, err)
			}
		}
		if page, err := d.List(t.Context(), &Query{}); err != nil || len(page.Letters) != 1 || page.Letters[0].ID != want {
			t.Errorf("away %v: %+v, %v", away, page, err)
		}
	}
}
