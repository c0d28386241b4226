package write

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/enginetest"
	"optimist/internal/etag"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func ifMatch(etag string) wire.Field {
	return wire.Field{Name: []byte("If-Match"), Value: []byte(etag)}
}

// A reservation that nobody ends would have the session's next write wait for ever.
func TestAFetchedBaseIsEnded(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {unknown: fetch}}\n")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	has(t, me.save("1", `{"a":2}`), 200, "guarded;attempts=1;base=fetched")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	has(t, me.sendContext(ctx, "PUT", "/shop/_doc/1", `{"a":3}`), 200, "guarded;attempts=1;base=view")
}

func TestAFetchedBaseMayBeAnIndexThatIsNotThere(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {unknown: fetch}}\n")
	has(t, w.client("me").save("1", `{"a":2}`), 201, "guarded;attempts=1;base=fetched")
}

// A session that made a document knows what it sent, and writes its next change from memory.
func TestACreateLeavesAView(t *testing.T) {
	for name, see := range map[string]func(*client){"after a 404": func(c *client) { c.read("1") }, "unseen": func(*client) {}} {
		t.Run(name, func(t *testing.T) {
			for _, index := range []string{"shop", "alias"} {
				w := newWorld(t, "")
				w.put("0", `{}`)
				w.direct("PUT", "/shop/_alias/alias", "")
				me := w.client("me")
				see(me)
				if r := me.send("PUT", "/"+index+"/_create/1", `{"a":1,"b":1}`); r.status != 201 {
					t.Fatal(r)
				}
				w.put("1", `{"a":1,"b":2}`)
				has(t, me.send("PUT", "/"+index+"/_doc/1", `{"a":2,"b":1}`), 200, "merged;attempts=2;base=view")
				same(t, w.stored("1"), `{"a":2,"b":2}`)
			}
		})
	}
}

// Two clients that can't be told apart have read the same revision. The first one's write was merged, and its answer told it the
// numbers of its base. The second names the same numbers, and means what it read.
func TestTheNumbersOfABaseDontNameSomebodyElsesView(t *testing.T) {
	for name, who := range map[string]func(*world) *client{"anonymous": (*world).nobody, "inferred": (*world).stranger} {
		for _, rules := range []string{"", "rules:\n- {name: r, match: {index: [shop]}, base: {from: [if_match]}, merge: {paths: {/n: sum}}}\n", sumRule} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, rules)
				w.put("1", `{"a":0,"b":0,"n":5}`)
				first, second := who(w), who(w)
				first.read("1")
				if rules == sumRule {
					second.read("1")
				}
				w.put("1", `{"a":0,"b":1,"n":5}`)
				r := first.send("PUT", "/shop/_doc/1", `{"a":1,"b":0,"n":6}`, ifMatch(`"0-1"`))
				merged := r.status == 200
				if !merged && r.status != 409 {
					t.Fatal(r)
				}
				r = second.send("PUT", "/shop/_doc/1", `{"a":0,"b":0,"n":8,"c":1}`, ifMatch(`"0-1"`))
				var want string
				switch {
				case r.status == 409 && merged:
					want = `{"a":1,"b":1,"n":6}`
				case r.status == 409:
					want = `{"a":0,"b":1,"n":5}`
				case rules == "":
					want = `{"a":1,"b":1,"n":8,"c":1}`
				default:
					want = `{"a":1,"b":1,"n":9,"c":1}`
				}
				same(t, w.stored("1"), want)
			})
		}
	}
}

