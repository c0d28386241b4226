package write

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/es"
	"optimist/internal/patch"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// stressRules leave no way by which a write could go without a guard: whatever is then missing or doubled is a defect.
const stressRules = `sessions: {max_age: 1h}
rules:
- name: shop
  match: {index: [shop]}
  base: {unknown: reject, lost: reject}
  merge: {paths: {/n: sum}}
  retry: {max_attempts: 30, max_elapsed: 5s, backoff: {base_interval: 1ms, max_interval: 5ms}}
`

// stressIndex keeps the fields out of the mapping, whose number is limited.
const stressIndex = `{"mappings":{"dynamic":false}}`

// stressTransform counts the writes of a document that go through a proxy, whatever clients know of the count.
const stressTransform = `  transform:
  - {op: add, path: /edits, value: {from: current, path: /edits}}
  - {op: increment, path: /edits, value: 1}
`

// TestEveryAcknowledgedChangeIsInTheDocumentExactlyOnce lets clients of two proxies and writers without any change the same
// documents while requests and answers are lost, applied late, refused or held up, clients leave, and documents and the index are
// deleted and made again. A change adds a token to a list, the token's amount to a counter, and a field of its own. It reads the
// oracle off every revision that the engine has stored. Changes are documents sent whole, parts of them, and patches. E2E_LONG=1 runs longer;
// OPTIMIST_SEED repeats the same choices.
func TestEveryAcknowledgedChangeIsInTheDocumentExactlyOnce(t *testing.T) {
	stressed(t, stressRules, false)
}

// TestEveryAcknowledgedChangeIsTransformedExactlyOnce is the same under a rule that counts them.
func TestEveryAcknowledgedChangeIsTransformedExactlyOnce(t *testing.T) {
	stressed(t, stressRules+stressTransform, true)
}

func stressed(t *testing.T, rules string, edits bool) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("OPTIMIST_SEED"); s != "" {
		_, _ = fmt.Sscan(s, &seed)
	}
	t.Logf("OPTIMIST_SEED=%d", seed)
	const workers = 20
	rounds := 120
	if os.Getenv("E2E_LONG") == "1" {
		rounds = 1200
	}
	x := newStress(t, seed, rules)
	x.edits = edits
	var wg sync.WaitGroup
	for i := range workers {
		wk := x.worker(i)
		wg.Go(func() {
			for range rounds {
				wk.round()
			}
		})
	}
	wg.Go(func() {
		for range rounds / 40 {
			x.pause(20 * time.Millisecond)
			x.recreate()
		}
	})
	wg.Wait()
	x.late.Wait()
	x.judge()
}

// stress is the engine, two proxies before it, and all that was ever stored.
type stress struct {
	t       *testing.T
	seed    uint64
	w       [2]*world
	faults  *faults
	late    sync.WaitGroup
	history history
	edits   bool // the rule counts writes

	lives sync.RWMutex // held for reading from a read to the write that is based on it, where sessions are inferred
	index sync.RWMutex // held for reading by whatever is under way, for writing while the index is made anew

	mu    sync.Mutex
	fates map[string]fate
	said  map[string][]string // what clients were told of a change, for the report
}

// fate is what a client was told of its change.
type fate uint8

const (
	unknown fate = iota
	acknowledged
	refused
)

func newStress(t *testing.T, seed uint64, rules string) *stress {
	w := newWorld(t, rules)
	other := *w
	now := time.Now()
	other.store = session.New(session.Options{Now: func() time.Time { return now }})
	now = now.Add(2 * time.Hour)
	other.s = New(Options{Upstream: w.engine, Engine: &es.Client{Upstream: w.engine}, Sessions: other.store})
	x := &stress{t: t, seed: seed, w: [2]*world{w, &other}, fates: map[string]fate{}, said: map[string][]string{}, faults: &faults{r: rand.New(rand.NewPCG(seed, 1))}}
	w.engine.before = x.before
	x.history.nextLife()
	w.direct("PUT", "/shop", stressIndex)
	return x
}

