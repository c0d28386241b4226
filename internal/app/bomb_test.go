package app

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/watch"

	"bytes"
)

// bomb is a body of many times its size, compressed.
func bomb(t *testing.T, begin, again string, times int, end string) string {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // errs on levels that don't exist
	_, _ = io.WriteString(z, begin)
	// In large pieces, and at best speed: with the race detector, the compression would take most of the test's time.
	block := 1 + (64<<10)/len(again)
	for large := strings.Repeat(again, block); times >= block; times -= block {
		_, _ = io.WriteString(z, large)
	}
	_, _ = io.WriteString(z, strings.Repeat(again, times))
	_, _ = io.WriteString(z, end)
	_ = z.Close()
	return b.String()
}

// allocated is how many bytes were allocated while f ran, by everybody.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Before the engine has answered a question anybody may have sent it: it costs what was sent, and not what is made of it. After
// it, it costs no more than some times the largest question.
func TestAQuestionCostsLittleBeforeTheEngineHasAnsweredIt(t *testing.T) {
	const stamps = "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search], stamp: _rev}}\n"
	const reads = "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n"
	ids := bomb(t, `{"ids":["1"`, `,""`, 5_000_000, `]}`)
	docs := bomb(t, `{"docs":[{"_id":"1"}`, `,{"_index":"shop"}`, 800_000, `]}`)
	hits := bomb(t, `{"query":{"ids":{"values":["1"`, `,""`, 5_000_000, `]}}}`)
	var answered atomic.Int32
	answered.Store(401)
	engine := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(int(answered.Load()))
		_, _ = io.WriteString(out, `{"docs":[],"hits":{"hits":[]}}`)
	}))
	defer engine.Close()
	for name, rules := range map[string]string{"watched": reads, "stamped": stamps} {
		for target, body := range map[string]string{"/shop/_mget": ids, "/_mget": docs, "/shop/_search": hits, "/_search": hits} {
			w := newLargeWorldOn(t, rules, engine.URL)
			for _, status := range []int{401, 200} {
				answered.Store(int32(status))
				most := uint64(4 << 20)
				if status == 200 {
					most = 8 * largeBody
				}
				got := allocated(func() {
					w.ask(w.proxied, "POST", target, body, "Content-Encoding", "gzip", "Optimist-Session", "s")
				})
				if got > most {
					t.Errorf("%s, %s of %d bytes answered %d: %d KiB allocated, want %d at most", name, target, len(body), status, got>>10, most>>10)
				}
			}
		}
	}
}

// What is asked for beside what is answered isn't read to its end.
func TestOfAMultiGetWithMoreDocumentsThanItsAnswerNoneIsRemembered(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [mget]}}\n", Identity{})
	w.put(doc1, `{"a":1}`)
	ids := `{"ids":["1"` + strings.Repeat(`,"2"`, watch.MaxDocuments) + `]}`
	if a := w.ask(w.proxied, "POST", "/shop/_mget", ids, "Optimist-Session", "s"); a.Status != 200 {
		t.Fatalf("%d %.200s", a.Status, a.Body)
	}
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=lost;reason=unwatched")
}
