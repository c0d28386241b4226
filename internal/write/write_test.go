package write

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/etag"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func docRef(id string) doc.Ref { return doc.Ref{Index: "shop", ID: id} }

const sumRule = "rules:\n- name: shop\n  match: {index: [shop]}\n  merge: {paths: {/n: sum, /status: fail}}\n"

func TestStaleBaseIsReplayedNotOverwritten(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"b":1}`)
	anna, bert := w.client("anna"), w.client("bert")
	anna.read("1")
	bert.read("1")
	has(t, anna.save("1", `{"a":2,"b":1}`), 200, "guarded;attempts=1;base=session")
	has(t, bert.save("1", `{"a":1,"b":2}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"a":2,"b":2}`)
}

func TestFirstTryIsOneWriteWithTheClientsOwnBytes(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	c := w.client("c")
	c.read("1")
	body := "{ \"a\" : 1.50 ,\n\"z\":\"\\u00e9\" }"
	has(t, c.send("PUT", "/shop/_doc/1?refresh=true", body), 200, "guarded")
	if got := w.stored("1"); got != body {
		t.Errorf("stored %q, sent %q", got, body)
	}
	if want := []string{"PUT /shop/_doc/1?refresh=true&if_seq_no=0&if_primary_term=1"}; !slices.Equal(w.engine.sent, want) {
		t.Errorf("sent %q, want %q", w.engine.sent, want)
	}
}

func TestBothDeltasCount(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":10}`)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"n":9}`), 200, "guarded")
	has(t, b.save("1", `{"n":7}`), 200, "merged")
	same(t, w.stored("1"), `{"n":6}`)
}

func TestAPathThatMustNotBeMergedIsRefusedAndNamed(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"status":"new"}`)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"status":"paid"}`), 200, "guarded")
	r := b.save("1", `{"status":"cancelled"}`)
	has(t, r, 409, "guarded")
	if gjson.Get(r.body, "error.type").String() != "version_conflict_engine_exception" || !strings.Contains(r.body, "/status") {
		t.Errorf("the refusal doesn't name the path: %s", r.body)
	}
	same(t, w.stored("1"), `{"status":"paid"}`)
	// The read was given back: after the refusal the client still has its base.
	has(t, b.save("1", `{"status":"new","x":1}`), 200, "merged")
	same(t, w.stored("1"), `{"status":"paid","x":1}`)
}

func TestAnOverwrittenValueIsNamed(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"t":"old"}`)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	a.save("1", `{"t":"a"}`)
	r := b.save("1", `{"t":"b"}`)
	has(t, r, 200, "merged")
	if !strings.Contains(r.outcome, `overwrote="/t"`) {
		t.Errorf("outcome %q", r.outcome)
	}
}

func TestAClientThatWritesAgainFromMemoryRevertsNothing(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"mine":0,"other":0}`)
	me, other := w.client("me"), w.client("other")
	me.read("1")
	for i := 1; i <= 3; i++ {
		other.read("1")
		has(t, other.save("1", fmt.Sprintf(`{"mine":%d,"other":%d}`, i-1, i)), 200, "")
		r := me.save("1", fmt.Sprintf(`{"mine":%d,"other":0}`, i))
		has(t, r, 200, "merged")
		same(t, w.stored("1"), fmt.Sprintf(`{"mine":%d,"other":%d}`, i, i))
	}
}

func TestNumbersOfAMergedAnswerConflictAsAGuard(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"mine":0,"other":0}`)
	me, other := w.client("me"), w.client("other")
	me.read("1")
	other.read("1")
	other.save("1", `{"mine":0,"other":1}`)
	r := me.save("1", `{"mine":1,"other":0}`)
	has(t, r, 200, "merged")
	seq, term := gjson.Get(r.body, "_seq_no").Int(), gjson.Get(r.body, "_primary_term").Int()
	if seq != 0 || r.etag != fmt.Sprintf(`"%d-%d"`, seq, term) {
		t.Errorf("told %d %s: those of the base were expected", seq, r.etag)
	}
	again := me.send("PUT", fmt.Sprintf("/shop/_doc/1?if_seq_no=%d&if_primary_term=%d", seq, term), `{"mine":2,"other":0}`)
	has(t, again, 409, "guarded")
	same(t, w.stored("1"), `{"mine":1,"other":1}`)
}

