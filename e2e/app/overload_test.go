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
	each   int           // how many documents a holder has; it writes several by one bulk
	holder []*holder
}

const (
	// slowScript takes some milliseconds. Painless ends a script after a million rounds.
	slowScript = `{"processors":[{"script":{"source":"double x = 1; for (int i = 0; i < 900000; i++) { x = x * 1.0000001 + Math.sqrt(i); } ctx.work = (long) x % 7"}}]}`
	clientWait = 20 * time.Second
)

// A holder is the client of a few documents, and has read them: its writes are guarded.
type holder struct {
	mu    sync.Mutex // held while a write of it is under way
	index string     // its URL
	name  string
	tries int
	docs  []*held
}

// held is a document of a holder.
type held struct {
	id    string
	acked int          // the last write that was acknowledged
	maybe map[int]bool // those of which nobody knows, since then
	acks  int          // how many were acknowledged
	lost  int          // of how many nobody knows
}

// note keeps what a write has come to: the status is 0 if there was no answer.
func (d *held) note(try, status int) {
	switch status {
	case http.StatusOK:
		d.acked, d.maybe = try, map[int]bool{}
		d.acks++
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		d.maybe[try] = true
		d.lost++
	}
}

// Ten times as many writes fall due as the engine can do. Those whose holders all wait aren't sent, and the log says how many were. With a limit,
// the engine does about as many as it can, and foreground writes among them go first. Without one it does few. Whatever is refused isn't
// written, and what is acknowledged is there.
func TestAnOverloadedEngineGoesOn(t *testing.T) {
	o := &overload{e: slowEngine(t), holds: 5 * time.Second, count: 4000, each: 1}
	if long() {
		o.holds, o.count = 30*time.Second, 8000
	}
	o.goesOn(t)
}

// The same with bulks of ten. An item that the engine rejects waits in its bulk, and the bulk's other items have been written.
func TestAnOverloadedEngineGoesOnWithBulks(t *testing.T) {
	engine.Long(t)
	o := &overload{e: slowEngine(t), holds: 30 * time.Second, count: 800, each: 10}
	o.goesOn(t)
}

// slowEngine starts an engine with one thread for writes.
func slowEngine(t *testing.T) *engine.Engine {
	t.Helper()
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
	return e
}

// goesOn tells what the engine does with a limit, and without one. It judges the one by the other, and not by the peak: the peak is measured
// before the load, which takes a part of the processors from the engine, and on a slow machine most of them.
func (o *overload) goesOn(t *testing.T) {
	t.Helper()
	with := o.measure(t, "with a limit", "upstream: {adaptive_limit: true}\n")
	without := o.measure(t, "without", "upstream: {adaptive_limit: false}\n")
	t.Logf("%s\n%s", with, without)
	if with.goodput <= 2*without.goodput { // also if none does any
		t.Errorf("with a limit the engine does %.1f writes a second, and without one %.1f", with.goodput, without.goodput)
	}
	// They are half of what the engine can do. If they didn't go first, a tenth of them would be done at most.
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
		h := &holder{index: url + "/" + o.index, name: fmt.Sprintf("w%d", i)}
		for k := range o.each {
			d := &held{id: strconv.Itoa(i*o.each + k), maybe: map[int]bool{}}
			fmt.Fprintf(&bulk, `{"create":{"_id":"%s"}}`+"\n"+`{"n":0,"who":"%s"}`+"\n", d.id, h.name)
			h.docs = append(h.docs, d)
		}
		o.holder = append(o.holder, h)
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
	o.everyone(16, func(h *holder) { h.read(t, client) })
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
		if time.Since(ended) > 5*time.Minute {
			t.Fatalf("%s: five minutes after the load, a write takes %v, and took %v before it", name, time.Since(begun), quick)
		}
	}
	m.after = o.closed(client, o.holds/2)
	m.grown = resident(t, pid) - before
	o.check(t)
	return m
}

// everyone has so many goroutines go through the holders.
func (o *overload) everyone(workers int, do func(*holder)) {
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
	for _, d := range h.docs {
		if status, body := h.ask(t.Context(), client, http.MethodGet, "/_doc/"+d.id, "", true); status != http.StatusOK {
			t.Errorf("%d %.300s", status, body)
		}
	}
}

// ask makes a request of the holder. The status is 0 if there was no answer.
func (h *holder) ask(ctx context.Context, client *http.Client, method, path, body string, foreground bool) (status int, answer []byte) {
	req, _ := http.NewRequestWithContext(ctx, method, h.index+path, strings.NewReader(body))
	req.Header.Set("Optimist-Session", h.name)
	req.Header.Set("Content-Type", "application/json")
	if !foreground {
		req.Header.Set("Optimist-Priority", "background")
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = res.Body.Close() }()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

func (h *holder) write(ctx context.Context, client *http.Client) (status int) {
	h.mu.Lock()
	return h.unlockAfter(ctx, client, true)
}

// unlockAfter writes, and unlocks the holder. The status is 0 if there was no answer. That of a bulk is 200 if all of it was done.
func (h *holder) unlockAfter(ctx context.Context, client *http.Client, foreground bool) (status int) {
	defer h.mu.Unlock()
	h.tries++
	source := fmt.Sprintf(`{"n":%d,"who":"%s"}`, h.tries, h.name)
	if len(h.docs) == 1 {
		d := h.docs[0]
		status, _ = h.ask(ctx, client, http.MethodPut, "/_doc/"+d.id, source, foreground)
		d.note(h.tries, status)
		return status
	}
	var bulk strings.Builder
	for _, d := range h.docs {
		fmt.Fprintf(&bulk, `{"index":{"_id":"%s"}}`+"\n%s\n", d.id, source)
	}
	status, answer := h.ask(ctx, client, http.MethodPost, "/_bulk", bulk.String(), foreground)
	items := gjson.GetBytes(answer, "items.#.index.status").Array()
	for i, d := range h.docs {
		of := status
		if status == http.StatusOK && len(items) == len(h.docs) {
			of = int(items[i].Int())
		}
		if d.note(h.tries, of); of != http.StatusOK {
			status = of
		}
	}
	return status
}

// check compares what is stored with what was acknowledged: a write that was refused isn't there, and nothing is lost.
func (o *overload) check(t *testing.T) {
	t.Helper()
	var all []*held
	var ids []string
	for _, h := range o.holder {
		for _, d := range h.docs {
			all, ids = append(all, d), append(ids, d.id)
		}
	}
	list, _ := json.Marshal(map[string]any{"ids": ids})
	docs := gjson.GetBytes(o.do(t, "POST", "/"+o.index+"/_mget", string(list)).Body, "docs").Array()
	acked := 0
	for i, d := range all {
		n := int(docs[i].Get("_source.n").Int())
		if n != d.acked && !d.maybe[n] {
			t.Errorf("document %s holds write %d, and %d was acknowledged", d.id, n, d.acked)
		}
		// Each write that is applied raises the version by one, so the version also shows the writes that later ones replaced.
		if applied := int(docs[i].Get("_version").Int()) - 1; applied < d.acks || applied > d.acks+d.lost {
			t.Errorf("document %s was written %d times: %d writes were acknowledged, and %d have no known outcome", d.id, applied, d.acks, d.lost)
		}
		if d.acked > 0 {
			acked++
		}
	}
	if acked == 0 {
		t.Error("no document was written")
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
