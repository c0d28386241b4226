package app

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/bulk"
	"optimist/internal/enginetest"
	"optimist/internal/outcome"
)

// lines makes a bulk of the lines that are given with commas of their own, one after the other.
func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

// told is what an answer to a bulk says of its items: status, result or type of error, one after the other.
func told(a answer) string {
	var out []string
	gjson.Get(a.Body, "items").ForEach(func(_, item gjson.Result) bool {
		item.ForEach(func(verb, did gjson.Result) bool {
			out = append(out, fmt.Sprintf("%s %d %s%s", verb.Str, did.Get("status").Int(), did.Get("result").Str, did.Get("error.type").Str))
			return true
		})
		return true
	})
	return strings.Join(out, ", ")
}

// bulked holds what became of a bulk: its items, and its outcome.
func (w *world) bulked(a answer, items, outcome string) {
	w.t.Helper()
	if a.Status != 200 || told(a) != items || a.Outcome() != outcome || !gjson.Valid(a.Body) {
		w.t.Errorf("got %d %s [%s]: %s\nwant %s [%s]", a.Status, told(a), a.Outcome(), a.Body, items, outcome)
	}
	if gjson.Get(a.Body, "errors").Bool() != (strings.Contains(items, "exception") || strings.Contains(items, " 428 ") || strings.Contains(items, " 504 ")) {
		w.t.Errorf("errors is wrong: %s", a.Body)
	}
}

// holds compares what is stored of documents: target, source, target, source.
func (w *world) holds(documents ...string) {
	w.t.Helper()
	for i := 0; i+1 < len(documents); i += 2 {
		if got := w.stored(documents[i]); got != documents[i+1] && (documents[i+1] != "" || !strings.Contains(got, "error")) {
			w.t.Errorf("%s is %s, want %s", documents[i], got, documents[i+1])
		}
	}
}

const (
	doc2 = "/shop/_doc/2"
	doc3 = "/shop/_doc/3"
)