// The revision that a merge stored isn't what its client has seen: who names its numbers has read it.
func TestTheNumbersOfWhatWasStoredNameWhatWasStored(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"a":0,"n":5}`)
	first, second := w.stranger(), w.nobody()
	first.read("1")
	w.put("1", `{"a":0,"n":7,"x":1}`)
	has(t, first.save("1", `{"a":0,"n":6}`), 200, "merged") // stores {"a":0,"n":8,"x":1}
	w.put("1", `{"a":0,"n":8,"x":2}`)                       // a third
	r := second.send("PUT", "/shop/_doc/1", `{"a":1,"n":8,"x":1}`, ifMatch(`"2-1"`))
	if r.status == 200 {
		same(t, w.stored("1"), `{"a":1,"n":8,"x":2}`)
	} else if r.status != 409 {
		t.Errorf("got %v", r)
	}
}

// gzipped is what engines make of an answer for clients that accept it, without being asked by their users: Go's do.
func gzipped(res *upstream.Response) *upstream.Response {
	res.Payload = enginetest.Gzip(res.Payload)
	res.Fields = append(res.Fields, wire.Field{Name: []byte("content-encoding"), Value: []byte("gzip")})
	return res
}

// An inferred session that makes documents is no blind writer, whatever its answers look like.
func TestACreateIsKnownByItsStatus(t *testing.T) {
	for name, target := range map[string]string{"gzip": "", "filter_path": "?filter_path=_id", "hidden result": "?filter_path=_seq_no,_primary_term"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("old", `{"a":1}`)
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "PUT" && name == "gzip" {
					return gzipped(w.engine.handle(r)), nil
				}
				return nil, nil
			}
			c := w.stranger()
			if r := c.send("PUT", "/shop/_doc/new"+target, `{"a":1}`); r.status != 201 {
				t.Fatal(r)
			}
			w.engine.before = nil
			c.read("old")
			has(t, c.save("old", `{"a":2}`), 200, "guarded;attempts=1;base=session")
		})
	}
}

func TestTheNumbersOfAGzippedAnswerAreRead(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"b":1}`)
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" {
			return gzipped(w.engine.handle(r)), nil
		}
		return nil, nil
	}
	me := w.client("me")
	has(t, me.send("PUT", "/shop/_doc/1", `{"a":2,"b":1}`, wire.Field{Name: []byte("Accept-Encoding"), Value: []byte("gzip")}), 200, "passed")
	w.engine.before = nil
	w.put("1", `{"a":2,"b":2}`)
	has(t, me.save("1", `{"a":3,"b":1}`), 200, "merged;attempts=2;base=view")
	same(t, w.stored("1"), `{"a":3,"b":2}`)
}

func TestIfMatchGuardsAnUpdate(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	w.put("1", `{"a":2}`)
	me := w.client("me")
	has(t, me.send("POST", "/shop/_update/1", `{"doc":{"b":1}}`, ifMatch(`"0-1"`)), 409, "guarded;attempts=1;base=if_match")
	has(t, me.send("POST", "/shop/_update/1", `{"doc":{"b":1}}`, ifMatch(`"1-1"`)), 200, "guarded;attempts=1;base=if_match")
	same(t, w.stored("1"), `{"a":2,"b":1}`)
	if r := me.send("POST", "/shop/_update/1", `{"doc":{"b":2}}`, ifMatch(`nonsense`)); !errors.Is(r.err, etag.ErrBad) {
		t.Errorf("got %v", r)
	}
}

// What one client's impatience did must not be believed of the index.
func TestAClientThatLeavesTeachesNothingAboutTheIndex(t *testing.T) {
	for name, part := range map[string]string{"what it is": "GET /shop?", "who sees it whole": "POST /shop/_update/optimist-probe"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"a":1,"b":1}`)
			one, two := w.client("one"), w.client("two")
			one.read("1")
			two.read("1")
			w.put("1", `{"a":1,"b":2}`)
			ctx, leave := context.WithCancel(t.Context())
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if strings.HasPrefix(r.Method+" "+string(r.Target), part) && ctx.Err() == nil {
					leave()
					return nil, &upstream.Error{Class: upstream.Cancelled, Sent: true, Err: context.Canceled}
				}
				return nil, nil
			}
			_ = one.sendContext(ctx, "PUT", "/shop/_doc/1", `{"a":7,"b":1}`)
			if ctx.Err() == nil {
				t.Fatal("nothing was asked")
			}
			has(t, two.save("1", `{"a":1,"b":1,"c":1}`), 200, "merged")
		})
	}
}

// An engine that is busy for a moment hasn't said that the view is filtered, or what the index is.
func TestABusyEngineTeachesNothingAboutTheIndex(t *testing.T) {
	for name, part := range map[string]string{"what it is": "GET /shop?", "who sees it whole": "POST /shop/_update/optimist-probe"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"a":1,"b":1}`)
			one, two := w.client("one"), w.client("two")
			one.read("1")
			two.read("1")
			w.put("1", `{"a":1,"b":2}`)
			asked := 0
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if strings.HasPrefix(r.Method+" "+string(r.Target), part) {
					if asked++; asked == 1 {
						return answering(429, tooManyRequests), nil
					}
				}
				return nil, nil
			}
			if r := one.save("1", `{"a":7,"b":1}`); asked != 1 || r.status == 200 {
				t.Errorf("asked %d times: %v", asked, r)
			}
			has(t, two.save("1", `{"a":1,"b":1,"c":1}`), 200, "merged")
			same(t, w.stored("1"), `{"a":1,"b":2,"c":1}`)
		})
	}
}

