package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/anishathalye/porcupine"
	"github.com/rs/zerolog"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/e2e/optimist"
	"optimist/internal/mark"
)

// wire is what stands between optimist and the engine, and breaks.
type wire struct {
	*toxiproxy.Proxy
	URL string
}

func newWire(t *testing.T, engine string) *wire {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := &wire{Proxy: toxiproxy.NewProxy(server, "engine", "127.0.0.1:0", strings.TrimPrefix(engine, "http://"))}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	w.URL = "http://" + w.Listen
	return w
}

// faults are what goes wrong on the wire, one after the other. Between two of them it is whole.
var faults = []string{
	`{"type":"reset_peer","stream":"upstream","toxicity":0.5,"attributes":{"timeout":0}}`,
	`{"type":"reset_peer","stream":"downstream","toxicity":0.5,"attributes":{"timeout":0}}`,
	`{"type":"limit_data","stream":"upstream","attributes":{"bytes":900}}`,
	`{"type":"limit_data","stream":"downstream","attributes":{"bytes":700}}`,
	`{"type":"latency","stream":"downstream","attributes":{"latency":3,"jitter":3}}`,
	`{"type":"bandwidth","stream":"upstream","attributes":{"rate":100}}`,
	`{"type":"timeout","stream":"downstream","attributes":{"timeout":20}}`,
}

// next puts the n-th fault on the wire, or takes it off.
func (w *wire) next(n int) {
	w.Toxics.ResetToxics(context.Background())
	if n%2 == 1 {
		_, _ = w.Toxics.AddToxicJson(strings.NewReader(faults[n/2%len(faults)])) // the list is right
	}
}

// adding is one client's change: it adds 1 to /n, which may not be done twice, and leaves its name.
type adding struct {
	key  string
	call int64 // when it was sent
	told bool  // of a success
}

// load is what clients do to documents while the wire breaks and optimist is killed.
type load struct {
	t         *testing.T
	e         target
	base      func() string // where requests go
	index     string
	documents int
	began     time.Time

	mu      sync.Mutex
	added   [][]adding
	history [][]porcupine.Operation
	told    map[string]int
	done    atomic.Int64
	each    func(n int) // is called after so many changes
}

func newLoad(t *testing.T, e target, base func() string, documents int) *load {
	l := &load{t: t, e: e, base: base, index: e.index(t), documents: documents, began: time.Now(), told: map[string]int{},
		added: make([][]adding, documents), history: make([][]porcupine.Operation, documents)}
	for d := range documents {
		e.send(t, http.StatusCreated, http.MethodPut, l.path(d), `{"n":0}`)
	}
	return l
}

func (l *load) path(d int) string { return fmt.Sprintf("/%s/_doc/%d", l.index, d) }

func (l *load) now() int64 { return int64(time.Since(l.began)) }

// record keeps an operation that was made for certain, between then and now.
func (l *load) record(d, client int, op counted, call int64) {
	end := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history[d] = append(l.history[d], porcupine.Operation{ClientId: client, Input: op, Call: call, Return: end})
}

// clientsMost is more than there are clients.
const clientsMost = 100

// patience is how long a client waits for an answer: then it gives up.
const patience = 5 * time.Second

// change has a client read the document, and write it back with 1 added. It gives up where it is told nothing, and never repeats.
func (l *load) change(client, n int) {
	d := (client + n) % l.documents
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	name := session(fmt.Sprintf("c%d", client))
	call := l.now()
	read, err := do(ctx, http.MethodGet, l.base()+l.path(d), "", name)
	if err != nil || read.status != http.StatusOK {
		return // nothing was done
	}
	source := gjson.Get(read.body, "_source")
	was := source.Get("n").Int()
	l.record(d, client, counted{read: true, n: was, by: source.Get("by").Map()}, call)
	key := fmt.Sprintf("c%d-%d", client, n)
	sent, _ := sjson.Set(source.Raw, "n", was+1)
	sent, _ = sjson.Set(sent, "by."+key, 1)
	call = l.now()
	a, err := do(ctx, http.MethodPut, l.base()+l.path(d), sent, name)
	l.settle(d, client, key, call, a, err)
}