// TestEachItemIsWrittenAsARequestOfItsOwn has a session read documents, others change some of them, and the session write them by a bulk.
func TestEachItemIsWrittenAsARequestOfItsOwn(t *testing.T) {
	const index1, update1, delete1 = `{"index":{"_id":"1"}}`, `{"update":{"_id":"1"}}`, `{"delete":{"_id":"1"}}`
	for name, c := range map[string]struct {
		rule    string // more of it
		before  string // stored before; default {"a":1,"b":1}
		absent  bool   // there is none before
		blind   bool   // the session doesn't read
		others  string // what others store after the read; "-": they delete it
		bulk    string
		items   string
		outcome string // of a named session
		stored  string
	}{
		"guarded": {bulk: lines(index1, `{"a":2,"b":1}`), items: "index 200 updated", outcome: "guarded;items=1;guarded=1",
			stored: `{"a":2,"b":1}`},
		"merged": {others: `{"a":1,"b":2}`, bulk: lines(index1, `{"a":2,"b":1}`), items: "index 200 updated", outcome: "merged;items=1;merged=1",
			stored: `{"a":2,"b":2}`},
		"a part guarded": {bulk: lines(update1, `{"doc":{"a":2}}`), items: "update 200 updated", outcome: "guarded;items=1;guarded=1",
			stored: `{"a":2,"b":1}`},
		"a part merged": {others: `{"a":3,"b":2}`, rule: ", merge: {paths: {/a: sum}}", bulk: lines(update1, `{"doc":{"a":2}}`), items: "update 200 updated",
			outcome: "merged;items=1;merged=1", stored: `{"a":4,"b":2}`},
		"a part without a base": {blind: true, bulk: lines(update1, `{"doc":{"a":2}}`), items: "update 200 updated", outcome: "retried;items=1;retried=1",
			stored: `{"a":2,"b":1}`},
		"a part that retries by itself": {blind: true, bulk: lines(`{"update":{"_id":"1","retry_on_conflict":2}}`, `{"doc":{"a":2}}`), items: "update 200 updated",
			outcome: "passed;attempts=1;base=none", stored: `{"a":2,"b":1}`},
		"a noop": {bulk: lines(update1, `{"doc":{"a":1}}`), items: "update 200 noop", outcome: "guarded;items=1;guarded=1", stored: `{"a":1,"b":1}`},
		"an upsert": {absent: true, bulk: lines(update1, `{"doc":{"a":2},"doc_as_upsert":true}`), items: "update 201 created",
			outcome: "guarded;items=1;guarded=1", stored: `{"a":2}`},
		"an upsert that others were faster with": {absent: true, others: `{"b":2}`, bulk: lines(update1, `{"doc":{"a":2},"doc_as_upsert":true}`), items: "update 200 updated",
			outcome: "merged;items=1;merged=1", stored: `{"b":2,"a":2}`},
		"a document that wasn't there": {absent: true, bulk: lines(index1, `{"a":2}`), items: "index 201 created", outcome: "guarded;items=1;guarded=1",
			stored: `{"a":2}`},
		"a document that wasn't there, and is": {absent: true, others: `{"b":2}`, bulk: lines(index1, `{"a":2}`), items: "index 200 updated",
			outcome: "merged;items=1;merged=1", stored: `{"b":2,"a":2}`},
		"a create": {absent: true, bulk: lines(`{"create":{"_id":"1"}}`, `{"a":2}`), items: "create 201 created", outcome: "guarded;items=1;guarded=1",
			stored: `{"a":2}`},
		"a create of what exists": {others: `{"a":1,"b":2}`, bulk: lines(`{"create":{"_id":"1"}}`, `{"a":2}`), items: "create 409 version_conflict_engine_exception",
			outcome: "passed;items=1;passed=1", stored: `{"a":1,"b":2}`},
		"an index that is a create": {others: `{"a":1,"b":2}`, bulk: lines(`{"index":{"_id":"1","op_type":"create"}}`, `{"a":2}`),
			items: "create 409 version_conflict_engine_exception", outcome: "passed;items=1;passed=1", stored: `{"a":1,"b":2}`},
		"a delete": {bulk: lines(delete1), items: "delete 200 deleted", outcome: "guarded;items=1;guarded=1"},
		"a delete of what was changed, by rule": {others: `{"a":1,"b":2}`, rule: ", on_delete_conflict: fail", bulk: lines(delete1), items: "delete 409 version_conflict_engine_exception",
			outcome: "guarded;items=1;guarded=1", stored: `{"a":1,"b":2}`},
		"a delete of what was changed": {others: `{"a":1,"b":2}`, bulk: lines(delete1), items: "delete 200 deleted",
			outcome: "merged;items=1;merged=1;overwrote=1"},
		"a delete of what was deleted": {others: "-", bulk: lines(delete1), items: "delete 404 not_found", outcome: "merged;items=1;merged=1"},
		"a write of what was deleted":  {others: "-", bulk: lines(index1, `{"a":2}`), items: "index 409 version_conflict_engine_exception", outcome: "guarded;items=1;guarded=1"},
		"index then delete": {others: `{"a":1,"b":2}`, bulk: lines(index1, `{"a":2,"b":1}`, delete1), items: "index 200 updated, delete 200 deleted",
			outcome: "merged;items=2;guarded=1;merged=1"},
		"index then delete, undisturbed": {bulk: lines(index1, `{"a":2,"b":1}`, delete1), items: "index 200 updated, delete 200 deleted",
			outcome: "guarded;items=2;guarded=2"},
		"create then update": {absent: true, bulk: lines(`{"create":{"_id":"1"}}`, `{"a":2}`, update1, `{"doc":{"b":3}}`), items: "create 201 created, update 200 updated",
			outcome: "guarded;items=2;guarded=2", stored: `{"a":2,"b":3}`},
		"delete then create": {bulk: lines(delete1, `{"create":{"_id":"1"}}`, `{"a":2}`), items: "delete 200 deleted, create 201 created",
			outcome: "guarded;items=2;guarded=2", stored: `{"a":2}`},
		"twice": {others: `{"a":1,"b":2}`, bulk: lines(index1, `{"a":2,"b":1}`, index1, `{"a":3,"b":1}`), items: "index 200 updated, index 200 updated",
			outcome: "merged;items=2;merged=2", stored: `{"a":3,"b":2}`},
		"the first of them fails": {bulk: lines(`{"create":{"_id":"1"}}`, `{"a":2}`, index1, `{"a":3,"b":1}`), items: "create 409 version_conflict_engine_exception, index 200 updated",
			outcome: "guarded;items=2;passed=1;guarded=1", stored: `{"a":3,"b":1}`},
		"own guard": {bulk: lines(`{"index":{"_id":"1","if_seq_no":0,"if_primary_term":1}}`, `{"a":2}`), items: "index 200 updated",
			outcome: "guarded;items=1;guarded=1", stored: `{"a":2}`},
		"own guard that is old": {others: `{"a":1,"b":2}`, bulk: lines(`{"index":{"_id":"1","if_seq_no":0,"if_primary_term":1}}`, `{"a":2,"b":1}`),
			items: "index 409 version_conflict_engine_exception", outcome: "guarded;items=1;guarded=1", stored: `{"a":1,"b":2}`},
		"own guard that is old, and merged": {rule: ", base: {explicit: merge}", others: `{"a":1,"b":2}`,
			bulk: lines(`{"index":{"_id":"1","if_seq_no":0,"if_primary_term":1}}`, `{"a":2,"b":1}`), items: "index 200 updated", outcome: "merged;items=1;merged=1", stored: `{"a":2,"b":2}`},
		"own version": {bulk: lines(`{"index":{"_id":"1","version":7,"version_type":"external"}}`, `{"a":2}`), items: "index 200 updated",
			outcome: "guarded;items=1;guarded=1", stored: `{"a":2}`},
		"a transform": {rule: ", transform: [{op: add, path: /c, value: 1}]", blind: true, bulk: lines(index1, `{"a":2}`, `{"create":{"_id":"2"}}`, `{"a":2}`, `{"index":{}}`, `{"a":2}`, delete1),
			items: "index 200 updated, create 201 created, index 201 created, delete 200 deleted", outcome: "guarded;items=4;passed=3;guarded=1"},
		"a pipeline of an update that is made here": {rule: ", transform: [{op: add, path: /c, value: 1}]", blind: true,
			bulk: lines(`{"update":{"_id":"1","pipeline":"none"}}`, `{"doc":{"a":2}}`), items: "update 200 updated", outcome: "guarded;items=1;guarded=1",
			stored: `{"a":2,"b":1,"c":1}`},
		"a transform that reads": {rule: ", transform: [{op: increment, path: /n, value: 1}]", before: `{"a":1,"n":4}`, others: `{"a":1,"n":5}`,
			bulk: lines(index1, `{"a":2,"n":4}`), items: "index 200 updated", outcome: "merged;items=1;merged=1", stored: `{"a":2,"n":6}`},
		"unknown: fetch": {rule: ", base: {unknown: fetch}", blind: true, bulk: lines(index1, `{"a":2}`), items: "index 200 updated", outcome: "guarded;items=1;guarded=1",
			stored: `{"a":2}`},
		"unknown: reject": {rule: ", base: {unknown: reject}", blind: true, bulk: lines(index1, `{"a":2}`, `{"create":{"_id":"2"}}`, `{}`),
			items: "index 428 precondition_required, create 201 created", outcome: "refused;items=2;passed=1;refused=1", stored: `{"a":1,"b":1}`},
		"bulk: refuse": {rule: ", bulk: refuse", bulk: lines(index1, `{"a":2}`), items: "index 400 illegal_argument_exception", outcome: "refused;items=1;refused=1",
			stored: `{"a":1,"b":1}`},
		"line breaks": {before: "{\n\"a\":1,\r\n\"b\":1}", others: "{\n\"a\":1,\r\n\"b\":2}", bulk: lines(index1, `{"a":2,"b":1}`), items: "index 200 updated",
			outcome: "merged;items=1;merged=1", stored: "{\n\"a\":2,\r\n\"b\":2}"},
		"empty lines, and ends as Windows has them": {others: `{"a":1,"b":2}`, bulk: "\r\n\n" + index1 + "\r\n{\"a\":2,\"b\":1}\r\n\r\n", items: "index 200 updated",
			outcome: "merged;items=1;merged=1", stored: `{"a":2,"b":2}`},
	} {
		for _, session := range []string{"s", ""} {
			t.Run(name+" "+session, func(t *testing.T) {
				t.Parallel()
				// begin makes a world, in which the session has read the document, and others have changed it since.
				begin := func() (*world, func(method, target, body string) answer) {
					w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}"+c.rule+"}\n", Identity{Infer: session == "", Address: true})
					if w.put("/shop", `{}`); !c.absent {
						w.put(doc1, cmp.Or(c.before, `{"a":1,"b":1}`))
					}
					ask := func(method, target, body string) answer {
						return w.ask(w.proxied, method, target, body, "Optimist-Session", session)
					}
					if !c.blind {
						ask("GET", doc1, "")
					}
					switch c.others {
					case "":
					case "-":
						w.ask(w.direct, "DELETE", doc1, "")
					default:
						w.put(doc1, c.others)
					}
					return w, ask
				}
				w, ask := begin()
				a := ask("POST", "/shop/_bulk", c.bulk)
				w.bulked(a, c.items, cmp.Or(a.Outcome(), c.outcome))
				if session != "" && a.Outcome() != c.outcome {
					t.Errorf("the outcome is %s, want %s", a.Outcome(), c.outcome)
				}
				w.holds(doc1, c.stored)
				if strings.Contains(c.rule, "bulk:") {
					return
				}
				// The same by requests of their own.
				single, askSingle := begin()
				if kinds := single.oneByOne(askSingle, c.bulk, a); !strings.HasPrefix(a.Outcome(), "passed;attempts=1") && kinds != a.Outcome() {
					t.Errorf("the outcome is %s, and of requests of their own %s", a.Outcome(), kinds)
				}
				single.holds(doc1, c.stored)
				// What the session knows afterwards is the same, too.
				for _, v := range []*world{w, single} {
					v.put(doc3, `{}`) // so that no numbers fit by chance
				}
				after, want := ask("PUT", doc1, `{"a":9}`), askSingle("PUT", doc1, `{"a":9}`)
				if after.Status != want.Status || after.Outcome() != want.Outcome() {
					t.Errorf("then a PUT is %d [%s], and behind requests of their own %d [%s]", after.Status, after.Outcome(), want.Status, want.Outcome())
				}
			})
		}
	}
}