// An alias may route: the document is where the alias says, also when it is looked at again.
func TestADocumentBehindARoutingAliasIsFoundAgain(t *testing.T) {
	w := newWorld(t, "")
	w.put("0", `{}`)
	w.direct("PUT", "/shop/_alias/routed", `{"index_routing":"r"}`)
	if status, answer := w.direct("GET", "/shop/_alias/routed", ""); status != 200 || !strings.Contains(answer, "index_routing") {
		t.Fatal(status, answer)
	}
	me := w.client("me")
	if r := me.send("PUT", "/routed/_doc/1", `{"a":1,"b":1}`); r.status != 201 {
		t.Fatal(r)
	}
	w.direct("PUT", "/routed/_doc/1", `{"a":1,"b":2}`)
	has(t, me.send("PUT", "/routed/_doc/1", `{"a":2,"b":1}`), 200, "merged")
}

// A document named by an index that was made anew behind the proxy's back is another one, though the numbers are the same.
func TestAnIndexMadeAnewElsewhereIsNoticed(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	has(t, me.save("1", `{"a":2}`), 200, "guarded")
	w.direct("DELETE", "/shop", "")
	w.put("1", `{"other":1}`)
	w.put("1", `{"other":2}`) // the numbers of the client's view
	w.later = time.Minute
	r := me.save("1", `{"a":3}`)
	if strings.HasPrefix(r.outcome, "guarded") {
		t.Errorf("the old numbers were taken for the new index's: %v", r)
	}
}

// Who asks again holds up nobody who knows enough: changes that don't know whether they may share a write go one by one.
func TestWhatIsKnownIsKnownWhileSomebodyAsks(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	me, other := w.client("me"), w.client("other")
	me.read("1")
	other.read("1")
	has(t, me.save("1", `{"a":2}`), 200, "guarded")
	has(t, other.save("1", `{"a":1,"b":1}`), 200, "merged")
	asked, answer := make(chan struct{}), make(chan struct{})
	defer close(answer)
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop?") {
			close(asked)
			<-answer
		}
		return nil, nil
	}
	go func() { _, _ = w.s.catalog.Resolve(context.Background(), catalog.Asker{}, "shop", 1) }()
	<-asked
	me.read("1")
	has(t, me.save("1", `{"a":3,"b":1}`), 200, "guarded")
	has(t, other.save("1", `{"a":2,"b":2}`), 200, "merged")
}

func TestAnExplicitOpTypeIsCreateInAnyCase(t *testing.T) {
	for _, q := range []string{"op_type=create", "op_type=CREATE", "op%5Ftype=creat%65", "op_type=index"} {
		w := newWorld(t, "")
		w.put("0", `{}`)
		me := w.client("me")
		me.read("1")
		if r := me.send("PUT", "/shop/_doc/1?"+q, `{"a":1}`); r.status != 201 {
			t.Errorf("%s: %v", q, r)
		}
		if sent := fmt.Sprint(w.engine.sent); strings.Count(sent, "op") != 1+strings.Count(sent, "shop") {
			t.Errorf("%s: sent %s", q, sent)
		}
	}
}

