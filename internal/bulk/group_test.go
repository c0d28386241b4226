package bulk

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outbound"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// engine answers bulks as it is told to.
type engine struct {
	mu     sync.Mutex
	bulks  []string // the ids of each bulk's items
	mgets  []int    // the documents of each _mget
	answer func(n int, ids []string) (status int, body string, err error)
}

func (e *engine) Do(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
	var ids []string
	for i, line := range strings.Split(strings.TrimSuffix(string(r.Body), "\n"), "\n") {
		if i%2 == 0 {
			ids = append(ids, gjson.Get(line, "index._id").Str)
		}
	}
	e.mu.Lock()
	e.bulks = append(e.bulks, strings.Join(ids, " "))
	n := len(e.bulks)
	e.mu.Unlock()
	status, body, err := e.answer(n, ids)
	if err != nil {
		return nil, err
	}
	return &upstream.Response{Head: wire.Head{Status: status}, Payload: []byte(body)}, nil
}

func (e *engine) Fetch(context.Context, es.Caller, es.Document) (doc.Revision, error) {
	return doc.Revision{}, doc.ErrMissing
}

func (e *engine) FetchAll(_ context.Context, _ es.Caller, ds []es.Document) ([]es.Fetched, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mgets = append(e.mgets, len(ds))
	all := make([]es.Fetched, len(ds))
	for i := range ds {
		all[i].Version = int64(len(ds[i].ID))
	}
	return all, nil
}

// written is an answer that says of each item what status gives for it.
func written(ids []string, status func(id string) int) string {
	var b strings.Builder
	b.WriteString(`{"took":1,"errors":false,"items":[`)
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		failure := ""
		if id == "blocked" {
			failure = `,"error":{"type":"cluster_block_exception"}`
		}
		fmt.Fprintf(&b, `{"index":{"_id":%q,"status":%d%s}}`, id, status(id), failure)
	}
	return b.String() + "]}"
}

func created(string) int { return 201 }

func group(t *testing.T, e *engine) *Group {
	return &Group{Upstream: e, Documents: e, Target: []byte("/_bulk"), Context: t.Context(),
		Retry: retry.Policy{MaxAttempts: 3, MaxElapsed: time.Minute, BaseInterval: time.Millisecond, MaxInterval: time.Millisecond}}
}

func itemOf(id string) *Item {
	items, _ := readAll(fmt.Sprintf("{\"index\":{\"_id\":%q}}\n{}\n", id), Defaults{Index: "shop"})
	return &items[0]
}

func wayOf(g *Group, id string) *Way {
	w := &Way{}
	w.Open(g, itemOf(id), nil)
	return w
}

func put(t *testing.T, g *Group, id string) (*upstream.Response, error) {
	return wayOf(g, id).Do(t.Context(), &upstream.Request{Method: "PUT", Target: []byte("/shop/_doc/" + id), Body: []byte("{}")})
}

func TestItemsThatAreWrittenAtTheSameTimeShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{answer: func(_ int, ids []string) (int, string, error) {
			return 200, written(ids, func(id string) int { return 200 + len(id) }), nil
		}}
		g := group(t, e)
		defer g.Close()
		g.Begin(3)
		passed := g.Add(itemOf("four"))
		var wg sync.WaitGroup
		for _, id := range []string{"a", "bb", "ccc"} {
			wg.Go(func() {
				defer g.End()
				res, err := put(t, g, id)
				if err != nil || res.Status != 200+len(id) || string(res.Payload) != fmt.Sprintf(`{"_id":%q}`, id) {
					t.Errorf("%s: %+v, %v", id, res, err)
				}
				if rev, err := wayOf(g, id).Fetch(t.Context(), es.Caller{}, es.Document{Ref: doc.Ref{ID: id}}); err != nil || rev.Version != int64(len(id)) {
					t.Errorf("%s: %+v, %v", id, rev, err)
				}
			})
		}
		wg.Wait()
		if res, err := passed(); err != nil || res.Status != 204 {
			t.Errorf("%+v, %v", res, err)
		}
		if len(e.bulks) != 1 || len(e.mgets) != 1 {
			t.Errorf("%q, %v", e.bulks, e.mgets)
		}
	})
}

// An item may wait for a write of somebody else, which may wait for an item that this one would go with.
func TestItemsDontWaitForOneThatWaitsForSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{answer: func(_ int, ids []string) (int, string, error) { return 200, written(ids, created), nil }}
		g := group(t, e)
		defer g.Close()
		g.Begin(2)
		free := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer g.End()
			<-free
		})
		wg.Go(func() {
			defer g.End()
			if _, err := put(t, g, "a"); err != nil {
				t.Error(err)
			}
			close(free)
		})
		wg.Wait()
	})
}

