package write

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// gated is a world whose engine says of the index "shop" what a test has it say. It counts what is asked, and what is told to
// metrics.
type gated struct {
	*world
	settings, rest string // of the index, as JSON: the members of settings.index, and what stands beside settings
	forbidden      bool   // nothing of it may be known
	filtered       bool   // nobody may update
	refuses        bool   // there are no sequence numbers: a guard is a 400

	asked, probed int
	told          []string
}

func newGated(t *testing.T, rules string) *gated {
	t.Helper()
	g := &gated{world: newWorld(t, rules)}
	g.start(Options{Events: Events{Unguardable: func(index, reason string) { g.told = append(g.told, index+" "+reason) }}})
	g.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		target := string(r.Target)
		switch {
		case r.Method == "GET" && strings.HasPrefix(target, "/shop?"):
			g.asked++
			if g.forbidden {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`), nil
			}
			return answering(200, `{"shop":{"settings":{"index":{"uuid":"u"`+g.settings+`}}`+g.rest+`}}`), nil
		case strings.Contains(target, "optimist-probe"):
			g.probed++
			if g.filtered {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`), nil
			}
		case g.refuses && strings.Contains(target, "if_seq_no="):
			return answering(400, `{"error":{"type":"illegal_argument_exception","reason":"disable_sequence_numbers"},"status":400}`), nil
		}
		return nil, nil
	}
	return g
}

// What can't be guarded is passed, what can't be merged is guarded and no more. Either is found out without anybody's help,
// remembered, counted, and said in every answer.
func TestWhatCantBeGuardedOrMergedIsFoundOutAndRemembered(t *testing.T) {
	const named, rerun = "rules: [{name: r, match: {index: [shop]}}]\n", "rules: [{name: r, pipeline: rerun}]\n"
	for name, c := range map[string]struct {
		rules        string
		set          func(g *gated)
		kind, reason string // of a write from a base that isn't current
		told         string
		probed       int
	}{
		"an ordinary index":            {"", func(*gated) {}, "merged", "", "", 1},
		"no sequence numbers":          {"", func(g *gated) { g.settings = `,"disable_sequence_numbers":"true"` }, "passed", "no_seq_no", "shop no_seq_no", 0},
		"no numbers, unsaid":           {"", func(g *gated) { g.refuses = true }, "passed", "no_seq_no", "shop no_seq_no", 0},
		"a data stream":                {"", func(g *gated) { g.rest = `,"data_stream":"s"` }, "passed", "data_stream", "", 0},
		"a data stream that is named":  {named, func(g *gated) { g.rest = `,"data_stream":"s"` }, "merged", "", "", 1},
		"synthetic source":             {"", func(g *gated) { g.settings = `,"mapping":{"source":{"mode":"synthetic"}}` }, "guarded", "source", "shop source", 0},
		"filtered source":              {"", func(g *gated) { g.rest = `,"mappings":{"_source":{"excludes":["x"]}}` }, "guarded", "source", "shop source", 0},
		"a pipeline":                   {"", func(g *gated) { g.settings = `,"final_pipeline":"p"` }, "guarded", "pipeline", "shop pipeline", 0},
		"a pipeline that may run":      {rerun, func(g *gated) { g.settings = `,"final_pipeline":"p"` }, "merged", "", "shop pipeline", 1},
		"a filtered view":              {"", func(g *gated) { g.filtered = true }, "guarded", "filtered", "shop filtered", 1},
		"an index that nobody may see": {"", func(g *gated) { g.forbidden = true }, "guarded", "metadata", "shop metadata", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, c.rules)
			c.set(g)
			g.put("1", `{"a":0,"b":0}`)
			for i := range 3 {
				me := g.client(fmt.Sprint("c", i))
				me.read("1")
				g.put("1", fmt.Sprintf(`{"a":0,"b":%d}`, i+1))
				r := me.save("1", `{"a":1,"b":0}`)
				has(t, r, map[string]int{"guarded": 409, "passed": 200, "merged": 200}[c.kind], c.kind+";")
				if !strings.HasSuffix(r.outcome, "reason="+c.reason) && c.reason != "" {
					t.Errorf("write %d: %v, want the reason %s", i, r, c.reason)
				}
				g.put("1", `{"a":0,"b":0}`)
			}
			if told := strings.Join(g.told, ","); told != c.told || g.asked != 1 || g.probed != c.probed {
				t.Errorf("asked %d times, probed %d times, told %q; want 1, %d and %q", g.asked, g.probed, told, c.probed, c.told)
			}
		})
	}
}