func TestTwoClientsThatSawNothingBothCount(t *testing.T) {
	w := newWorld(t, sumRule)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"n":1,"l":["a"],"o":{"x":1}}`), 201, "guarded;attempts=1;base=absent")
	has(t, b.save("1", `{"n":2,"l":["b"],"o":{"y":1}}`), 200, "merged;attempts=2;base=absent")
	same(t, w.stored("1"), `{"n":3,"l":["a","b"],"o":{"x":1,"y":1}}`)
}

func TestARepeatedWriteCountsOnce(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	c, other := w.client("c"), w.client("other")
	c.read("1")
	has(t, c.save("1", `{"n":2}`), 200, "guarded")
	other.read("1")
	other.save("1", `{"n":5}`)
	has(t, c.save("1", `{"n":2}`), 200, "merged")
	same(t, w.stored("1"), `{"n":5}`)
}

func TestAMergeThatChangesNothingIsTheEnginesNoop(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"t":1}`)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	a.save("1", `{"t":2}`)
	writes := w.engine.writes()
	r := b.save("1", `{"t":2}`)
	has(t, r, 200, "merged")
	if gjson.Get(r.body, "result").String() != "noop" || w.engine.writes() != writes+1 {
		t.Errorf("%v after %d writes", r, w.engine.writes()-writes)
	}
}

func TestADocumentDeletedSinceIsNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		rules  string
		status int
		stored string
	}{
		"by default": {"", 409, ""},
		"recreate":   {"rules:\n- {name: r, match: {index: [shop]}, on_missing: recreate}\n", 201, `{"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"a":1}`)
			me := w.client("me")
			me.read("1")
			w.direct("DELETE", "/shop/_doc/1", "")
			has(t, me.save("1", `{"a":2}`), c.status, "")
			if got := w.stored("1"); got != c.stored {
				t.Errorf("stored %q, want %q", got, c.stored)
			}
		})
	}
}

func TestADeleteIsGuarded(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"a":2}`)
	r := me.send("DELETE", "/shop/_doc/1", "")
	has(t, r, 200, "merged;attempts=2")
	if !strings.Contains(r.outcome, `overwrote="/"`) || w.stored("1") != "" {
		t.Errorf("%v, stored %q", r, w.stored("1"))
	}

	w = newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, on_delete_conflict: fail}\n")
	w.put("1", `{"a":1}`)
	me = w.client("me")
	me.read("1")
	w.put("1", `{"a":2}`)
	has(t, me.send("DELETE", "/shop/_doc/1", ""), 409, "guarded")
	same(t, w.stored("1"), `{"a":2}`)
}

func TestIfMatchNamesTheBase(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"b":1}`)
	me := w.client("me")
	me.read("1")
	match := wire.Field{Name: []byte("If-Match"), Value: []byte(`"0-1"`)}
	w.put("1", `{"a":1,"b":2}`)
	has(t, me.send("PUT", "/shop/_doc/1", `{"a":2,"b":1}`, match), 200, "merged;attempts=2;base=if_match")
	same(t, w.stored("1"), `{"a":2,"b":2}`)
	// Of numbers that this proxy hasn't served there is no body: guarded, and the conflict is the answer.
	stranger := w.client("stranger")
	has(t, stranger.send("PUT", "/shop/_doc/1", `{"a":3}`, wire.Field{Name: []byte("If-Match"), Value: []byte(`"1-1"`)}), 409, "guarded")
	if r := me.send("PUT", "/shop/_doc/1", `{}`, wire.Field{Name: []byte("If-Match"), Value: []byte(`*x`)}); !errors.Is(r.err, etag.ErrBad) {
		t.Errorf("got %v", r)
	}
}