// faults draws what goes wrong.
type faults struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (f *faults) draw() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.r.Float64()
}

func (x *stress) pause(most time.Duration) {
	<-time.After(time.Duration(x.faults.draw() * float64(most)))
}

// before stands between the proxies and the engine.
func (x *stress) before(r *upstream.Request) (*upstream.Response, error) {
	if x.faults.draw() < 0.1 {
		x.pause(time.Millisecond)
	}
	p := x.faults.draw()
	switch {
	case p < 0.01:
		return answering(429, tooManyRequests), nil
	case p < 0.02:
		return nil, &upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}
	case p < 0.03:
		return answering(503, `{"status":503}`), nil
	case p < 0.05:
		return nil, lostError
	case p < 0.06 && r.Method != "GET":
		life := x.history.life() // a request that outlives its index may be taken by the next, without a proxy just as well
		again := &upstream.Request{Method: r.Method, Target: []byte(string(r.Target)), Body: []byte(string(r.Body))}
		x.late.Go(func() {
			x.pause(3 * time.Millisecond)
			x.index.RLock()
			defer x.index.RUnlock()
			if x.history.life() == life {
				x.apply(again)
			}
		})
		return nil, lostError
	}
	res := x.apply(r)
	switch {
	case p > 0.98:
		return nil, lostError
	case p > 0.975 && r.Method != "GET":
		return answering(503, `{"status":503}`), nil
	}
	return res, nil
}

// apply has the engine do it, and keeps what it stored.
func (x *stress) apply(r *upstream.Request) *upstream.Response {
	path, _, query := strings.Cut(string(r.Target), "?")
	if id, part := strings.CutPrefix(path, "/shop/_update/"); part && !strings.HasPrefix(id, "optimist-probe") {
		if query {
			r.Target = append(r.Target, '&')
		} else {
			r.Target = append(r.Target, '?')
		}
		r.Target = append(r.Target, "_source=true"...) // what the engine has made of it
		res := x.w[0].engine.handle(r)
		if result := gjson.GetBytes(res.Payload, "result").Str; result == "updated" || result == "created" {
			x.history.add(id, gjson.GetBytes(res.Payload, "_seq_no").Int(), r.Method, gjson.GetBytes(res.Payload, "get._source").Raw)
		}
		return res
	}
	if r.Method == "GET" || !strings.HasPrefix(path, "/shop/_doc/") {
		return x.w[0].engine.handle(r)
	}
	res := x.w[0].engine.handle(r)
	if res.Status < 300 {
		x.history.add(strings.TrimPrefix(path, "/shop/_doc/"), gjson.GetBytes(res.Payload, "_seq_no").Int(), r.Method, string(r.Body))
	}
	return res
}

// recreate deletes the index and makes it again, when nothing is under way: numbers of a life that is over are accepted in the
// next, and only what a proxy has seen of that can be held against it.
func (x *stress) recreate() {
	x.lives.Lock()
	defer x.lives.Unlock()
	x.index.Lock()
	defer x.index.Unlock()
	x.w[0].direct("DELETE", "/shop", "")
	x.w[0].direct("PUT", "/shop", stressIndex)
	x.history.nextLife()
	for _, w := range x.w {
		w.s.IndicesChanged([16]byte{}, "shop")
	}
}

func (x *stress) tell(token string, f fate) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fates[token] != acknowledged {
		x.fates[token] = f
	}
}

// worker is one client, with what it remembers.
type worker struct {
	x        *stress
	r        *rand.Rand
	name     string
	c        *client // nil for one that goes straight to the engine
	inferred bool
	patches  bool
	parts    bool // sends parts, too
	absent   bool // it has found no document
	n        int

	id, memory, token string // what it last sent, and of which document, if it may go on from there
	doubt             bool   // what it last sent has no known outcome
}

