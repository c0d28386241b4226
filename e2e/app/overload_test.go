package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// An overload is an engine that can do little, and clients that don't wait for each other. The engine has one thread for writes, and runs a
// script for each: it does a few hundred writes a second, however fast the machine is otherwise. So the load fits beside it.
type overload struct {
	e      *engine.Engine
	index  string
	holds  time.Duration // how long the load lasts
	count  int           // of holders
	holder []*holder
}

const (
	// slowScript takes some milliseconds. Painless ends a script after a million rounds.
	slowScript = `{"processors":[{"script":{"source":"double x = 1; for (int i = 0; i < 900000; i++) { x = x * 1.0000001 + Math.sqrt(i); } ctx.work = (long) x % 7"}}]}`
	clientWait = 20 * time.Second
)

// A holder is the client of one document, and has read it: its writes are guarded.
type holder struct {
	mu    sync.Mutex // held while a write of it is under way
	path  string
	tries int
	acked int          // the last one that was acknowledged
	maybe map[int]bool // those of which nobody knows, since then
	acks  int          // how many were acknowledged
	lost  int          // of how many nobody knows
}

// Ten times as many writes fall due as the engine can do. Those whose holders all wait aren't sent, and the log says how many were. With a limit,
// the engine does about as many as it can, and foreground writes among them go first. Without one it does few. Whatever is refused isn't
// written, and what is acknowledged is there.
func TestAnOverloadedEngineGoesOn(t *testing.T) {
	e, err := engine.Start(t.Context(), engine.OpenSearch38, engine.Options{Settings: map[string]string{
		"thread_pool.write.size": "1", "thread_pool.write.queue_size": "100",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	o, least := &overload{e: e, holds: 5 * time.Second, count: 4000}, 0.5
	if long() {
		o.holds, o.count, least = 30*time.Second, 8000, 0.8
	}
	with := o.measure(t, "with a limit", "upstream: {adaptive_limit: true}\n")
	without := o.measure(t, "without", "upstream: {adaptive_limit: false}\n")
	t.Logf("%s\n%s", with, without)
	if with.goodput < least*with.peak || with.goodput < without.goodput {
		t.Errorf("the engine does too little of what it can")
	}
	if with.denied > with.done/10 {
		t.Errorf("of the foreground writes, %d are done and %d refused", with.done, with.denied)
	}
	if long() {
		t.Log(o.measure(t, "straight to the engine", ""))
	}
}

// measured is what one run shows.
type measured struct {
	name                     string
	peak, goodput            float64 // acknowledged writes a second: of eight clients that wait for their answers, and under the load
	p50, p99                 time.Duration
	done, denied             int // foreground writes that were acknowledged, and refused
	refused, unknown, unsent int
	offered                  float64       // writes a second that were sent under the load; with those that found no free holder it is ten times the peak
	refusal                  time.Duration // 99 of 100 refusals take at most so long
	grown                    int64         // bytes of optimist's memory
	recovered                time.Duration // from the end of the load until a write takes hardly longer than before it
	after                    float64       // acknowledged writes a second of eight clients, then
}

func (m *measured) String() string {
	return fmt.Sprintf("%s: peak %.0f/s, under load %.0f/s (%.0f %%), %d of %d foreground writes done, p50 %v, p99 %v, refusals p99 %v; "+
		"%.1f times the peak sent, %d refused, %d unknown, %d not sent; "+
		"memory + %d MiB; a write is quick again after %v, then %.0f/s", m.name, m.peak, m.goodput, 100*m.goodput/m.peak, m.done, m.done+m.denied, m.p50, m.p99,
		m.refusal, m.offered/m.peak, m.refused, m.unknown, m.unsent, m.grown>>20, m.recovered, m.after)
}

// prepare makes an index with a document for each holder, and slows it down.
func (o *overload) prepare(t *testing.T, url string) {
	t.Helper()
	o.index = target{o.e.Kind.String(), o.e.URL}.reserve(t, "overload-")
	var bulk strings.Builder
	o.holder = nil
	for i := range o.count {
		fmt.Fprintf(&bulk, `{"create":{"_id":"%d"}}`+"\n"+`{"n":0,"who":"w%d"}`+"\n", i, i)
		o.holder = append(o.holder, &holder{path: fmt.Sprintf("%s/%s/_doc/%d", url, o.index, i), maybe: map[int]bool{}})
	}
	o.do(t, "PUT", "/"+o.index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"dynamic":false}}`)
	o.do(t, "POST", "/"+o.index+"/_bulk", bulk.String())
	o.do(t, "PUT", "/_ingest/pipeline/slow", slowScript)
	o.do(t, "PUT", "/"+o.index+"/_settings", `{"index.default_pipeline":"slow"}`)
}

func (o *overload) do(t *testing.T, method, path, body string) engine.Answer {
	t.Helper()
	a, err := o.e.Do(t.Context(), method, path, body)
	if err != nil || a.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %v %.300s", method, path, a.Status, err, a.Body)
	}
	return a
}

func (o *overload) measure(t *testing.T, name, config string) *measured {
	t.Helper()
	url, pid := o.e.URL, os.Getpid()
	if config != "" {
		p := optimist.Start(t, optimist.Options{Upstream: []string{o.e.URL}, Config: config})
		defer func() { _ = p.Stop() }()
		url, pid = p.URL, p.PID()
	}
	o.prepare(t, url)
	client := &http.Client{Timeout: clientWait, Transport: &http.Transport{MaxIdleConnsPerHost: o.count}}
	defer client.CloseIdleConnections()
	o.each(16, func(h *holder) { h.read(t, client) })
	m := &measured{name: name}
	o.closed(client, time.Second) // the engine compiles its script
	m.peak = o.closed(client, o.holds/2)
	quick := o.quickest(client)
	before := resident(t, pid)
	o.load(t, client, int(10*m.peak), m)
	ended := time.Now()
	for m.recovered == 0 {
		begun := time.Now()
		if h := o.holder[0]; h.write(t.Context(), client) == http.StatusOK && time.Since(begun) < 5*quick {
			m.recovered = time.Since(ended)
		}
		if time.Since(ended) > time.Minute {
			t.Fatalf("%s: a minute after the load, a write takes %v, and took %v before it", name, time.Since(begun), quick)
		}
	}
	m.after = o.closed(client, o.holds/2)
	m.grown = resident(t, pid) - before
	o.check(t)
	return m
}

// each has so many goroutines go through the holders.
func (o *overload) each(workers int, do func(*holder)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(o.holder); i = next.Add(1) - 1 {
				do(o.holder[i])
			}
		})
	}
	wg.Wait()
}

// closed has eight clients write for so long, each after its last answer. It returns how many writes a second were acknowledged.
func (o *overload) closed(client *http.Client, lasts time.Duration) float64 {
	var wg sync.WaitGroup
	var done atomic.Int64
	end := time.Now().Add(lasts)
	for i := range 8 {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				if o.holder[(i+8*n)%len(o.holder)].write(context.Background(), client) == http.StatusOK {
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / lasts.Seconds()
}

// quickest is the median of a few writes, one after the other.
func (o *overload) quickest(client *http.Client) time.Duration {
	var took []time.Duration
	for _, h := range o.holder[:21] {
		begun := time.Now()
		h.write(context.Background(), client)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// load has so many writes begin each second, whatever becomes of those before.
func (o *overload) load(t *testing.T, client *http.Client, rate int, m *measured) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var took, refusals []time.Duration
	begun, sent, at := time.Now(), 0, 0
	inTime := 0
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ; time.Since(begun) < o.holds; <-tick.C {
		for due := int(time.Since(begun).Seconds() * float64(rate)); sent < due; sent++ {
			h := o.free(&at)
			if h == nil {
				m.unsent++
				continue
			}
			n := sent
			wg.Go(func() {
				start := time.Now()
				foreground := n%20 == 0
				status := h.unlockAfter(t.Context(), client, foreground)
				mu.Lock()
				defer mu.Unlock()
				switch status {
				case http.StatusOK:
					if foreground {
						took = append(took, time.Since(start))
					}
					if time.Since(begun) < o.holds {
						inTime++
					}
				case http.StatusTooManyRequests, http.StatusServiceUnavailable:
					m.refused++
					if foreground {
						refusals = append(refusals, time.Since(start))
					}
				default:
					m.unknown++
				}
			})
		}
	}
	wg.Wait()
	m.offered = float64(sent-m.unsent) / o.holds.Seconds()
	m.goodput, m.done, m.denied = float64(inTime)/o.holds.Seconds(), len(took), len(refusals)
	m.p50, m.p99, m.refusal = percentile(took, 50), percentile(took, 99), percentile(refusals, 99)
}

func percentile(took []time.Duration, p int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*p/100].Round(time.Millisecond)
}

// free returns the next holder that has no write under way, locked; nil: all have.
func (o *overload) free(at *int) *holder {
	for range 64 {
		h := o.holder[*at%len(o.holder)]
		if *at++; h.mu.TryLock() {
			return h
		}
	}
	return nil
}

func (h *holder) read(t *testing.T, client *http.Client) {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, h.path, nil)
	req.Header.Set("Optimist-Session", h.path)
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}

func (h *holder) write(ctx context.Context, client *http.Client) (status int) {
	h.mu.Lock()
	return h.unlockAfter(ctx, client, true)
}

// unlockAfter writes, and unlocks the holder. The status is 0 if there was no answer.
func (h *holder) unlockAfter(ctx context.Context, client *http.Client, foreground bool) (status int) {
	defer h.mu.Unlock()
	h.tries++
	body, _ := json.Marshal(map[string]any{"n": h.tries, "who": "w" + h.path[strings.LastIndexByte(h.path, '/')+1:]})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPut, h.path, strings.NewReader(string(body)))
	req.Header.Set("Optimist-Session", h.path)
	req.Header.Set("Content-Type", "application/json")
	if !foreground {
		req.Header.Set("Optimist-Priority", "background")
	}
	res, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		status = res.StatusCode
	}
	switch {
	case err == nil && status == http.StatusOK:
		h.acked, h.maybe = h.tries, map[int]bool{}
		h.acks++
	case err == nil && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable):
	default:
		h.maybe[h.tries] = true
		h.lost++
	}
	return status
}

// check compares what is stored with what was acknowledged: a write that was refused isn't there, and nothing is lost.
func (o *overload) check(t *testing.T) {
	t.Helper()
	var ids []string
	for i := range o.holder {
		ids = append(ids, strconv.Itoa(i))
	}
	list, _ := json.Marshal(map[string]any{"ids": ids})
	docs := gjson.GetBytes(o.do(t, "POST", "/"+o.index+"/_mget", string(list)).Body, "docs").Array()
	acked := 0
	for i, h := range o.holder {
		n := int(docs[i].Get("_source.n").Int())
		if n != h.acked && !h.maybe[n] {
			t.Errorf("document %d holds write %d, and %d was acknowledged", i, n, h.acked)
		}
		// Each write that is applied raises the version by one, so the version also shows the writes that later ones replaced.
		if applied := int(docs[i].Get("_version").Int()) - 1; applied < h.acks || applied > h.acks+h.lost {
			t.Errorf("document %d was written %d times: %d writes were acknowledged, and %d have no known outcome", i, applied, h.acks, h.lost)
		}
		if h.acked > 0 {
			acked++
		}
	}
	if acked < 100 {
		t.Errorf("only %d documents were written", acked)
	}
}

// resident is the resident memory of a process, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		t.Skipf("the memory of a process can't be measured here: %v", err)
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
