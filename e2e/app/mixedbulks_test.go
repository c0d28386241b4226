package app_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// unsteady stands between optimist and an engine, and spoils some of the answers to writes.
type unsteady struct {
	*httptest.Server
	behind http.Handler
	whole  atomic.Bool // nothing is spoilt

	mu   sync.Mutex
	rand *rand.Rand
}

func newUnsteady(t *testing.T, engine string, seed uint64) *unsteady {
	t.Helper()
	to, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	u := &unsteady{behind: httputil.NewSingleHostReverseProxy(to), rand: rand.New(rand.NewPCG(seed, 2))}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *unsteady) draw(n int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rand.IntN(n)
}

// ServeHTTP implements http.Handler.
func (u *unsteady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if u.whole.Load() || !strings.HasSuffix(r.URL.Path, "/_bulk") {
		u.behind.ServeHTTP(w, r)
		return
	}
	refuse := func(status int) {
		_, _ = io.Copy(io.Discard, r.Body) // the client writes all of it before it reads
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"type":"unavailable","reason":"for the test"},"status":%d}`, status)
	}
	answer := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		u.behind.ServeHTTP(rec, r)
		return rec
	}
	switch u.draw(40) {
	case 0:
		refuse(http.StatusTooManyRequests)
	case 1:
		refuse(http.StatusServiceUnavailable)
	case 2: // what was asked for is done, and nobody learns of it
		answer()
		panic(http.ErrAbortHandler)
	case 3: // half an answer
		text := answer().Body.Bytes()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		panic(http.ErrAbortHandler)
	case 4: // some items are rejected
		u.rejectSome(w, r)
	case 5: // a gateway gives up
		answer()
		w.WriteHeader(http.StatusGatewayTimeout)
	default:
		u.behind.ServeHTTP(w, r)
	}
}

// rejectSome passes every other item on, and says of the rest that the engine has too much to do.
func (u *unsteady) rejectSome(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a body that ends early is a bulk that the engine refuses
	var passed strings.Builder
	var verbs []string
	for lines := strings.Split(string(body), "\n"); len(lines) > 1; {
		n := 2
		verb := gjson.Parse(lines[0]).Get("@keys.0").String()
		if verb == "delete" {
			n = 1
		}
		if verbs = append(verbs, verb); len(verbs)%2 == 1 {
			passed.WriteString(strings.Join(lines[:n], "\n") + "\n")
		}
		lines = lines[n:]
	}
	r.Body = io.NopCloser(strings.NewReader(passed.String()))
	r.ContentLength = int64(passed.Len())
	rec := httptest.NewRecorder()
	u.behind.ServeHTTP(rec, r)
	items := gjson.Get(rec.Body.String(), "items").Array()
	if rec.Code != http.StatusOK {
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
		return
	}
	out := make([]string, len(verbs))
	for k, verb := range verbs {
		if out[k] = fmt.Sprintf(`{%q:{"_index":"i","_id":"x","status":429,"error":{"type":"es_rejected_execution_exception","reason":"full"}}}`, verb); k%2 == 0 {
			out[k] = items[k/2].Raw
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"took":1,"errors":true,"items":[%s]}`, strings.Join(out, ","))
}

// mixer is a client that writes bulks of mixed actions: several of one document, by several names. It works on documents that it shares
// with others, and on one that is its own.
type mixer struct {
	t     *testing.T
	rand  *rand.Rand
	base  string
	names []string // of the index
	me    string
	n     int
	lines strings.Builder
	then  []func(status int, result string) // what is done with the result of each item

	acked, sent map[string]map[string]bool // by document: entries of its list
	own         map[string]bool            // what the own document may be: its text, or "" for none
	doubts      bool                       // an outcome of a write of it is unknown, and it wasn't read since
	told        map[int]int
	history     []string // of the own document
}

// shared is how many documents all clients write.
const shared = 3

func (m *mixer) do(method, path, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 4*patience)
	defer cancel()
	return do(ctx, method, m.base+path, body, session(m.me))
}

func (m *mixer) name() string { return m.names[m.rand.IntN(len(m.names))] }