func TestALostAnswerIsJudgedByWhatTheDocumentShows(t *testing.T) {
	for name, c := range map[string]struct {
		applied bool   // the write that got no answer was applied
		rules   string // ""
		sent    string
		between string // what somebody else stores afterwards
		want    string // in the engine; "" with an error
		unknown bool
	}{
		"not applied, nobody wrote: the same guard is sent again": {sent: `{"n":2,"t":"a"}`, want: `{"n":2,"t":"a"}`},
		"applied: an equal body proves nothing":                   {applied: true, sent: `{"n":1,"t":"b"}`, want: `{"n":1,"t":"b"}`, unknown: true},
		"not applied, another path changed: a set is replayed":    {sent: `{"n":1,"t":"b"}`, between: `{"n":5,"t":"a"}`, want: `{"n":5,"t":"b"}`},
		"not applied, the path changed: unknown":                  {sent: `{"n":1,"t":"b"}`, between: `{"n":1,"t":"c"}`, want: `{"n":1,"t":"c"}`, unknown: true},
		"a sum is never replayed":                                 {rules: sumRule, sent: `{"n":2,"t":"a"}`, between: `{"n":1,"t":"c"}`, want: `{"n":1,"t":"c"}`, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"n":1,"t":"a"}`)
			me := w.client("me")
			me.read("1")
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
			r := me.save("1", c.sent)
			if errors.Is(r.err, ErrUnknownOutcome) != c.unknown || !c.unknown && r.status != 200 {
				t.Errorf("got %v", r)
			}
			if c.unknown && !strings.HasPrefix(r.outcome, "unknown") {
				t.Errorf("outcome %q", r.outcome)
			}
			same(t, w.stored("1"), c.want)
		})
	}
}

func TestAConflictAfterALostAnswerProvesNothing(t *testing.T) {
	// The first try is applied late: after its answer was lost, and after the look at the document.
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	var late *upstream.Request
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" && late == nil {
			late = &upstream.Request{Method: r.Method, Target: slices.Clone(r.Target), Body: slices.Clone(r.Body)}
			return nil, lostError
		}
		if r.Method == "PUT" {
			w.engine.handle(late)
		}
		return nil, nil
	}
	r := me.save("1", `{"n":2}`)
	if !errors.Is(r.err, ErrUnknownOutcome) {
		t.Errorf("got %v", r)
	}
	same(t, w.stored("1"), `{"n":2}`)
}

func TestNothingIsSentAgainThatNeverReachedTheEngine(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	down := &upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" {
			return nil, down
		}
		return nil, nil
	}
	if r := me.save("1", `{"a":2}`); !errors.Is(r.err, upstream.NotSent) || r.outcome != "not_sent;attempts=0;base=session" {
		t.Errorf("got %v", r)
	}
	w.engine.before = nil
	has(t, me.save("1", `{"a":2}`), 200, "guarded") // the read was given back
}

func TestAFilteredViewIsGuardedButNeverMerged(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"secret":1}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"a":1,"secret":2}`)
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if !strings.Contains(string(r.Target), "optimist-probe") {
			return nil, nil
		}
		res := &upstream.Response{Payload: []byte(`{"error":{"type":"security_exception"},"status":403}`)}
		res.Status = 403
		return res, nil
	}
	r := me.save("1", `{"a":2,"secret":1}`)
	has(t, r, 409, "guarded")
	if !strings.Contains(r.outcome, "reason=filtered") {
		t.Errorf("outcome %q", r.outcome)
	}
	same(t, w.stored("1"), `{"a":1,"secret":2}`)
}

func TestAnIndexWithFilteredSourceIsGuardedButNeverMerged(t *testing.T) {
	w := newWorld(t, "")
	if status, body := w.direct("PUT", "/shop", `{"mappings":{"_source":{"excludes":["x"]}}}`); status != 200 {
		t.Fatal(body)
	}
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"a":2}`)
	r := me.save("1", `{"a":1,"b":1}`)
	has(t, r, 409, "guarded")
	if !strings.Contains(r.outcome, "reason=source") {
		t.Errorf("outcome %q", r.outcome)
	}
}

func TestChangesThatWaitShareOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":0}`)
		// A first conflict, so that it is known that documents can be merged.
		warm := w.client("warm")
		warm.read("1")
		w.put("1", `{"n":0,"x":1}`)
		has(t, warm.save("1", `{"n":1}`), 200, "merged")

		const clients = 32
		hold, held := w.holdFirst()
		writes := w.engine.writes()
		var wg sync.WaitGroup
		outcomes := make([]result, clients)
		start := func(i int) {
			c := w.client(fmt.Sprint("c", i))
			n := gjson.Get(c.read("1"), "n").Int()
			wg.Go(func() { outcomes[i] = c.save("1", fmt.Sprintf(`{"n":%d,"x":1,"f%d":1}`, n+1, i)) })
		}
		start(0)
		<-held
		for i := 1; i < clients; i++ {
			start(i)
		}
		w.waiting(clients - 1)
		close(hold)
		wg.Wait()
		for i, r := range outcomes {
			if r.status != 200 {
				t.Errorf("client %d: %v", i, r)
			}
		}
		if n := w.engine.writes() - writes; n > 3 {
			t.Errorf("%d writes for %d changes", n, clients)
		}
		if got := gjson.Get(w.stored("1"), "n").Int(); got != clients+1 {
			t.Errorf("n is %d, want %d", got, clients+1)
		}
		for i := range clients {
			if !gjson.Get(w.stored("1"), fmt.Sprint("f", i)).Exists() {
				t.Errorf("the field of client %d is lost", i)
			}
		}
	})
}

func TestInACombinedWriteABadChangeFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":0}`)
		warm := w.client("warm")
		warm.read("1")
		w.put("1", `{"n":0,"x":1}`)
		warm.save("1", `{"n":1}`)

		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				if strings.Contains(string(r.Body), "poison") { // a field that the mapping refuses
					res := &upstream.Response{Payload: []byte(`{"error":{"type":"mapper_parsing_exception"},"status":400}`)}
					res.Status = 400
					return res, nil
				}
			}
			return nil, nil
		}
		bodies := []string{`{"n":2,"x":1}`, `{"n":2,"x":1,"good":1}`, `{"n":1,"x":1,"poison":1}`, `{"n":2,"x":1,"fine":1}`}
		results := w.queued(len(bodies), func(i int) result {
			c := w.client(fmt.Sprint("c", i))
			c.read("1")
			return c.save("1", bodies[i])
		})
		for i, want := range []int{200, 200, 400, 200} {
			if results[i].status != want {
				t.Errorf("change %d: %v, want %d", i, results[i], want)
			}
		}
		same(t, w.stored("1"), `{"n":4,"x":1,"good":1,"fine":1}`)
	})
}

func TestUpdateGetsRetriesWhereTheClientSaidNothing(t *testing.T) {
	for target, want := range map[string]string{
		"/shop/_update/1":                               "POST /shop/_update/1?retry_on_conflict=3",
		"/shop/_update/1?refresh=true":                  "POST /shop/_update/1?refresh=true&retry_on_conflict=3",
		"/shop/_update/1?retry_on_conflict=0":           "POST /shop/_update/1?retry_on_conflict=0",
		"/shop/_update/1?if_seq_no=0&if_primary_term=1": "POST /shop/_update/1?if_seq_no=0&if_primary_term=1",
	} {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		r := w.client("c").send("POST", target, `{"doc":{"a":2}}`)
		if r.status != 200 || len(w.engine.sent) != 1 || w.engine.sent[0] != want {
			t.Errorf("%s: %v, sent %q", target, r, w.engine.sent)
		}
	}
}

func TestWritesWithoutABaseFollowTheRule(t *testing.T) {
	for policy, want := range map[string]string{"pass": "passed;attempts=1;base=none", "fetch": "guarded;attempts=1;base=fetched"} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {unknown: "+policy+"}}\n")
		w.put("1", `{"a":1}`)
		has(t, w.client("c").save("1", `{"a":2}`), 200, want)
		same(t, w.stored("1"), `{"a":2}`)
	}
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {unknown: reject}}\n")
	r := w.client("c").save("1", `{"a":2}`)
	if !errors.Is(r.err, base.ErrPreconditionRequired) || !strings.Contains(r.err.Error(), "read the document first") || w.engine.writes() != 0 {
		t.Errorf("got %v", r)
	}
	var f *outcome.Failure
	if !errors.As(r.err, &f) || string(f.Outcome.Append(nil)) != "refused;attempts=0;base=none" {
		t.Errorf("a write that was refused is said to be let through, or to have been sent: %+v", f)
	}
}

func TestOutcomeIsAStructuredField(t *testing.T) {
	o := outcome.Outcome{Kind: outcome.Merged, Attempts: 2, Base: outcome.BaseRead, Ambiguous: true, Overwrote: []string{"/a b", `/"q"`, "/ü"}}
	if got, want := string(o.Append(nil)), `merged;attempts=2;base=session;ambiguous;overwrote="/a%20b /%22q%22 /%C3%BC"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