func (l *load) settle(d, client int, key string, call int64, a answer, err error) {
	kind := fmt.Sprint(a.status)
	done := err == nil && a.status < 300
	if err != nil {
		kind = "no answer"
	}
	l.mu.Lock()
	l.told[kind]++
	l.added[d] = append(l.added[d], adding{key, call, done})
	l.mu.Unlock()
	if done {
		l.record(d, client, counted{n: 1}, call)
	}
}

// run has so many clients make so many changes each.
func (l *load) run(clients, changes int) {
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for n := range changes {
				l.change(c, n)
				if l.each != nil {
					l.each(int(l.done.Add(1)))
				}
			}
		})
	}
	wg.Wait()
}

// check holds the documents against what clients were told: every acknowledged change is there, and none counts twice.
func (l *load) check() {
	l.t.Helper()
	for d := range l.documents {
		source := l.e.source(l.t, l.path(d))
		n, by := gjson.Get(source, "n").Int(), gjson.Get(source, "by").Map()
		if int(n) != len(by) {
			l.t.Errorf("document %d counts %d changes and names %d", d, n, len(by))
		}
		for _, a := range l.added[d] {
			if _, there := by[a.key]; a.told && !there {
				l.t.Errorf("document %d: the acknowledged change %s is lost", d, a.key)
			}
		}
		call := l.now()
		l.record(d, clientsMost, counted{read: true, n: n, by: by}, call)
		if history := l.timeline(d); linearizable(history) != porcupine.Ok {
			l.t.Errorf("document %d: the history of %d operations isn't that of one number: %s", d, len(history), linearizable(history))
		}
	}
}

// timeline is the history of a document whose end is known: of the additions of which nobody knew what became of them, those that were
// made are in it, from when they were sent until somebody first saw them.
func (l *load) timeline(d int) []porcupine.Operation {
	history := l.history[d]
	seen := map[string]int64{}
	for _, op := range history {
		for key := range op.Input.(counted).by {
			if first, ok := seen[key]; !ok || op.Return < first {
				seen[key] = op.Return
			}
		}
	}
	for _, a := range l.added[d] {
		if end, ok := seen[a.key]; ok && !a.told {
			history = append(history, porcupine.Operation{ClientId: len(history) + 1000, Input: counted{n: 1}, Call: a.call, Return: end})
		}
	}
	return history
}

// counted is an operation on a number that is only ever counted up: it reads n, and by whom it was counted, or adds to it.
type counted struct {
	read bool
	n    int64
	by   map[string]gjson.Result
}

// counter is what a single document is: a number, of which every client sees the newest value.
var counter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		n, op := state.(int64), input.(counted)
		if op.read {
			return n == op.n, n
		}
		return true, n + op.n
	},
}

// checkerPatience is how long the checker may take. That it takes longer is a failure.
const checkerPatience = 2 * time.Minute

func linearizable(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(counter, history, checkerPatience)
}

// faulty are rules under which a number is counted, with marks or without.
func faulty(marks bool) string {
	more := ""
	if marks {
		more = ", write_id: _writes"
	}
	return "rules:\n- {name: counted, match: {index: ['*']}, merge: {paths: {/n: sum}}" + more + "}\n"
}