func (m *mixer) item(verb, id, body, more string, then func(status int, result string)) {
	fmt.Fprintf(&m.lines, `{%q:{"_index":%q,"_id":%q%s}}`+"\n", verb, m.name(), id, more)
	if verb != "delete" {
		m.lines.WriteString(body + "\n")
	}
	m.then = append(m.then, then)
}

// change adds items that put entries into the list of a shared document.
func (m *mixer) change(id, was string) {
	for range 1 + m.rand.IntN(3) {
		m.n++
		entry := fmt.Sprintf("%s-%d", m.me, m.n)
		was, _ = sjson.Set(was, "list.-1", entry)
		was, _ = sjson.Set(was, "by."+m.me, m.n)
		m.sent[id][entry] = true
		then := func(status int, _ string) {
			if status/100 == 2 {
				m.acked[id][entry] = true
			}
		}
		if m.rand.IntN(3) == 0 {
			m.item("update", id, `{"doc":`+was+`}`, "", then)
		} else {
			m.item("index", id, was, "", then)
		}
	}
}

// keep adds items of the own document, of which only this client knows.
func (m *mixer) keep() {
	id := "own-" + m.me
	for range m.rand.IntN(4) {
		m.n++
		text := fmt.Sprintf(`{"n":%d}`, m.n)
		verb := []string{"index", "create", "update", "delete"}[m.rand.IntN(4)]
		makes, body := text, text
		switch verb {
		case "delete":
			makes = ""
		case "update":
			body = `{"doc":` + text + `}`
		}
		m.item(verb, id, body, "", func(status int, result string) {
			defer func() { m.history = append(m.history, fmt.Sprintf("%s %s: %d, may be %v", verb, makes, status, m.own)) }()
			is := func(there bool) {
				for state := range m.own {
					if (state != "") != there {
						delete(m.own, state)
					}
				}
				if len(m.own) == 0 {
					m.t.Errorf("%s %s is answered by %d, which it can't be; it was\n%s", verb, id, status, strings.Join(m.history, "\n"))
				}
			}
			switch {
			case status/100 == 2:
				if verb == "create" {
					is(false)
				}
				m.own = map[string]bool{makes: true}
			case status == 404 && (verb == "delete" || verb == "update"):
				is(false)
			case status == 409 && verb != "create" && m.doubts: // the client is to look what became of the one before
			case status == 409 && verb == "create":
				is(true)
			case status >= 500 || status == 0:
				m.own[makes], m.doubts = true, true
			case status == 429:
			default:
				m.t.Errorf("%s %s: %d", verb, id, status)
			}
		})
	}
}

// look reads the own document, if the outcome of a write of it is unknown.
func (m *mixer) look() {
	if !m.doubts {
		return
	}
	a, err := m.do("GET", "/"+m.name()+"/_doc/own-"+m.me, "")
	if err != nil || a.status != 200 && a.status != 404 {
		return
	}
	now := stored(a)
	m.history = append(m.history, "read "+now)
	m.holds(now)
	m.own, m.doubts = map[string]bool{now: true}, false
}

// stored is the document that an answer shows, without its marks; "" for none.
func stored(a answer) string {
	source := gjson.Get(a.body, "_source")
	if !source.Exists() {
		return ""
	}
	text, _ := sjson.Delete(source.Raw, "_writes") // it is an object
	return text
}