// A question that is cut off is no answer: it is asked again, and if that is cut off, too, the refusal says so.
func TestAProbeThatIsCutOffIsAskedAgainAndIsNoFilteredView(t *testing.T) {
	for cuts, want := range map[int]string{0: "merged;attempts=2;base=session", 1: "merged;attempts=2;base=session",
		2: "guarded;attempts=1;base=session;reason=unasked"} {
		w := newWorld(t, "")
		w.put("1", `{"a":0,"b":0}`)
		me := w.client("me")
		me.read("1")
		w.put("1", `{"a":0,"b":1}`)
		cut := 0
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if strings.Contains(string(r.Target), "optimist-probe") && cut < cuts {
				cut++
				return nil, lostError
			}
			return nil, nil
		}
		if r := me.save("1", `{"a":1,"b":0}`); r.outcome != want || (r.status == 409) != (cuts == 2) {
			t.Errorf("cut off %d times: %v", cuts, r)
		}
		// Nothing of it is remembered: the next write asks, and is merged.
		me.read("1")
		w.put("1", `{"a":0,"b":2}`)
		has(t, me.save("1", `{"a":5,"b":1}`), 200, "merged")
	}
}

// An index that is blocked or closed shows nothing of what its clients may see. Once it takes writes again, they are merged at once.
func TestAnIndexThatTookNoWritesForAMomentIsNoFilteredView(t *testing.T) {
	for kind, status := range map[string]int{"cluster_block_exception": 403, "index_closed_exception": 400} {
		w := newWorld(t, "")
		w.put("1", `{"a":0,"b":0}`)
		me := w.client("me")
		me.read("1")
		w.put("1", `{"a":0,"b":1}`)
		blocked := true
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if !blocked || !strings.Contains(string(r.Target), "optimist-probe") {
				return nil, nil
			}
			res := &upstream.Response{Payload: []byte(`{"error":{"type":"` + kind + `"}}`)}
			res.Status = status
			return res, nil
		}
		has(t, me.save("1", `{"a":1,"b":0}`), 409, "guarded;attempts=1;base=session;reason=unasked")
		blocked = false
		me.read("1")
		w.put("1", `{"a":0,"b":2}`)
		has(t, me.save("1", `{"a":5,"b":1}`), 200, "merged")
	}
}

// What one client may see says nothing of what another may.
func TestWhatIsKnownOfAnIndexIsKnownForItsAskerOnly(t *testing.T) {
	g := newGated(t, "")
	g.put("1", `{"a":0,"b":0}`)
	clients := map[string]*client{}
	for _, name := range []string{"alice", "bob"} {
		clients[name] = &client{w: g.world, sess: identity.Named(identity.CredentialsOf([]byte(name)), []byte("s"))}
		clients[name].read("1")
	}
	g.put("1", `{"a":0,"b":1}`)
	has(t, clients["alice"].save("1", `{"a":1,"b":0}`), 200, "merged")
	g.filtered = true
	if r := clients["bob"].save("1", `{"a":2,"b":0}`); r.status != 409 || !strings.HasSuffix(r.outcome, "reason=filtered") {
		t.Errorf("got %v", r)
	}
	if g.asked != 2 || g.probed != 2 {
		t.Errorf("asked %d times, probed %d times", g.asked, g.probed)
	}
	same(t, g.stored("1"), `{"a":1,"b":1}`)
}

// What an index is may be asked with credentials of the proxy's own. A document never is, nor who sees it whole: what comes of a
// merge is shown to the client, and written for it.
func TestDocumentsAreReadAsTheirClientAndWhereItSays(t *testing.T) {
	for _, own := range []bool{false, true} {
		w := newWorld(t, "")
		w.start(Options{OwnAuth: own})
		w.direct("PUT", "/shop/_doc/1?routing=r", `{"a":0,"b":0}`)
		authorization := []wire.Field{{Name: []byte("Authorization"), Value: []byte("Basic YTpi")}}
		me, ref := w.client("me"), docRef("1") // of an index of one shard
		w.store.Read(me.sess, ref, doc.Revision{Numbers: doc.Numbers{SeqNo: 0, PrimaryTerm: 1}, Version: 1, Source: []byte(`{"a":0,"b":0}`)}, w.store.Epoch())
		w.direct("PUT", "/shop/_doc/1?routing=r", `{"a":0,"b":1}`)
		asked := make(map[string]bool) // what, and whether as the proxy itself
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			what, _, _ := strings.Cut(string(r.Target), "?")
			if strings.Contains(what, "optimist-probe") {
				what = "probe"
			}
			asked[what] = asked[what] || r.Own
			if got := wire.Value(r.Fields, "authorization"); !r.Own && string(got) != "Basic YTpi" {
				t.Errorf("%s %s as %q", r.Method, r.Target, got)
			}
			if what != "/shop" && !strings.Contains(string(r.Target), "routing=r") {
				t.Errorf("%s %s goes elsewhere", r.Method, r.Target)
			}
			return nil, nil
		}
		r := &Request{Request: base.Request{Caller: es.Caller{Fields: authorization}, Fields: authorization}}
		has(t, me.doRequest(t.Context(), r, "PUT", "/shop/_doc/1?routing=r", []byte(`{"a":1,"b":0}`)), 200, "merged;attempts=2;base=session")
		if want := map[string]bool{"/shop": own, "/shop/_doc/1": false, "probe": false}; !maps.Equal(asked, want) {
			t.Errorf("asked as the proxy: %v, want %v", asked, want)
		}
	}
}

