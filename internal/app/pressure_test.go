package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
	"optimist/internal/unit"
)

// narrow is an engine with room for so few writes of documents at once. It rejects the others, as a real one does. It counts how many there
// were at once at most.
type narrow struct {
	engine       string
	forward      http.Handler
	room         chan struct{}
	mu           sync.Mutex
	writes, most int
	rejected     int
}

func newNarrow(t *testing.T, room int) (n *narrow, url string) {
	t.Helper()
	n = &narrow{engine: enginetest.Serve(t), room: make(chan struct{}, room)}
	n.forward = enginetest.Forward(t, n.engine)
	s := httptest.NewServer(n)
	t.Cleanup(s.Close)
	return n, s.URL
}

func (n *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/_doc/") {
		select {
		case n.room <- struct{}{}:
			defer func() { <-n.room }()
		default:
			n.mu.Lock()
			n.rejected++
			n.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"type":"es_rejected_execution_exception","reason":"full"},"status":429}`)
			return
		}
		n.mu.Lock()
		n.writes++
		n.most = max(n.most, n.writes)
		n.mu.Unlock()
		defer func() {
			n.mu.Lock()
			n.writes--
			n.mu.Unlock()
		}()
	}
	n.forward.ServeHTTP(w, r)
}

// newLimitedWorld has an optimist that bounds the writes, and has them wait for so long.
func newLimitedWorld(t *testing.T, engine string, wait time.Duration) *world {
	t.Helper()
	c := configured(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", engine)
	c.Upstream.AdaptiveLimit, c.Upstream.AcquireTimeout = true, unit.Duration(wait)
	w := &world{t: t, direct: engine, app: running(t, c)}
	w.proxied = w.app.URL()
	return w
}

// Clients add 1 to counters, as fast as they can, through an optimist that bounds the writes, in front of an engine that has room for two:
// what was acknowledged is there, and what was refused isn't.
func TestTheLimitOnWrites(t *testing.T) {
	n, engine := newNarrow(t, 2)
	w := newLimitedWorld(t, engine, 5*time.Second)
	const clients, rounds, documents = 16, 20, 4
	for d := range documents {
		enginetest.Ask(t, "PUT", n.engine+fmt.Sprintf("/shop/_doc/%d", d), `{"n":0}`)
	}
	var mu sync.Mutex
	var counted [documents]int
	refused := 0
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for k := range rounds {
				d := (c + k) % documents
				target := fmt.Sprintf("/shop/_doc/%d", d)
				session := []string{"Optimist-Session", fmt.Sprint(c)}
				seen := gjson.Get(w.ask(w.proxied, "GET", target, "", session...).Body, "_source.n").Int()
				a := w.ask(w.proxied, "PUT", target, fmt.Sprintf(`{"n":%d}`, seen+1), session...)
				mu.Lock()
				switch a.Status {
				case 200:
					counted[d]++
				case 429:
					refused++
				default:
					t.Errorf("%d %s", a.Status, a.Body)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for d := range documents {
		w.holds(fmt.Sprintf("/shop/_doc/%d", d), fmt.Sprintf(`{"n":%d}`, counted[d]))
	}
	t.Logf("%d were rejected, %d refused, %d at once at most", n.rejected, refused, n.most)
	if n.rejected == 0 {
		t.Error("the engine was never full: the test shows nothing")
	}
}

// A write whose turn doesn't come is answered before anything of it was sent.
func TestAWriteWhoseTurnDoesntCome(t *testing.T) {
	engine := enginetest.Serve(t)
	release, arrived := make(chan struct{}), make(chan struct{}, 100)
	between := enginetest.Between(t, engine, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/_doc/") {
			arrived <- struct{}{}
			<-release
		}
		return false
	})
	w := newLimitedWorld(t, between, 20*time.Millisecond)
	var wg sync.WaitGroup
	const most = 6 // of eight: the last two are for other clients
	for k := range most {
		wg.Go(func() { w.ask(w.proxied, "PUT", fmt.Sprintf("/shop/_doc/%d", k), `{}`) })
	}
	for range most {
		<-arrived
	}
	a := w.ask(w.proxied, "PUT", "/shop/_doc/late", `{}`)
	if a.Status != 429 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, `"upstream_overloaded"`) {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if got := a.Header.Get("Optimist-Outcome"); !strings.HasPrefix(got, "not_sent") {
		t.Errorf("outcome %q", got)
	}
	if got := w.ask(w.proxied, "GET", "/shop/_doc/late", ""); got.Status == 200 {
		t.Errorf("it is there: %s", got.Body)
	}
	if n := w.counted("optimist_writes_refused_total"); n != 1 {
		t.Errorf("%d are counted as refused", n)
	}
	close(release)
	wg.Wait()
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/late", `{}`); a.Status != 201 {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}
