package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/intake"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// answering is an engine's answer without the engine.
func answering(status int, body string, fields ...wire.Field) *upstream.Response {
	res := &upstream.Response{Payload: []byte(body)}
	res.Status = status
	res.Fields = append([]wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}, fields...)
	return res
}

const tooManyRequests = `{"error":{"type":"es_rejected_execution_exception","reason":"queue is full"},"status":429}`

// A success that says nothing of the write may be of something in between, which hasn't sent the write on. That is a lost answer: optimist
// finds out what became of the write.
func TestASuccessThatIsntTheEnginesIsALostAnswer(t *testing.T) {
	for body, status := range map[string]int{"<html>please log in</html>": 200, "": 200, "{}": 201, " ": 204} {
		for name, c := range map[string]struct {
			rule, method, target, body, want string
			read                             bool
		}{
			"a document":            {"", "PUT", "/shop/_doc/1", `{"n":2}`, "guarded;attempts=2", true},
			"with marks":            {"write_id: _w, ", "PUT", "/shop/_doc/1", `{"n":2}`, "guarded;attempts=2", true},
			"a part":                {"", "POST", update1, `{"doc":{"n":2}}`, "guarded;attempts=2", true},
			"a document, unguarded": {"", "PUT", "/shop/_doc/1", `{"n":2}`, "unknown;attempts=1", false},
			"an update, unguarded":  {"", "POST", update1, `{"doc":{"n":2}}`, "unknown;attempts=1", false},
		} {
			w := newWorld(t, "rules:\n- {name: r, "+c.rule+"match: {index: [shop]}}\n")
			w.put("1", `{"n":1}`)
			me := w.client("me")
			if c.read {
				me.read("1")
			}
			tries := 0
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "GET" || strings.Contains(string(r.Target), "optimist-probe") {
					return nil, nil
				}
				if tries++; tries == 1 {
					return answering(status, body), nil
				}
				return nil, nil
			}
			r := me.send(c.method, c.target, c.body)
			if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown == c.read || !strings.HasPrefix(r.outcome, c.want) {
				t.Errorf("%s, %d %q: %v", name, status, body, r)
			}
			want := `2`
			if !c.read {
				want = `1`
			}
			if got := gjson.Get(w.stored("1"), "n").Raw; got != want {
				t.Errorf("%s, %d %q: stored %s", name, status, body, w.stored("1"))
			}
		}
	}
}

// The engine may fail at reading a document, however often it is asked. The client is told what the engine says, and soon.
func TestAReadThatTheEngineFailsAtIsTriedOnce(t *testing.T) {
	const reason = "Failed to parse content to map"
	for name, status := range map[string]int{"PATCH": 0, "PUT": 409} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}}\n")
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		w.put("1", `{"n":2}`)
		reads := 0
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method != "GET" || !strings.HasPrefix(string(r.Target), "/shop/_doc/1") {
				return nil, nil
			}
			reads++
			return answering(500, `{"error":{"type":"parse_exception","reason":"`+reason+`"},"status":500}`), nil
		}
		r := me.send(name, "/shop/_doc/1", `{"n":3}`, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/merge-patch+json")})
		if reads != 1 || r.status != status || status == 0 && (!errors.Is(r.err, doc.ErrNotWritten) || !strings.Contains(r.err.Error(), reason)) {
			t.Errorf("%s: %d reads, %v", name, reads, r)
		}
	}
}

// TestAPageInThePlaceOfAReadIsNoMissingIndex: a gateway whose backend is away answers 404 with a page of its own. If optimist took that for
// a missing index, it would forget what all clients have read there, and let their next writes go unguarded.
func TestAPageInThePlaceOfAReadIsNoMissingIndex(t *testing.T) {
	for name, page := range map[string]string{
		"a page": "<html>404 page not found</html>", "nothing": "", "of a gateway": `{"message":"no Route matched with those values"}`,
	} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}}\n")
		w.put("1", `{"a":1,"b":1,"c":1}`)
		ann, bob, cid := w.client("ann"), w.client("bob"), w.client("cid")
		for _, c := range []*client{ann, bob, cid} {
			c.read("1")
		}
		has(t, ann.send("PUT", "/shop/_doc/1", `{"a":2,"b":1,"c":1}`), 200, "guarded")
		pages := 0
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method != "GET" || !strings.HasPrefix(string(r.Target), "/shop/_doc/1") || pages > 0 {
				return nil, nil
			}
			pages++
			return answering(404, page), nil
		}
		has(t, bob.send("PUT", "/shop/_doc/1", `{"a":1,"b":2,"c":1}`), 200, "merged")
		has(t, cid.send("PUT", "/shop/_doc/1", `{"a":1,"b":1,"c":2}`), 200, "merged")
		if got := w.stored("1"); pages != 1 || got != `{"a":2,"b":2,"c":2}` {
			t.Errorf("%s: %d pages, stored %s", name, pages, got)
		}
	}
}

