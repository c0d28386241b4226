package write

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"optimist/internal/es"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// TestWhatIsStoredIsTheChangesInSomeOrder lets a few writers of one document meet in every way that the engine and the two
// proxies can put their requests in an order: each is held until it is let go, and rapid draws which is next. Writers save what
// they have read and changed, send parts of it, or haven't read, create, delete, send patches, or go past optimist. Rules and changes are drawn,
// too.
//
// It judges by a model. The stored revisions must be what the acknowledged changes make of the first one, in some order, each
// merged into the result of the one before it, and none twice; each between the start of its request and its answer. Each refused
// change must be one that the model refuses for a revision of that time, with the same status.
//
// E2E_LONG=1 draws more; -rapid.failfile and -rapid.seed, as a failure prints them, draw the same again.
func TestWhatIsStoredIsTheChangesInSomeOrder(t *testing.T) {
	times := 6
	if os.Getenv("E2E_LONG") == "1" {
		times = 50
	}
	var seen tally
	for range times {
		synctest.Test(t, func(t *testing.T) {
			rapid.Check(timeless{t}, func(rt *rapid.T) { interleave(t, rt, &seen) })
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d writes acknowledged, of them %d merged and %d combined, %d refused", seen.acknowledged, seen.merged, seen.combined, seen.refused)
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue && (seen.merged < 100 || seen.combined < 20 || seen.refused < 100) {
		t.Error("that is too little for the test to mean much")
	}
}

// timeless is a test without a deadline: in a bubble there is none.
type timeless struct{ rapid.TB }

// tally is what the writers have met.
type tally struct{ acknowledged, merged, combined, refused int }

// stage is where the writers meet.
type stage struct {
	t       *testing.T
	rt      *rapid.T
	rule    *ruleModel
	proxies [2]*world
	first   any // the document before all changes, or absent{}
	wg      sync.WaitGroup

	mu      sync.Mutex
	free    bool // nobody is held any more
	held    []*turn
	working int      // writers that have not ended
	history []any    // the revisions after the first
	done    []*event // in the order of their ends
	wrong   []string
}

// turn is somebody who waits to be let go.
type turn struct {
	who string // what orders those who wait
	ch  chan struct{}
}

// event is one write, as its client saw it.
type event struct {
	name       string
	effect     func(doc any) []effect
	start, end int // how many revisions there were
	status     int // of a refusal; 0 where it was acknowledged
	told       string
}

// effect is one thing that a change may do to a document: make another of it, or be refused.
type effect struct {
	doc    any
	status refusal
}

func interleave(t *testing.T, rt *rapid.T, seen *tally) {
	s := &stage{t: t, rt: rt, rule: genRule(rt), first: absent{}}
	w := newWorld(t, s.rule.yaml())
	other := *w
	now := time.Now()
	other.store = session.New(session.Options{Now: func() time.Time { return now }})
	now = now.Add(time.Hour)
	other.s = New(Options{Upstream: w.engine, Engine: &es.Client{Upstream: w.engine}, Sessions: other.store})
	s.proxies = [2]*world{w, &other}
	w.direct("PUT", "/shop", `{"mappings":{"enabled":false}}`)
	if rapid.IntRange(0, 4).Draw(rt, "there is a document") > 0 {
		doc := genDoc(rt)
		s.first = doc
		w.put("1", encodeModel(doc))
	}
	w.engine.before, w.engine.after = s.before, s.after
	defer s.wg.Wait()
	defer s.release() // rapid may end this goroutine with any draw
	kinds := kindsOfWriters[rapid.IntRange(0, len(kindsOfWriters)-1).Draw(rt, "kinds")]
	for i := range rapid.IntRange(2, 5).Draw(rt, "writers") {
		wr := s.writer(i, rapid.SampledFrom(kinds).Draw(rt, "kind"))
		s.working++
		s.wg.Go(func() {
			wr.work()
			s.mu.Lock()
			s.working--
			s.mu.Unlock()
		})
	}
	s.direct()
	s.judge(seen)
}

// direct lets one of those go who wait, or some time pass, until all is done.
func (s *stage) direct() {
	for n := 0; ; n++ {
		synctest.Wait()
		s.mu.Lock()
		waiting, working := slices.Clone(s.held), s.working
		s.mu.Unlock()
		switch {
		case working == 0:
			return
		case n > 10_000:
			s.rt.Fatal("the writers don't come to an end")
		}
		slices.SortStableFunc(waiting, func(a, b *turn) int { return strings.Compare(a.who, b.who) })
		next := len(waiting)
		if next > 0 {
			next = rapid.IntRange(0, len(waiting)).Draw(s.rt, "next")
		}
		if next == len(waiting) {
			time.Sleep(5 * time.Millisecond) // no time at all in the bubble: whoever backs off comes back
			continue
		}
		s.mu.Lock()
		s.held = slices.DeleteFunc(s.held, func(x *turn) bool { return x == waiting[next] })
		s.mu.Unlock()
		close(waiting[next].ch)
	}
}

// hold waits to be let go.
func (s *stage) hold(who string) {
	s.mu.Lock()
	if s.free {
		s.mu.Unlock()
		return
	}
	x := &turn{who, make(chan struct{})}
	s.held = append(s.held, x)
	s.mu.Unlock()
	<-x.ch
}

func (s *stage) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = true
	for _, x := range s.held {
		close(x.ch)
	}
	s.held = nil
}

// before holds whatever a proxy sends for the document.
func (s *stage) before(r *upstream.Request) (*upstream.Response, error) {
	if target := string(r.Target); strings.HasPrefix(target, "/shop/_doc/1") || strings.HasPrefix(target, "/shop/_create/1") || strings.HasPrefix(target, "/shop/_update/1") {
		s.hold(r.Method + " " + target + " " + string(r.Body))
	}
	return nil, nil
}

// after keeps what was stored.
func (s *stage) after(r *upstream.Request, res *upstream.Response) error {
	if path, _, _ := strings.Cut(string(r.Target), "?"); !strings.HasSuffix(path, "/1") || res.Status >= 300 {
		return nil
	}
	switch r.Method {
	case "PUT":
		s.stored(decodeModel(string(r.Body)))
	case "DELETE":
		s.stored(absent{})
	case "POST":
		if result := gjson.GetBytes(res.Payload, "result").Str; result == "updated" || result == "created" {
			s.stored(decodeModel(s.proxies[0].stored("1"))) // nobody else is let go meanwhile
		}
	}
	return nil
}

func (s *stage) stored(doc any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = append(s.history, doc)
}