// oneByOne sends the items of a bulk as requests of their own, compares the answers, and returns the outcome that a bulk of theirs has.
func (w *world) oneByOne(ask func(method, target, body string) answer, text string, a answer) string {
	w.t.Helper()
	var account outcome.Items
	items := gjson.Get(a.Body, "items").Array()
	reader := bulk.NewReader([]byte(text), bulk.Defaults{Index: "shop"})
	for k := 0; ; k++ {
		it, ok, err := reader.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return string(account.Append(nil))
		}
		method, target := it.Request(nil)
		one := ask(string(method), string(target), string(it.Source))
		did := items[k].Get(it.Verb)
		if did.Get("status").Int() != int64(one.Status) || did.Get("result").Str != gjson.Get(one.Body, "result").Str ||
			did.Get("error.type").Str != gjson.Get(one.Body, "error.type").Str || did.Get("_version").Int() != gjson.Get(one.Body, "_version").Int() {
			w.t.Errorf("item %d is %s; by a request of its own %d %s", k, did.Raw, one.Status, one.Body)
		}
		kind, _, _ := strings.Cut(one.Outcome(), ";")
		o := outcome.Outcome{Ambiguous: strings.Contains(one.Outcome(), "ambiguous"), Untransformed: strings.Contains(one.Outcome(), "untransformed")}
		if strings.Contains(one.Outcome(), "overwrote") {
			o.Overwrote = []string{"/"}
		}
		for o.Kind = outcome.Passed; o.Kind.String() != kind; o.Kind++ {
		}
		account.Add(&o)
	}
}