// A try whose answer was lost may be applied late: nothing that comes after it may say that nothing was written.
func TestWhatFollowsALostAnswerNeverSaysThatNothingWasWritten(t *testing.T) {
	down := &upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}
	for name, second := range map[string]func() (*upstream.Response, error){
		"refused connection": func() (*upstream.Response, error) { return nil, down },
		"429":                func() (*upstream.Response, error) { return answering(429, tooManyRequests), nil },
		"503":                func() (*upstream.Response, error) { return answering(503, `{"status":503}`), nil },
		"400":                func() (*upstream.Response, error) { return answering(400, `{"status":400}`), nil },
		"202": func() (*upstream.Response, error) {
			return answering(202, `{"_index":"shop","_id":"1","_version":2,"result":"updated","_seq_no":1,"_primary_term":1}`), nil
		},
	} {
		for _, method := range []string{"PUT", "DELETE"} {
			t.Run(name+" "+method, func(t *testing.T) {
				w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, rejected: pass}\n")
				w.put("1", `{"a":1}`)
				me := w.client("me")
				me.read("1")
				tries := 0
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method != method {
						return nil, nil
					}
					if tries++; tries == 1 {
						return nil, lostError
					}
					return second()
				}
				r := me.send(method, "/shop/_doc/1", `{"a":2}`)
				if tries != 2 || !errors.Is(r.err, ErrUnknownOutcome) || !strings.HasPrefix(r.outcome, "unknown") {
					t.Errorf("after %d tries: %v", tries, r)
				}
			})
		}
	}
}

func TestALostAnswerIsUnknownWhenTheAttemptsEnd(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, retry: {max_attempts: 2}}\n")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	n := 0
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "PUT" {
			return nil, nil
		}
		if n++; n == 1 {
			return nil, lostError
		}
		return answering(409, `{"error":{"type":"version_conflict_engine_exception"},"status":409}`), nil
	}
	if r := me.save("1", `{"a":2}`); !errors.Is(r.err, ErrUnknownOutcome) {
		t.Errorf("got %v", r)
	}
}

// The engine's time is over, ours too: the client is to hear that the outcome is unknown, instead of a closed connection.
func TestATimeOutOfOursIsAnUnknownOutcome(t *testing.T) {
	for _, base := range []string{"with a base", "without"} {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		me := w.client("me")
		if base == "with a base" {
			me.read("1")
		}
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				w.put("1", `{"a":3}`)
				return nil, &upstream.Error{Class: upstream.Cancelled, Sent: true, Err: context.DeadlineExceeded}
			}
			return nil, nil
		}
		if r := me.save("1", `{"a":2}`); !errors.Is(r.err, ErrUnknownOutcome) || !strings.HasPrefix(r.outcome, "unknown") {
			t.Errorf("%s: %v", base, r)
		}
	}
}

func TestAServerErrorIsNoRefusal(t *testing.T) {
	// Behind a balancer a 502 or 504 is a lost answer; the engine's own 5xx may come after the primary has written.
	for _, status := range []int{500, 502, 503, 504} {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		me := w.client("me")
		me.read("1")
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				return answering(status, `{"status":0}`), nil
			}
			return nil, nil
		}
		has(t, me.save("1", `{"a":2}`), status, "unknown;attempts=1;base=session")
	}
}

func TestALostReadIsNoUnknownWrite(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {unknown: fetch}}\n")
	w.put("1", `{"a":1}`)
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop/_doc/") {
			return nil, lostError
		}
		return nil, nil
	}
	r := w.client("me").save("1", `{"a":2}`)
	if !errors.Is(r.err, doc.ErrNotWritten) || errors.Is(r.err, ErrUnknownOutcome) || strings.HasPrefix(r.outcome, "unknown") {
		t.Errorf("got %v", r)
	}
}

// A read of ours may be repeated: it costs nobody a refusal, or an unknown outcome.
func TestARereadThatIsLostIsRepeated(t *testing.T) {
	for _, method := range []string{"PUT", "DELETE"} {
		for _, lost := range []bool{false, true} {
			w := newWorld(t, "")
			w.put("1", `{"a":1,"b":1}`)
			me := w.client("me")
			me.read("1")
			if !lost {
				w.put("1", `{"a":1,"b":2}`)
			}
			reads, writes := 0, 0
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				switch {
				case r.Method == method && lost:
					if writes++; writes == 1 {
						return nil, lostError
					}
				case r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop/_doc/"):
					if reads++; reads == 1 {
						return answering(429, tooManyRequests), nil
					} else if reads == 2 {
						return nil, lostError
					}
				}
				return nil, nil
			}
			if r := me.send(method, "/shop/_doc/1", `{"a":2,"b":1}`); r.status != 200 || reads != 3 {
				t.Errorf("%s after %d reads: %v", method, reads, r)
			}
		}
	}
}