// TestNothingIsLostOrCountedTwiceOnABrokenWire: clients that give up count a number while connections to the engine are reset, cut in the
// middle of requests and of answers, slow, and silent, and while optimist is killed.
func TestNothingIsLostOrCountedTwiceOnABrokenWire(t *testing.T) {
	targets := func(t *testing.T, test func(t *testing.T, e target)) { test(t, inMemory(t)) }
	clients, changes, kills := 4, 70, 2
	if long() {
		targets, changes, kills = eachTarget, 1000, 6
	}
	targets(t, func(t *testing.T, e target) {
		for _, marks := range []bool{true, false} {
			t.Run(map[bool]string{true: "with marks", false: "without marks"}[marks], func(t *testing.T) {
				w := newWire(t, e.url)
				p := optimist.Start(t, optimist.Options{Upstream: []string{w.URL}, Config: faulty(marks)})
				l := newLoad(t, e, func() string { return p.URL }, 4)
				all := clients * changes
				every := all / (4 * len(faults))
				var turn sync.Mutex
				l.each = func(n int) {
					turn.Lock()
					defer turn.Unlock()
					if n%every == 0 {
						w.next(n / every)
					}
					if n%(all/(kills+1)) == 0 && n < all {
						p.Kill()
						w.Toxics.ResetToxics(context.Background()) // it asks the engine whether it is there
						if err := p.Start(context.WithoutCancel(t.Context())); err != nil {
							t.Error(err)
						}
					}
				}
				l.run(clients, changes)
				w.next(0)
				p.Kill() // nothing is under way any more
				l.check()
				t.Logf("clients were told %v", l.told)
				if l.told["200"] == 0 {
					t.Error("nothing was acknowledged: nothing was tested")
				}
			})
		}
	})
}

// resender is a proxy as people write it: it reads, adds, writes under a guard, and does it again if that fails, also after a lost answer.
func resender(engine string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			a, err := do(r.Context(), http.MethodGet, engine+r.URL.Path, "", nil)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			w.WriteHeader(a.status)
			_, _ = w.Write([]byte(a.body))
			return
		}
		for range 10 {
			read, err := do(r.Context(), http.MethodGet, engine+r.URL.Path, "", nil)
			if err != nil {
				continue
			}
			sent, _ := sjson.Set(gjson.Get(read.body, "_source").Raw, "n", gjson.Get(read.body, "_source.n").Int()+1)
			a, err := do(r.Context(), http.MethodPut, fmt.Sprintf("%s%s?if_seq_no=%d&if_primary_term=%d", engine, r.URL.Path,
				gjson.Get(read.body, "_seq_no").Int(), gjson.Get(read.body, "_primary_term").Int()), sent, nil)
			if err == nil && a.status < 300 {
				w.WriteHeader(a.status)
				_, _ = w.Write([]byte(a.body))
				return
			}
		}
		w.WriteHeader(http.StatusGatewayTimeout)
	})
}

// TestTheHistoryShowsABlindResend: the answer to the second change is lost, after the engine has applied it. A proxy that sends it again
// counts it twice, and the history shows that; optimist finds its mark.
func TestTheHistoryShowsABlindResend(t *testing.T) {
	e := inMemory(t)
	for name, want := range map[string]porcupine.CheckResult{"resender": porcupine.Illegal, "optimist": porcupine.Ok} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, e.url)
			var base string
			if name == "resender" {
				s := httptest.NewServer(resender(g.URL))
				t.Cleanup(s.Close)
				base = s.URL
			} else {
				base = optimist.Start(t, optimist.Options{Upstream: []string{g.URL}, Config: faulty(true)}).URL
			}
			l := newLoad(t, e, func() string { return base }, 1)
			l.change(0, 0)
			g.hold(func(r *http.Request) bool { return r.Method == http.MethodPut }, true)
			g.release <- false
			l.change(0, 1)
			<-g.done
			l.change(0, 2)
			if l.told["200"] != 3 {
				t.Errorf("clients were told %v", l.told)
			}
			l.record(0, clientsMost, counted{read: true, n: gjson.Get(e.source(t, l.path(0)), "n").Int()}, l.now())
			if got := linearizable(l.timeline(0)); got != want {
				t.Errorf("the history is %s: %+v", got, l.timeline(0))
			}
			rest, marks := mark.Take([]byte(e.source(t, l.path(0))), "_writes")
			if n := gjson.GetBytes(rest, "n").Int(); (n == 3) != (want == porcupine.Ok) || want == porcupine.Ok && len(marks) != 3 {
				t.Errorf("stored %s, with %d marks", rest, len(marks))
			}
		})
	}
}