// TestAnItemThatGoesByItselfHasNoParametersOfUpdates: the stored document has several lines, so that its merge doesn't fit into a bulk.
func TestAnItemThatGoesByItselfHasNoParametersOfUpdates(t *testing.T) {
	for _, query := range []string{"?_source=true", "?_source_includes=a", "?_source_excludes=b"} {
		w := newWorld(t, shopRule, Identity{})
		w.put(doc1, "{\n\"a\":1,\n\"b\":1}")
		w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
		w.put(doc1, "{\n\"a\":1,\n\"b\":2}")
		a := w.ask(w.proxied, "POST", "/shop/_bulk"+query, lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`), "Optimist-Session", "s")
		w.bulked(a, "index 200 updated", "merged;items=1;merged=1")
		w.holds(doc1, "{\n\"a\":2,\n\"b\":2}")
	}
}

// TestAWriteThatFailsIsNotMerged: the engine takes no merge of it.
func TestAWriteThatFailsIsNotMerged(t *testing.T) {
	engine := enginetest.Serve(t)
	var guarded atomic.Int64
	between := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
		enginetest.Body(r) // all of it is here before the answer
		bulk := strings.HasSuffix(r.URL.Path, "/_bulk")
		if r.Method == http.MethodPut && r.URL.Query().Has("if_seq_no") || bulk {
			guarded.Add(1)
		}
		if guarded.Load() < 2 {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		const refusal = `{"type":"mapper_parsing_exception","reason":"for the test"}`
		if bulk {
			fmt.Fprintf(rw, `{"took":1,"errors":true,"items":[{"index":{"_index":"shop","_id":"1","status":400,"error":%s}}]}`, refusal)
			return true
		}
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(rw, `{"error":%s,"status":400}`, refusal)
		return true
	})
	for _, single := range []bool{true, false} {
		guarded.Store(0)
		w := newWorldOn(t, shopRule, Identity{}, between)
		enginetest.Ask(t, "PUT", engine+doc1, `{"a":1,"b":1}`)
		w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
		enginetest.Ask(t, "PUT", engine+doc1, `{"a":1,"b":2}`)
		if single {
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2,"b":1}`, "Optimist-Session", "s"), 400, "guarded;attempts=2;base=session")
			continue
		}
		a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`), "Optimist-Session", "s")
		w.bulked(a, "index 400 mapper_parsing_exception", "guarded;items=1;guarded=1")
	}
}

// TestAnUpdateWhoseGuardIsInItsBodyIsNotRetried: OpenSearch takes a guard there, and refuses one together with retry_on_conflict. Of a bulk,
// it refuses the whole.
func TestAnUpdateWhoseGuardIsInItsBodyIsNotRetried(t *testing.T) {
	const old, current = `{"doc":{"a":2},"if_seq_no":0,"if_primary_term":1}`, `{"doc":{"a":2},"if_primary_term":1,"if_seq_no":1}`
	for _, rule := range []string{"", ", merge: {paths: {/a: sum}}", ", base: {explicit: merge}"} {
		for _, session := range []string{"", "s"} {
			for body, want := range map[string]int{old: 409, current: 200} {
				w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}"+rule+"}\n", Identity{})
				w.put(doc1, `{"a":1,"b":1}`)
				w.put(doc1, `{"a":1,"b":2}`)
				if session != "" {
					w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", session)
				}
				a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"2"}}`, `{}`, `{"update":{"_id":"1"}}`, body), "Optimist-Session", session)
				if got := gjson.Get(a.Body, "items.1.update.status").Int(); got != int64(want) {
					t.Errorf("rule %q, session %q: %d %s [%s], want %d", rule, session, a.Status, a.Body, a.Outcome(), want)
				}
				w.put(doc3, `{}`)
				if body = strings.ReplaceAll(body, `"if_seq_no":1`, `"if_seq_no":3`); want == 200 {
					n := gjson.Get(w.ask(w.direct, "GET", doc1, "").Body, "_seq_no").Raw
					body = strings.ReplaceAll(body, `"if_seq_no":3`, `"if_seq_no":`+n)
				}
				body = strings.ReplaceAll(body, `"a":2`, `"a":3`)
				if a := w.ask(w.proxied, "POST", "/shop/_update/1", body, "Optimist-Session", session); a.Status != want {
					t.Errorf("rule %q, session %q, alone: %d %s [%s], want %d", rule, session, a.Status, a.Body, a.Outcome(), want)
				} else if !strings.HasPrefix(a.Outcome(), "guarded;attempts=1;base=explicit") {
					t.Errorf("rule %q, session %q, alone: the outcome is %s", rule, session, a.Outcome())
				}
			}
		}
	}
}

