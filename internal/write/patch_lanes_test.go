package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"optimist/internal/patch"
	"optimist/internal/upstream"
)

func TestPatchesThatWaitShareOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"n":0}`)
		w.warm("1")
		const clients = 32
		before := w.engine.writes()
		results := w.queued(clients, func(i int) result {
			c := w.client(fmt.Sprint("c", i))
			switch i % 3 {
			case 0:
				return c.patch(target1, "merge", fmt.Sprintf(`{"f%d":1}`, i))
			case 1:
				return c.patch(target1, "ops", fmt.Sprintf(`[{"op":"add","path":"/f%d","value":1}]`, i))
			}
			return c.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`)
		})
		for i, r := range results {
			if r.status != 200 || i > 0 && !strings.HasPrefix(r.outcome, "combined") {
				t.Errorf("patch %d: %v", i, r)
			}
		}
		if n := w.engine.writes() - before; n != 2 {
			t.Errorf("%d writes for %d patches", n, clients)
		}
		if got := gjson.Get(w.stored("1"), "n").Int(); got != 10 {
			t.Errorf("n is %d in %s", got, w.stored("1"))
		}
	})
}

func TestInASharedWriteEachPatchHasItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"n":0,"name":"x","done":true}`)
		w.warm("1")
		type patch struct{ kind, body string }
		patches := []patch{
			{"steps", `[{"op":"increment","path":"/n","value":1}]`},
			{"steps", `[{"op":"increment","path":"/n","value":1}]`},
			{"steps", `[{"op":"increment","path":"/name","value":1}]`},
			{"ops", `[{"op":"test","path":"/n","value":0}]`},
			{"merge", `{"done":true}`},
			{"steps", `[{"op":"increment","path":"/n","value":1}]`},
			{"ops", `[{"op":"test","path":"/n","value":3},{"op":"replace","path":"/name","value":"y"}]`},
		}
		results := w.queued(len(patches), func(i int) result {
			return w.client(fmt.Sprint("c", i)).patch(target1, patches[i].kind, patches[i].body)
		})
		for i, want := range []struct {
			status int
			result string
		}{{200, "updated"}, {200, "updated"}, {400, ""}, {409, ""}, {200, "noop"}, {200, "updated"}, {200, "updated"}} {
			if r := results[i]; r.status != want.status || gjson.Get(r.body, "result").Str != want.result {
				t.Errorf("patch %d: %v, want %v", i, r, want)
			}
		}
		same(t, w.stored("1"), `{"n":3,"name":"y","done":true}`)
	})
}

func TestPatchesShareOnlyWithTheirKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"n":0}`)
		w.warm("1")
		reader := w.client("c1")
		reader.read("1")
		results := w.queued(4, func(i int) result {
			switch i {
			case 1:
				return reader.save("1", `{"n":0,"whole":1}`)
			case 2:
				return w.client("c2").patch(target1+"?retry_on_conflict=5", "merge", `{"b":1}`)
			}
			return w.client(fmt.Sprint("c", i)).patch(target1, "merge", fmt.Sprintf(`{"a%d":1}`, i))
		})
		for i, r := range results {
			if r.status != 200 || strings.HasPrefix(r.outcome, "combined") {
				t.Errorf("write %d: %v", i, r)
			}
		}
		same(t, w.stored("1"), `{"n":0,"a0":1,"whole":1,"b":1,"a3":1}`)
	})
}

func TestALostPatchIsRepeatedOnlyWhereThatCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		kind, body string
		applied    bool   // the try without an answer
		between    string // what somebody else stores afterwards
		want       string
		unknown    bool
	}{
		"not applied, nobody wrote":               {"steps", `[{"op":"increment","path":"/n","value":1}]`, false, "", `{"n":2,"t":"a","l":[1]}`, false},
		"an increment that was applied":           {"steps", `[{"op":"increment","path":"/n","value":1}]`, true, "", `{"n":2,"t":"a","l":[1]}`, true},
		"an increment that may have been":         {"steps", `[{"op":"increment","path":"/n","value":1}]`, false, `{"n":1,"t":"b","l":[1]}`, `{"n":1,"t":"b","l":[1]}`, true},
		"a value that was set":                    {"merge", `{"t":"z"}`, true, "", `{"n":1,"t":"z","l":[1]}`, true},
		"a value that was not, elsewhere changed": {"merge", `{"t":"z"}`, false, `{"n":5,"t":"a","l":[1]}`, `{"n":5,"t":"z","l":[1]}`, false},
		"a value that somebody else set":          {"ops", `[{"op":"add","path":"/t","value":"z"}]`, false, `{"n":1,"t":"y","l":[1]}`, `{"n":1,"t":"y","l":[1]}`, true},
		"an element that may have been added":     {"ops", `[{"op":"add","path":"/l/0","value":0}]`, false, `{"n":5,"t":"a","l":[1]}`, `{"n":5,"t":"a","l":[1]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"n":1,"t":"a","l":[1]}`)
			once := false
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != "PUT" || once {
					return nil, nil
				}
				once = true
				if c.applied {
					w.engine.handle(r)
				}
				if c.between != "" {
					w.put("1", c.between)
				}
				return nil, lostError
			}
			r := w.client("c").patch(target1, c.kind, c.body)
			if errors.Is(r.err, ErrUnknownOutcome) != c.unknown || !c.unknown && r.status != 200 || c.unknown && !strings.HasPrefix(r.outcome, "unknown") {
				t.Errorf("got %v", r)
			}
			same(t, w.stored("1"), c.want)
		})
	}
}

func TestALostCreateIsNotMadeAgain(t *testing.T) {
	for _, how := range []string{"save", "patch"} {
		w := newWorld(t, "")
		w.put("0", `{}`)
		c := w.client("c")
		c.read("1")
		lost := false
		w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
			if r.Method == "PUT" && !lost {
				lost = true
				w.direct("DELETE", target1, "")
				return lostError
			}
			return nil
		}
		var r result
		if how == "save" {
			r = c.save("1", `{"a":1}`)
		} else {
			r = c.patch(target1+"?upsert", "merge", `{"a":1}`)
		}
		if !errors.Is(r.err, ErrUnknownOutcome) || w.stored("1") != "" {
			t.Errorf("%s: %v, stored %s", how, r, w.stored("1"))
		}
	}
}

func TestAPatchWhoseClientLeftIsNotSent(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	w.warm("1")
	ctx, leave := context.WithCancel(t.Context())
	before := w.engine.writes()
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "GET" {
			leave()
		}
		return nil, nil
	}
	if r := w.client("c").sendContext(ctx, "PATCH", target1, `{"a":2}`, media(patch.MediaMerge)); r.err == nil || w.engine.writes() != before {
		t.Errorf("got %v after %d writes", r, w.engine.writes()-before)
	}
}

func TestEveryIncrementCounts(t *testing.T) {
	w := newWorld(t, "")
	other := *w
	other.s = New(Options{Upstream: w.engine, Engine: w.s.engine, Sessions: w.store})
	w.put("1", `{"n":0}`)
	const clients, rounds = 16, 25
	var wg sync.WaitGroup
	for i := range clients {
		c := []*world{w, &other}[i%2].client(fmt.Sprint("c", i))
		wg.Go(func() {
			for range rounds {
				if r := c.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`); r.status != 200 {
					t.Errorf("got %v", r)
				}
			}
		})
	}
	wg.Wait()
	same(t, w.stored("1"), fmt.Sprintf(`{"n":%d}`, clients*rounds))
}