// The pipeline that a request names says that there is none.
func TestARequestWithoutPipelineIsMergedAsEver(t *testing.T) {
	for query, want := range map[string]string{"?pipeline=_none": "merged", "?pipeline=p": "guarded"} {
		w := newWorld(t, "")
		w.put("1", `{"a":0,"b":0}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			r.Target = []byte(strings.Replace(string(r.Target), "pipeline=p&", "", 1)) // the embedded engine has none
			return nil, nil
		}
		me := w.client("me")
		me.read("1")
		w.put("1", `{"a":0,"b":1}`)
		r := me.send("PUT", "/shop/_doc/1"+query, `{"a":1,"b":0}`)
		if !strings.HasPrefix(r.outcome, want) || strings.HasSuffix(r.outcome, "reason=pipeline") != (want == "guarded") {
			t.Errorf("%s: %v", query, r)
		}
	}
}

// A rule that names no index leaves data streams alone: it adds neither values nor marks to what is stored there. It added both, also where the
// outcome said data_stream.
func TestADocumentForADataStreamThatNoRuleNamesIsStoredAsSent(t *testing.T) {
	const mark, step = "write_id: _w", "transform: [{op: add, path: /t, value: 1}]"
	for name, write := range map[string]func(g *gated) result{
		"PUT":             func(g *gated) result { return g.client("c").save("1", `{"a":1}`) },
		"create":          func(g *gated) result { return g.client("c").send("PUT", "/shop/_create/1", `{"a":1}`) },
		"create, nobody":  func(g *gated) result { return g.nobody().send("PUT", "/shop/_create/1", `{"a":1}`) },
		"without an id":   func(g *gated) result { return g.client("c").send("POST", "/shop/_doc", `{"a":1}`) },
		"op_type, nobody": func(g *gated) result { return g.nobody().send("POST", "/shop/_doc/1?op_type=create", `{"a":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, does := range []string{mark, step, mark + ", " + step} {
				for _, stream := range []bool{true, false} {
					g := newGated(t, "rules: [{name: r, "+does+"}]\n")
					if stream {
						g.rest = `,"data_stream":"s"`
					}
					g.put("0", `{}`) // makes the index
					r := write(g)
					has(t, r, 201, "passed;")
					asSent := stream || does == mark && name == "without an id"
					if stored := g.stored(gjson.Get(r.body, "_id").Str); asSent != (stored == `{"a":1}`) {
						t.Errorf("%s, in a data stream: %t; %s is stored", does, stream, stored)
					}
					if stream != strings.Contains(r.outcome, "reason=data_stream") ||
						strings.Contains(r.outcome, ";untransformed") != (stream && does != mark) {
						t.Errorf("%s, in a data stream: %t; %v", does, stream, r)
					}
				}
			}
		})
	}
}

// An index that backs a data stream may have a name of its own. By this name, clients also change parts of its documents.
func TestAPartInADataStreamThatNoRuleNamesIsMadeWithoutTheRule(t *testing.T) {
	const rules = "rules: [{name: r, write_id: _w, transform: [{op: add, path: /t, value: 1}]}]\n"
	for name, change := range map[string]func(g *gated) result{
		"_update":         func(g *gated) result { return g.nobody().send("POST", "/shop/_update/1", `{"doc":{"b":2}}`) },
		"_update, upsert": func(g *gated) result { return g.nobody().send("POST", "/shop/_update/1", `{"doc":{},"upsert":{}}`) },
		"_update, seen": func(g *gated) result {
			c := g.client("c")
			c.read("1")
			return c.send("POST", "/shop/_update/1", `{"doc":{"b":2}}`)
		},
		"PATCH": func(g *gated) result {
			return g.nobody().send("PATCH", "/shop/_doc/1", `{"b":2}`, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/merge-patch+json")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, rules)
			g.rest = `,"data_stream":"s"`
			g.put("1", `{"a":1}`)
			r := change(g)
			if stored := g.stored("1"); strings.Contains(stored, "_w") || strings.Contains(stored, `"t"`) || !strings.Contains(r.outcome, "untransformed") {
				t.Errorf("%v; %s is stored", r, stored)
			}
		})
	}
}