// An action may say by an object what of the document its answer shows.
func TestTheAnswerToAnUpdateShowsWhatItsActionAsksFor(t *testing.T) {
	w := newWorld(t, "rules: [{name: r, transform: [{op: default, path: /x, value: 1}]}]", Identity{})
	w.put(doc1, `{"s":1,"t":1}`)
	a := w.ask(w.proxied, "POST", "/shop/_bulk?_source=false", lines(`{"update":{"_id":"1","_source":{"includes":["s"]}}}`, `{"doc":{"s":2}}`))
	if got := gjson.Get(a.Body, "items.0.update.get._source").Raw; got != `{"s":2}` {
		t.Errorf("the answer shows %s: %d %s", got, a.Status, a.Body)
	}
}

// Members that the engines refuse are no other way to say what they take.
func TestABulkThatTheEngineRefusesIsRefused(t *testing.T) {
	for _, member := range []string{`"_routing":"a"`, `"_version":1`, `"_retry_on_conflict":1`, `"_type":"_doc"`} {
		w := newWorld(t, "", Identity{})
		w.put(doc1, `{"a":1}`)
		w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
		bulk := lines(`{"index":{"_id":"1",`+member+`}}`, `{"a":2}`)
		direct := w.ask(w.direct, "POST", "/shop/_bulk", bulk)
		if a := w.ask(w.proxied, "POST", "/shop/_bulk", bulk, "Optimist-Session", "s"); a.Status != direct.Status || a.Status != 400 {
			t.Errorf("%s: %d %s, without optimist %d %s", member, a.Status, a.Body, direct.Status, direct.Body)
		}
	}
}