func (x *stress) worker(i int) *worker {
	wk := &worker{x: x, r: rand.New(rand.NewPCG(x.seed, uint64(i)+2)), name: fmt.Sprintf("w%d", i)}
	w := x.w[i%2]
	switch {
	case i < 2:
	case i < 6:
		wk.inferred, wk.parts = true, i >= 4
		wk.c = w.stranger()
	default:
		wk.c, wk.patches, wk.parts = w.client(wk.name), i >= 14, i >= 10
	}
	return wk
}

// round is one change, or a delete, or a repetition.
func (wk *worker) round() {
	p := wk.r.Float64()
	switch {
	case wk.c == nil:
		wk.straight()
	case wk.patches && p < 0.8:
		wk.patch()
	case wk.memory != "" && !wk.inferred && wk.doubt && p < 0.5:
		wk.write(wk.memory, "") // did it get through? once more
	case wk.memory != "" && !wk.inferred && !wk.doubt && p < 0.3:
		body, token := wk.change(wk.memory)
		wk.token = token
		wk.write(body, "")
	case wk.memory != "" && !wk.inferred && !wk.doubt && p < 0.35:
		wk.write(wk.memory, "")
	default:
		wk.readAndWrite(p)
	}
}

func (wk *worker) readAndWrite(p float64) {
	wk.id, wk.memory = fmt.Sprint(wk.r.IntN(3)), ""
	if wk.inferred {
		// What one of them has read of an index that is gone would be taken for what another has read of the next: that is
		// inference.
		wk.x.lives.RLock()
		defer wk.x.lives.RUnlock()
	}
	wk.x.index.RLock()
	seen := wk.c.read(wk.id)
	wk.x.index.RUnlock()
	if !wk.inferred && len(gjson.Get(seen, "log").Array()) > 60 {
		wk.x.index.RLock()
		wk.c.send("DELETE", "/shop/_doc/"+wk.id, "")
		wk.x.index.RUnlock()
		return
	}
	wk.absent = seen == ""
	if wk.absent {
		seen = "{}"
	}
	body, token := wk.change(seen)
	wk.token = token
	query := ""
	if p > 0.95 {
		query = "?timeout=1s"
	}
	wk.write(body, query)
}

// change adds a token. An inferred session's is a field alone: what such a session's counts and lists come to is a guess.
func (wk *worker) change(body string) (changed, token string) {
	wk.n++
	token = fmt.Sprintf("%s-%d", wk.name, wk.n)
	if wk.inferred {
		body, _ = sjson.Set(body, "g-"+token, 1)
		return body, token
	}
	step := 1 + wk.r.IntN(3)
	body, _ = sjson.Set(body, "n", gjson.Get(body, "n").Int()+int64(step))
	body, _ = sjson.Set(body, "log.-1", fmt.Sprintf("%s=%d", token, step))
	body, _ = sjson.Set(body, "f-"+token, step)
	return body, token
}

// write sends the document, or of it the part that is changed. What the client has in hand is the document either way.
func (wk *worker) write(body, query string) {
	if !wk.parts || wk.r.IntN(3) == 0 {
		wk.send("PUT", "/shop/_doc/"+wk.id+query, "application/json", body, body)
		return
	}
	if wk.inferred { // what else it sends would be a guess
		body = fmt.Sprintf(`{"g-%s":1}`, wk.token)
	}
	part := ""
	for _, name := range []string{"n", "log", "f-" + wk.token, "g-" + wk.token} {
		if v := gjson.Get(body, name); v.Exists() {
			part += fmt.Sprintf(`,%q:%s`, name, v.Raw)
		}
	}
	upsert := wk.absent || wk.r.IntN(2) == 0
	wk.send("POST", "/shop/_update/"+wk.id+query, "application/json", fmt.Sprintf(`{"doc":{%s},"doc_as_upsert":%t}`, part[1:], upsert), body)
}