func TestWhatSaysThatThereIsNoGuardIsNone(t *testing.T) {
	for _, query := range []string{"?if_seq_no=-2&if_primary_term=0", "?version_type=internal", "?version=-3", "?version=%2D3&version_type=internal&refresh=true"} {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		w.put("1", `{"n":5}`)
		has(t, me.send("PUT", "/shop/_doc/1"+query, `{"n":2}`), 200, "merged;attempts=2;base=session")
		same(t, w.stored("1"), `{"n":6}`)
		has(t, w.client("other").send("PUT", "/shop/_doc/1"+query, `{"n":0}`), 200, "passed;attempts=1;base=none")
		me.read("1")
		w.put("1", `{"n":7}`)
		has(t, me.send("DELETE", "/shop/_doc/1"+query, ""), 200, "merged;attempts=2;base=session")
	}
	w := newWorld(t, "")
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	for query, status := range map[string]int{
		"?version=2&version_type=external": 200, "?if_seq_no=7&if_primary_term=1": 409, "?if_seq_no=-2&if_primary_term=1": 400,
		"?version_type=external": 400, "?version=1": 400,
	} {
		if r := me.send("PUT", "/shop/_doc/1"+query, `{"n":2}`); r.status != status || !strings.Contains(r.outcome, "base=explicit") {
			t.Errorf("%s: %v", query, r)
		}
	}
}

// A client gave a write up that still waits to be let in, repeated it, and went on. The first one must not undo what it has
// written since.
func TestAWriteThatWasGivenUpIsNotCountedFromALaterOne(t *testing.T) {
	left, stay := connection(t)
	_ = left.Close()
	for name, fields := range map[string][]wire.Field{"session": nil, "If-Match": {ifMatch(`"1-1"`)}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"log":[]}`)
			me := w.client("me")
			me.read("1")
			has(t, me.save("1", `{"log":["a"]}`), 200, "guarded")
			w.s.IndicesChanged([16]byte{}) // so that what the index is has to be asked
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "GET" && !strings.Contains(string(r.Target), "_doc") {
					<-time.After(2 * base.LeastWait)
				}
				return nil, nil
			}
			r := me.sendContext(wire.WithPeer(t.Context(), stay), "PUT", "/shop/_doc/1", `{"log":[]}`, fields...)
			if !errors.Is(r.err, context.Canceled) {
				t.Errorf("got %v", r)
			}
			same(t, w.stored("1"), `{"log":["a"]}`)
			has(t, me.save("1", `{"log":["a","b"]}`), 200, "guarded;attempts=1;base=view") // which it gave back
		})
	}
}

// connection makes one, and returns both of its ends.
func connection(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if client, err = net.Dial("tcp", l.Addr().String()); err == nil {
		server, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = server.Close(); _ = client.Close() })
	return client, server
}

// Of what a client wrote the numbers alone may be known: then they are its guard, and nobody else's change is no conflict.
func TestAViewWithoutItsBodyIsAGuard(t *testing.T) {
	t.Run("a part was written", func(t *testing.T) {
		w := newWorld(t, stampRule)
		w.put("1", `{"n":10}`)
		me := w.stranger()
		_, s := me.served("1", 1)
		has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":11}}`, s), 200, "guarded;attempts=1;base=stamp")
		has(t, me.carry("PUT", "/shop/_doc/1", `{"n":12}`, s), 200, "guarded;attempts=1;base=stamp")
		same(t, w.stored("1"), `{"n":12}`)
	})
	for name, others := range map[string]bool{"unknown outcome": false, "unknown outcome of what was merged": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sumRule)
			w.put("1", `{"n":1}`)
			c := w.client("c")
			c.read("1")
			if others {
				w.put("1", `{"n":1,"x":1}`)
			}
			c.save("1", `{"n":2}`)
			ctx, leave := context.WithCancel(t.Context())
			w.engine.before = func(*upstream.Request) (*upstream.Response, error) {
				leave() // or the write goes on until its answer isn't lost
				return nil, lostError
			}
			if r := c.sendContext(ctx, "PUT", target1, `{"n":3}`); !errors.Is(r.err, ErrUnknownOutcome) {
				t.Fatalf("%v", r)
			}
			w.engine.before = nil
			r := c.save("1", `{"n":3}`)
			if others {
				has(t, r, 409, "refused;attempts=0;base=view;reason=numbers") // {"x":1} isn't in what it sent
				return
			}
			has(t, r, 200, "guarded;attempts=1;base=view")
			same(t, w.stored("1"), `{"n":3}`)
		})
	}
}