// What is answered here is refused where the engine would refuse it.
func TestANoopIsRefusedWhereTheEngineRefusesItsRequest(t *testing.T) {
	w := newWorld(t, "rules: [{name: r, transform: [{op: default, path: /x, value: 1}]}]", Identity{})
	w.put(doc1, `{"a":1,"x":1}`)
	for _, c := range [][2]string{
		{"/shop/_update/1?x=1", `{"doc":{"a":1}}`}, {"/shop/_update/1?pipeline=_none", `{"doc":{"a":1}}`}, {"/shop/_update/1?pretty=TRUE", `{"doc":{"a":1}}`},
		{"/shop/_update/" + strings.Repeat("i", 513), `{"doc":{"a":1}}`},
		{"/shop/_bulk?pretty=TRUE", lines(`{"update":{"_id":"1"}}`, `{"doc":{"a":1}}`)},
	} {
		direct, through := w.ask(w.direct, "POST", c[0], c[1]), w.ask(w.proxied, "POST", c[0], c[1])
		if direct.Status != through.Status {
			t.Errorf("%.40s: %d %s, without optimist %d %s", c[0], through.Status, through.Body, direct.Status, direct.Body)
		}
	}
	w.wants(w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"a":1}}`), 200, "guarded")
}

// The path of a bulk may begin with a prefix by which a gateway tells tenants apart: then nobody knows which document an item means that names
// an index itself. A rule that refuses writes, or changes them, isn't passed by because of that.
func TestAnItemThatNamesAnotherIndexThanThePath(t *testing.T) {
	rules := `
rules:
  - name: stock
    match: {index: [shop]}
    transform: [{op: refuse, message: sold out, when: candidate.n < 0}]
  - name: rest
`
	w := newWorldOn(t, rules, Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/tenant") {
			return false
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"name":"node","cluster_name":"c","version":{"number":"9.0.0"},"tagline":"You Know, for Search"}`)
		return true
	}))
	w.put("/other/_doc/1", `{}`)
	w.put(doc1, `{"n":1}`)
	item := `{"index":{"_index":"shop","_id":"1"}}`
	for path, want := range map[string]string{
		"/_bulk":        "index 409 version_conflict_engine_exception",
		"/shop/_bulk":   "index 409 version_conflict_engine_exception",
		"/other/_bulk":  "index 409 version_conflict_engine_exception",
		"/nobody/_bulk": "index 400 illegal_argument_exception",
		"/tenant/_bulk": "index 400 illegal_argument_exception",
	} {
		if got := told(w.ask(w.proxied, "POST", path, lines(item, `{"n":-1}`), "Content-Type", "application/x-ndjson")); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	w.holds(doc1, `{"n":1}`)
}