// Items that meet wait for those that are at work, and then all of them go on, whatever the others do: send something, or end.
func TestItemsThatMeetGoOnTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{answer: func(_ int, ids []string) (int, string, error) { return 200, written(ids, created), nil }}
		g := group(t, e)
		defer g.Close()
		g.Begin(4)
		var wg sync.WaitGroup
		met := make(chan time.Time, 2)
		for range 2 {
			wg.Go(func() {
				defer g.End()
				g.Meet()
				met <- time.Now()
			})
		}
		synctest.Wait()
		wg.Go(func() {
			defer g.End()
			if _, err := put(t, g, "a"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if len(met) != 0 {
			t.Error("they went on while an item was at work")
		}
		began := time.Now()
		g.End() // of the fourth, which has nothing to do
		wg.Wait()
		for range 2 {
			if at := <-met; at != began {
				t.Errorf("they went on %s later", at.Sub(began))
			}
		}
		if len(e.bulks) != 1 {
			t.Errorf("%q", e.bulks)
		}
	})
}

func TestOnlyItemsThatAreRejectedGoAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{answer: func(n int, ids []string) (int, string, error) {
			return 200, written(ids, func(id string) int {
				if id == "no" || id == "blocked" || id == "later" && n == 1 {
					return 429
				}
				return 201
			}), nil
		}}
		g := group(t, e)
		defer g.Close()
		g.Begin(4)
		want := map[string]int{"a": 201, "later": 201, "no": 429, "blocked": 429}
		var wg sync.WaitGroup
		for id, status := range want {
			wg.Go(func() {
				defer g.End()
				if res, err := put(t, g, id); err != nil || res.Status != status {
					t.Errorf("%s: %+v, %v", id, res, err)
				}
			})
		}
		wg.Wait()
		if len(e.bulks) != 3 || e.bulks[2] != "no" {
			t.Errorf("%q", e.bulks)
		}
	})
}

func TestARejectedItemGoesAgainOnlyIfNoLaterOneOfItsDocumentHasGoneThrough(t *testing.T) {
	for answers, want := range map[string]struct {
		statuses []int  // of the items a, b, a, b, c
		again    string // the items of the second request
	}{
		"429 429 201 201 429": {[]int{429, 429, 201, 201, 201}, "c"},
		"429 201 201 429 201": {[]int{429, 201, 201, 201, 201}, "b"},
		"429 429 429 429 201": {[]int{201, 201, 201, 201, 201}, "a b a b"},
		"201 201 429 429 429": {[]int{201, 201, 201, 201, 201}, "a b c"},
		"429 429 429 201 429": {[]int{201, 429, 201, 201, 201}, "a a c"},
	} {
		t.Run(answers, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := strings.Fields(answers)
				e := &engine{answer: func(n int, ids []string) (int, string, error) {
					return 200, written(ids, func(string) (status int) {
						if status = 201; n == 1 {
							status, _ = strconv.Atoi(first[0])
							first = first[1:]
						}
						return status
					}), nil
				}}
				g := group(t, e)
				defer g.Close()
				var waits []func() (Result, error)
				for _, id := range []string{"a", "b", "a", "b", "c"} {
					waits = append(waits, g.Add(itemOf(id)))
				}
				for k, wait := range waits {
					if res, err := wait(); err != nil || res.Status != want.statuses[k] {
						t.Errorf("item %d: %d, %v, want %d", k, res.Status, err, want.statuses[k])
					}
				}
				if len(e.bulks) != 2 || e.bulks[1] != want.again {
					t.Errorf("%q, want %q again", e.bulks, want.again)
				}
			})
		})
	}
}