// round has the client read some shared documents, and write one bulk.
func (m *mixer) round() {
	m.lines.Reset()
	m.then = m.then[:0]
	m.look()
	for _, d := range m.rand.Perm(shared)[:1+m.rand.IntN(shared)] {
		id := fmt.Sprintf("s%d", d)
		a, err := m.do("GET", "/"+m.name()+"/_doc/"+id, "")
		if err != nil || a.status != 200 {
			continue
		}
		m.change(id, gjson.Get(a.body, "_source").Raw)
		if m.rand.IntN(4) == 0 {
			m.keep()
		}
	}
	m.keep()
	if len(m.then) == 0 {
		return
	}
	a, err := m.do("POST", "/_bulk", m.lines.String())
	items := gjson.Get(a.body, "items").Array()
	m.told[a.status]++
	m.history = append(m.history, fmt.Sprintf("a bulk: %d %v", a.status, err))
	switch {
	case err == nil && a.status == 200 && len(items) != len(m.then):
		m.t.Errorf("%d results of %d items: %s", len(items), len(m.then), a.body)
	case err != nil || a.status != 200:
		items = nil
	}
	for k, then := range m.then {
		switch {
		case items != nil:
			status := int(gjson.Get(items[k].Raw, "*.status").Int())
			m.told[1000+status]++
			then(status, gjson.Get(items[k].Raw, "*.result").String())
		case a.status == 429:
			then(429, "")
		default:
			then(0, "")
		}
	}
}

// TestMixedBulksKeepWhatWasAcknowledged: clients send several actions of one document in one bulk, by several names of its index, while
// answers get lost and items are rejected. What was acknowledged is there once, and what wasn't is there at most once.
func TestMixedBulksKeepWhatWasAcknowledged(t *testing.T) {
	workers, turns := 4, 30
	if long() {
		turns = 2000
	}
	for name, config := range map[string]string{"as it is": "", "marked": "rules: [{name: r, write_id: _writes}]\n", "in windows": "limits: {max_guarded_body: 16KiB}\n"} {
		t.Run(name, func(t *testing.T) {
			e := inMemory(t)
			seed := rand.Uint64()
			if given, err := strconv.ParseUint(os.Getenv("BULK_SEED"), 10, 64); err == nil {
				seed = given
			}
			t.Logf("BULK_SEED=%d", seed)
			index := e.index(t)
			e.send(t, 200, "POST", "/_aliases", `{"actions":[{"add":{"index":"`+index+`","alias":"`+index+`-store"}}]}`)
			for d := range shared {
				e.send(t, 201, "PUT", fmt.Sprintf("/%s/_doc/s%d", index, d), `{"list":[],"by":{}}`)
			}
			u := newUnsteady(t, e.url, seed)
			u.whole.Store(true)
			p := optimistFor(t, target{"embedded", u.URL}, config)
			u.whole.Store(false)
			all := make([]*mixer, workers)
			var wg sync.WaitGroup
			for w := range all {
				m := &mixer{t: t, rand: rand.New(rand.NewPCG(seed, uint64(10+w))), base: p.URL, names: []string{index, index, index + "-store"},
					me: fmt.Sprintf("w%d", w), acked: map[string]map[string]bool{}, sent: map[string]map[string]bool{}, own: map[string]bool{"": true},
					told: map[int]int{}}
				for d := range shared {
					id := fmt.Sprintf("s%d", d)
					m.acked[id], m.sent[id] = map[string]bool{}, map[string]bool{}
				}
				all[w] = m
				wg.Go(func() {
					for range turns {
						m.round()
					}
				})
			}
			wg.Wait()
			for _, m := range all {
				t.Logf("%s was told %v", m.me, m.told)
				m.check(e, index)
			}
		})
	}
}

// check holds the documents against what the client was told.
func (m *mixer) check(e target, index string) {
	for id := range m.sent {
		times := map[string]int{}
		text := e.source(m.t, "/"+index+"/_doc/"+id)
		for _, entry := range gjson.Get(text, "list").Array() {
			times[entry.String()]++
		}
		for entry := range m.sent[id] {
			if n := times[entry]; n > 1 || n == 0 && m.acked[id][entry] {
				m.t.Errorf("%s of %s is there %d times, acknowledged: %t", entry, id, n, m.acked[id][entry])
			}
		}
	}
	a, err := do(m.t.Context(), "GET", e.url+"/"+index+"/_doc/own-"+m.me, "", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	m.holds(stored(a))
}

// holds checks what the own document is.
func (m *mixer) holds(is string) {
	if !m.own[is] {
		m.t.Errorf("the own document of %s is %q, and may be %v; it was\n%s", m.me, is, m.own, strings.Join(m.history, "\n"))
	}
}