// A client that repeats a write whose outcome was unknown must not have its sum counted twice.
func TestAWriteRepeatedAfterAnUnknownOutcomeCountsOnceAtMost(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	lost := false
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == "PUT" && !lost {
			lost = true
			return lostError
		}
		return nil
	}
	if r := me.save("1", `{"n":2}`); !errors.Is(r.err, ErrUnknownOutcome) {
		t.Fatalf("got %v", r)
	}
	if r := me.save("1", `{"n":2}`); r.status != 409 {
		t.Errorf("the repeated write: %v", r)
	}
	same(t, w.stored("1"), `{"n":2}`)
}

func TestACreateRepeatedAfterAnUnknownOutcomeCountsOnceAtMost(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("other", `{}`)
	me := w.client("me")
	me.read("1")
	lost := false
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == "PUT" && !lost {
			lost = true
			return lostError
		}
		return nil
	}
	if r := me.save("1", `{"n":2,"l":["a"]}`); !errors.Is(r.err, ErrUnknownOutcome) {
		t.Fatalf("got %v", r)
	}
	if r := me.save("1", `{"n":2,"l":["a"]}`); r.status != 409 {
		t.Errorf("the repeated write: %v", r)
	}
	same(t, w.stored("1"), `{"n":2,"l":["a"]}`)
}

// A client that leaves while its write is out, whose answer is then lost: what can be found out is, for its next write.
func TestALostAnswerIsJudgedThoughTheClientLeft(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	ctx, leave := context.WithCancel(t.Context())
	w.loseFirst(func(*upstream.Request) { leave() })
	if r := me.sendContext(ctx, "PUT", "/shop/_doc/1", `{"n":2}`); r.err == nil {
		t.Errorf("got %v", r)
	}
	if w.engine.writes() != 0 {
		t.Errorf("sent again for a client that left")
	}
	has(t, me.save("1", `{"n":2}`), 200, "guarded")
	same(t, w.stored("1"), `{"n":2}`)
}

// The client's own time-out ends the loop: what is known by then is the answer.
func TestTheClientsOwnTimeoutEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, retry: {max_attempts: 10000, max_elapsed: 60s}}\n")
		w.put("1", `{"a":1,"b":0}`)
		me := w.client("me")
		me.read("1")
		n := 0
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				n++
				w.put("1", fmt.Sprintf(`{"a":1,"b":%d}`, n)) // somebody is always faster
			}
			return nil, nil
		}
		start := time.Now()
		has(t, me.send("PUT", "/shop/_doc/1?timeout=50ms", `{"a":2,"b":0}`), 409, "guarded")
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	})
}

func TestTheClientsOwnTimeoutEndsTheWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		slow, me := w.client("slow"), w.client("me")
		slow.read("1")
		me.read("1")
		hold, held := w.holdFirst()
		var wg sync.WaitGroup
		wg.Go(func() { has(t, slow.save("1", `{"a":2}`), 200, "guarded") })
		<-held
		if r := me.send("PUT", "/shop/_doc/1?timeout=1100ms", `{"a":3}`); !errors.Is(r.err, intake.ErrTimeout) {
			t.Errorf("got %v", r)
		}
		close(hold)
		wg.Wait()
		same(t, w.stored("1"), `{"a":2}`)
	})
}

// A document was merged into one behind an ingest pipeline, whose bytes nobody knows. The next one has no known outcome. When the client
// sends that again, it must not be written in the place of what its client has never seen.
func TestARepeatBehindAPipelineDoesNotReplaceWhatItsClientHasNeverSeen(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, pipeline: rerun, merge: {paths: {/n: sum}}}\n")
	w.put("1", `{"log":["a"],"n":0}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"log":["a","b"],"n":1}`)
	answer := func(*upstream.Request) *upstream.Response { return nil }
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "PUT" {
			return nil, nil
		}
		r.Target = []byte(strings.Replace(string(r.Target), "pipeline=p", "", 1)) // the embedded engine has none
		return answer(r), nil
	}
	save := func(body string) result { return me.send("PUT", "/shop/_doc/1?pipeline=p", body) }
	has(t, save(`{"log":["a","m"],"n":1}`), 200, "merged")
	answer = func(*upstream.Request) *upstream.Response { return answering(503, `{"status":503}`) }
	has(t, save(`{"log":["a","m","n"],"n":2}`), 503, "unknown")
	answer = func(*upstream.Request) *upstream.Response { return nil }
	if r := save(`{"log":["a","m","n"],"n":2}`); r.status != 409 || w.stored("1") != `{"log":["a","b","m"],"n":2}` {
		t.Errorf("%v leaves %s", r, w.stored("1"))
	}
}