func TestEachItemIsToldWhatBecameOfTheWhole(t *testing.T) {
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		status int
		body   string
		err    error
		want   error
	}{
		"no answer":     {0, "", lost, lost},
		"a refusal":     {401, `{"error":{"type":"security_exception"},"status":401}`, nil, nil},
		"too few items": {200, `{"items":[{"index":{"_id":"a","status":201}}]}`, nil, errShort},
		"no items":      {200, `{"items":7}`, nil, errShort},
		"too many items": {200, `{"items":[{"index":{"_id":"a","status":201}},{"index":{"_id":"b","status":201}},{"index":{"_id":"b","status":201}}]}`,
			nil, errShort},
		"more than items":   {200, `{"items":[{"index":{"_id":"a","status":201}},{"index":{"_id":"b","status":201}},7]}`, nil, errShort},
		"a list cut off":    {200, `{"items":[{"index":{"_id":"a","status":201}},{"index":{"_id":"b","status":201}}`, nil, errShort},
		"an answer cut off": {200, `{"items":[{"index":{"_id":"a","status":201}},{"ind`, nil, errShort},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &engine{answer: func(int, []string) (int, string, error) { return c.status, c.body, c.err }}
				g := group(t, e)
				defer g.Close()
				g.Begin(2)
				var wg sync.WaitGroup
				var mu sync.Mutex
				told := 0
				for _, id := range []string{"a", "b"} {
					wg.Go(func() {
						defer g.End()
						res, err := put(t, g, id)
						if errors.Is(err, c.want) && (err != nil || res.Status == c.status && res.OfAll) {
							mu.Lock()
							told++
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				if told == 0 || told == 1 && c.want != errShort {
					t.Errorf("%d items know of it", told)
				}
			})
		})
	}
}

// OpenSearch mixes the results up if an ingest pipeline refuses or drops some items. A pipeline may also give documents other ids, and the
// same one to several.
func TestResultsAreThoseOfTheDocumentsThatTheyName(t *testing.T) {
	for answered, want := range map[string]string{ // the answers to five documents, and, behind a bar, to one that has an id and one that hasn't
		"a b c d e":       "0 1 2 3 4",
		"c b e a d":       "3 1 0 4 2",
		"a b - c d":       "0 1 3 4 2", // of an update whose upsert is refused
		"- - a b c":       "",          // whose is which?
		"a x c d x":       "0 1 2 3 4",
		"b b c d e":       "0 1 2 3 4",
		"e b c d e":       "0 1 2 3 4",
		"d b c e e":       "3 1 2 0 4",
		"\\u0061 b c d e": "0 1 2 3 4",
		"| - a":           "1 0",
		"| a new":         "0 1",
		"| - new":         "0 1", // an update whose upsert is refused, in its place
	} {
		ids := []string{"a", "b", "c", "d", "e"}
		answers, short := strings.CutPrefix(answered, "| ")
		if short {
			ids = []string{"a", ""}
		}
		synctest.Test(t, func(t *testing.T) {
			e := &engine{answer: func(int, []string) (int, string, error) {
				body := `{"items":[`
				for k, id := range strings.Fields(answers) {
					body += fmt.Sprintf(`{"index":{"_id":"%s","status":%d}},`, id, 200+k)
				}
				return 200, strings.ReplaceAll(strings.TrimSuffix(body, ",")+"]}", `"-"`, "null"), nil
			}}
			g := group(t, e)
			defer g.Close()
			var waits []func() (Result, error)
			for _, id := range ids {
				it := itemOf("x")
				it.ID = id
				waits = append(waits, g.Add(it))
			}
			var got []string
			for _, wait := range waits {
				if res, err := wait(); err == nil {
					got = append(got, fmt.Sprint(res.Status-200))
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s, want %s", answered, got, want)
			}
		})
	}
}

// What a pipeline refuses or drops is named as its item named it, in any place. All else is in its place, by the name of its index.
func TestResultsOfTheSameIDAreThoseOfTheIndicesThatTheyName(t *testing.T) {
	for _, c := range []struct{ documents, answered, want string }{
		{"shop/1 orders/1", "shop/1 orders/1", "0 1"},
		{"shop/1 orders/1", "orders/1 shop/1", "1 0"},
		{"shop/1 orders/1 shop/2", "orders/1 shop/2 shop/1", "2 0 1"},
		{"shop/1 orders/1", "shop-1/1 orders-1/1", "0 1"},                                 // two aliases
		{"shop/1 orders/1 sales/1", "shop-1/1 sales/1 orders/1", "0 2 1"},                 // one was written
		{"shop/1 shop-1/1", "shop-1/1 shop-1/1", "0 1"},                                   // an alias and its index
		{"shop/1 shop-1/1 orders/2", "shop-1/1 orders/2 shop-1/1", ""},                    // which of the two was refused?
		{"shop/1 shop/2", "shop-1/2 shop-1/1", "1 0"},                                     // of one name, the index says nothing
		{"shop/1 shop/1 orders/1", "shop/1 orders/1 shop/1", "0 2 1"},                     // twice the same document
		{"shop/1 orders/1 shop/- orders/2", "orders/1 shop/1 shop/- orders/2", "1 0 2 3"}, // one has no id
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &engine{answer: func(int, []string) (int, string, error) {
				var items []string
				for k, answered := range strings.Fields(c.answered) {
					index, id, _ := strings.Cut(answered, "/")
					items = append(items, fmt.Sprintf(`{"index":{"_index":%q,"_id":%q,"status":%d}}`, index, id, 200+k))
				}
				return 200, `{"items":[` + strings.Join(items, ",") + "]}", nil
			}}
			g := group(t, e)
			defer g.Close()
			var waits []func() (Result, error)
			for _, d := range strings.Fields(c.documents) {
				it := itemOf("x")
				it.Index, it.ID, _ = strings.Cut(d, "/")
				it.ID = strings.TrimPrefix(it.ID, "-")
				waits = append(waits, g.Add(it))
			}
			var got []string
			for _, wait := range waits {
				if res, err := wait(); err == nil {
					got = append(got, fmt.Sprint(res.Status-200))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s, answered with %s: %s, want %s", c.documents, c.answered, got, c.want)
			}
		})
	}
}

func TestWhatABulkCantSayGoesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var targets []string
		up := doer(func(r *upstream.Request) (*upstream.Response, error) {
			targets = append(targets, string(r.Target))
			return &upstream.Response{Head: wire.Head{Status: 201}}, nil
		})
		g := &Group{Upstream: up, Params: []byte("tenant=a"), Context: t.Context()}
		defer g.Close()
		g.Begin(1)
		defer g.End()
		r := &upstream.Request{Method: "PUT", Target: []byte("/shop/_doc/1?if_seq_no=1&if_primary_term=1"), Body: []byte("{\n}")}
		if _, err := wayOf(g, "1").Do(t.Context(), r); err != nil || len(targets) != 1 || targets[0] != "/shop/_doc/1?if_seq_no=1&if_primary_term=1&tenant=a" {
			t.Errorf("%q, %v", targets, err)
		}
	})
}

type doer func(r *upstream.Request) (*upstream.Response, error)

func (f doer) Do(_ context.Context, r *upstream.Request) (*upstream.Response, error) { return f(r) }

// A panic in a goroutine of the group would end the process, with all that others have under way.
func TestAPanicIsTheCallers(t *testing.T) {
	e := &engine{answer: func(int, []string) (int, string, error) { panic("broken") }}
	g := &Group{Upstream: e, Documents: e, Context: t.Context()}
	defer g.Close()
	g.Begin(1)
	_, err := g.Pass(&Item{Text: []byte("{\"index\":{\"_id\":\"1\"}}\n{}\n")})
	if !errors.Is(err, upstream.Lost) || g.Panic() == nil || !strings.Contains(g.Panic().Error(), "broken") {
		t.Errorf("%v; %v", err, g.Panic())
	}
	g.End()
}

type resumer func()

func (f resumer) Resume() { f() }

// An item whose write has ended may send another by the same Way. A panic in a later round of the first request is none of its business.
func TestAPanicSparesItemsThatHaveGoneOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{answer: func(n int, ids []string) (int, string, error) {
			if n == 2 {
				time.Sleep(idle / 2) // the other item has parked its next write by now, which goes later
				panic("broken")
			}
			return 200, written(ids, func(id string) int { return map[string]int{"busy": 429, "conflict": 409}[id] }), nil
		}}
		g := group(t, e)
		defer g.Close()
		g.Begin(3)
		again := func(w *Way, id string) bool {
			var op api.Op
			api.Parse([]byte("PUT"), []byte("/shop/_doc/"+id), &op)
			return w.Park(&outbound.Template{Op: &op, Query: op.Query}, []byte("{}"), doc.Numbers{}, false)
		}
		var busyErr error
		busy, conflict := wayOf(g, "busy"), wayOf(g, "conflict")
		if !again(busy, "busy") || !again(conflict, "conflict") {
			t.Fatal("no item of a bulk")
		}
		conflicts := 0
		var resume resumer
		resume = func() {
			if conflicts++; conflicts == 1 && again(conflict, "conflict") { // it is parked while the other goes again
				conflict.Launch(resume)
			}
		}
		conflict.Launch(resume)
		busy.Launch(resumer(func() { _, _, busyErr = busy.Received() }))
		time.Sleep(time.Hour) // the first request goes after a while, although the third item is at work
		synctest.Wait()
		g.End()
		if res, _, err := conflict.Received(); err != nil || res.Status != 409 || conflicts != 2 {
			t.Errorf("%v, %v after %d results: the panic was another request's", res, err, conflicts)
		}
		if !errors.Is(busyErr, upstream.Lost) {
			t.Error(busyErr)
		}
	})
}