// patch is a change that needs no Copy: the steps that change makes, or, as a merge patch or the part of an _update, a field
// alone.
func (wk *worker) patch() {
	wk.n++
	wk.id, wk.token = fmt.Sprint(wk.r.IntN(3)), fmt.Sprintf("%s-%d", wk.name, wk.n)
	if p := wk.r.Float64(); p < 0.15 {
		wk.send("POST", "/shop/_update/"+wk.id, "application/json", fmt.Sprintf(`{"doc":{"g-%s":1}}`, wk.token), "")
	} else if p < 0.3 {
		wk.send("PATCH", "/shop/_doc/"+wk.id, patch.MediaMerge, fmt.Sprintf(`{"g-%s":1}`, wk.token), "")
	} else {
		step := 1 + wk.r.IntN(3)
		body := fmt.Sprintf(`[{"op":"increment","path":"/n","value":%d},{"op":"append","path":"/log","value":"%s=%d"},{"op":"add","path":"/f-%s","value":%d}]`,
			step, wk.token, step, wk.token, step)
		wk.send("POST", "/shop/_patch/"+wk.id+[]string{"", "?upsert=true"}[wk.r.IntN(2)], patch.MediaSteps, body, "")
	}
	wk.memory = ""
}

// send sends a change. memory is what the client has in hand if it is done.
func (wk *worker) send(method, target, kind, body, memory string) {
	ctx := wk.x.t.Context()
	if wk.r.Float64() < 0.03 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(wk.r.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	wk.x.index.RLock()
	r := wk.c.do(ctx, method, target, []byte(body), media(kind))
	wk.x.index.RUnlock()
	wk.memory, wk.doubt = "", false
	wk.x.mu.Lock()
	wk.x.said[wk.token] = append(wk.x.said[wk.token], fmt.Sprintf("%d [%s] %v", r.status, r.outcome, r.err))
	wk.x.mu.Unlock()
	switch {
	case r.err == nil && r.status < 300:
		wk.x.tell(wk.token, acknowledged)
		wk.memory = memory
	case r.err == nil && r.status >= 500, errors.Is(r.err, ErrUnknownOutcome):
		if !strings.HasPrefix(r.outcome, "unknown") {
			wk.x.t.Errorf("an unknown outcome says %v", r)
		}
		wk.x.tell(wk.token, unknown)
		wk.memory, wk.doubt = memory, memory != ""
	case r.err != nil && ctx.Err() != nil:
		wk.x.tell(wk.token, unknown)
		wk.memory, wk.doubt = memory, memory != ""
	case wk.known(wk.token):
		// A repetition was refused: of the first try that says nothing.
	default:
		wk.x.tell(wk.token, refused)
	}
}

// known reports whether something was said of the change before.
func (wk *worker) known(token string) bool {
	wk.x.mu.Lock()
	defer wk.x.mu.Unlock()
	_, found := wk.x.fates[token]
	return found
}

// straight changes a document without a proxy, as a client does that knows its trade.
func (wk *worker) straight() {
	wk.x.pause(5 * time.Millisecond)
	wk.x.index.RLock()
	defer wk.x.index.RUnlock()
	id := fmt.Sprint(wk.r.IntN(3))
	status, seen := wk.x.w[0].direct("GET", "/shop/_doc/"+id, "")
	if status != 200 {
		return
	}
	body, token := wk.change(gjson.Get(seen, "_source").Raw)
	target := fmt.Sprintf("/shop/_doc/%s?if_seq_no=%d&if_primary_term=%d", id, gjson.Get(seen, "_seq_no").Int(), gjson.Get(seen, "_primary_term").Int())
	if res := wk.x.apply(&upstream.Request{Method: "PUT", Target: []byte(target), Body: []byte(body)}); res.Status < 300 {
		wk.x.tell(token, acknowledged)
	} else {
		wk.x.tell(token, refused)
	}
}