// A request of its own may share the write of an item: its client needs the engine's fields.
func TestTheAnswerToAnItemHasTheEnginesFields(t *testing.T) {
	g := group(t, nil)
	g.Upstream = doer(func(*upstream.Request) (*upstream.Response, error) {
		field := wire.Field{Name: []byte("X-Elastic-Product"), Value: []byte("Elasticsearch")}
		return &upstream.Response{Head: wire.Head{Status: 200, Fields: []wire.Field{field}}, Payload: []byte(written([]string{"1"}, created))}, nil
	})
	g.Begin(1)
	res, err := put(t, g, "1")
	if g.End(); err != nil || string(res.Head.Get("x-elastic-product")) != "Elasticsearch" {
		t.Errorf("%+v %v", res, err)
	}
}

// What the client gets is composed anew. So its header says nothing of an answer that was thrown away, nor of how an answer was coded.
func TestTheHeadIsThatOfAnAnswerThatWasRead(t *testing.T) {
	field := func(name, value string) wire.Field { return wire.Field{Name: []byte(name), Value: []byte(value)} }
	zip := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return b.Bytes()
	}
	page := func(status int) *upstream.Response {
		return &upstream.Response{Head: wire.Head{Status: status, Fields: []wire.Field{field("Content-Type", "text/html")}}, Payload: []byte("<html>")}
	}
	coded := func(status int, text []byte) *upstream.Response {
		fields := []wire.Field{field("Content-Type", "application/json"), field("Content-Encoding", "gzip"), field("Content-Length", "1")}
		return &upstream.Response{Head: wire.Head{Status: status, Fields: fields}, Payload: text}
	}
	answers := []*upstream.Response{page(200), coded(200, []byte("no gzip")), coded(200, zip(written([]string{"1"}, created)))}
	g := group(t, nil)
	g.Upstream = doer(func(*upstream.Request) (*upstream.Response, error) {
		res := answers[0]
		answers = answers[1:]
		return res, nil
	})
	for range 2 {
		g.Begin(1)
		_, err := put(t, g, "1")
		if g.End(); !errors.Is(err, upstream.Lost) || g.Head() != nil {
			t.Errorf("%v, and the head is %s", err, g.Head())
		}
	}
	g.Begin(1)
	res, err := put(t, g, "1")
	if g.End(); err != nil || res.Status != 201 {
		t.Fatalf("%+v %v", res, err)
	}
	head := wire.Head{Fields: g.Head()}
	if string(head.Get("content-type")) != "application/json" || head.Get("content-encoding") != nil || head.Get("content-length") != nil {
		t.Errorf("the head is %s", head.Fields)
	}

	refused := group(t, nil)
	refused.Upstream = doer(func(*upstream.Request) (*upstream.Response, error) { return coded(400, zip(`{"status":400}`)), nil })
	refused.Begin(1)
	_, _ = put(t, refused, "1")
	refused.End()
	if r := refused.Refusal(); string(r.Body) != `{"status":400}` || wire.Value(r.Fields, "content-encoding") != nil {
		t.Errorf("%+v", r)
	}
}

// Whoever asks for the answer to an item needn't read it again. What an earlier try was told isn't that answer.
func TestWhatAnAnswerSaysIsReadOnce(t *testing.T) {
	for _, whole := range []int{0, 403} {
		e := &engine{answer: func(n int, ids []string) (int, string, error) {
			switch {
			case n == 1:
				return 200, written(ids, func(string) int { return 429 }), nil
			case whole != 0:
				return whole, `{"error":"no"}`, nil
			}
			return 200, `{"items":[{"index":{"_index":"shop","_id":"1","status":201,"_seq_no":7,"_primary_term":1} }]}`, nil
		}}
		g := group(t, e)
		g.Begin(1)
		w := wayOf(g, "1")
		_, _ = w.Do(t.Context(), &upstream.Request{Method: "PUT", Target: []byte("/shop/_doc/1"), Body: []byte("{}")})
		res, said, err := w.Received()
		g.End()
		g.Close()
		switch {
		case err != nil:
			t.Error(err)
		case whole != 0 && (said != nil || res.Status != whole):
			t.Errorf("%d says %+v, of an earlier try", res.Status, said)
		case whole != 0:
		case said == nil, said.Numbers != es.ParseItem(res.Payload).Numbers, string(res.Payload) != `{"_index":"shop","_id":"1","_seq_no":7,"_primary_term":1}`:
			t.Errorf("%s says %+v", res.Payload, said)
		}
	}
}
