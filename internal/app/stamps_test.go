package app

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
	"optimist/internal/rule"
	"optimist/internal/stamp"
	"optimist/internal/watch"
)

const stamping = "rules:\n- {name: r, match: {index: [shop, \"shop-*\", store]}, base: {stamp: _rev, reads: [get, mget, search]}}\n- {name: rest}\n"

// severalShards is an index in which another routing may lead to another document.
const severalShards = `{"settings":{"number_of_shards":2}}`

var stampText = regexp.MustCompile(`,?"_rev":"(\d+-\d+-[0-9a-v]{10}(?:-[0-9a-v]{10})?)"`)

// stamps are those in a body, in their order.
func stamps(body string) (found []string) {
	for _, m := range stampText.FindAllStringSubmatch(body, -1) {
		found = append(found, m[1])
	}
	return found
}

// unstampedBody is a body without its stamps.
func unstampedBody(body string) string { return stampText.ReplaceAllString(body, "") }

func TestWhatIsServedWholeIsStampedAndNothingElseOfItChanges(t *testing.T) {
	w := newWorld(t, stamping, Identity{Infer: true, Address: true})
	w.put("/shop", `{"aliases":{"store":{}}}`)
	w.put(doc1+"?refresh=true", "{ \"a\" : 9007199254740993.0 ,\n \"\\u00e9\":\"x\"}")
	w.put("/shop/_doc/2?refresh=true", `{}`)
	w.put("/shop/_doc/spaced?refresh=true", " \n {\"d\":{\"_rev\":1}}\t ")
	w.put("/shop/_doc/ours?refresh=true", `{"_rev":"0-1-0123456789","a":1}`)
	w.put("/shop-2/_doc/r%C3%BC?routing=x&refresh=true", `{"b":1}`)
	w.put("/other/_doc/1?refresh=true", `{"c":1}`)
	for _, q := range []struct {
		method, target, body string
		stamps               int
	}{
		{"GET", doc1, "", 1}, {"GET", "/store/_doc/1", "", 1}, {"GET", "/shop-2/_doc/r%C3%BC?routing=x", "", 1}, {"GET", doc1 + "?_source=true", "", 1},
		{"GET", "/shop/_doc/spaced", "", 1}, {"GET", "/shop/_doc/2", "", 1}, {"GET", doc1 + "?pretty", "", 1},
		{"GET", "/shop/_source/1", "", 1}, {"GET", "/shop/_source/spaced", "", 1}, {"GET", "/shop/_source/1?pretty", "", 1}, {"GET", "/shop/_source/1?pretty=false", "", 1},
		{"POST", "/shop/_mget", `{"ids":["1","absent","2"]}`, 2}, {"POST", "/_mget", `{"docs":[{"_index":"shop","_id":"1"},{"_index":"other","_id":"1"},{"_index":"shop-2","_id":"rü","routing":"x"}]}`, 2},
		{"POST", "/shop/_mget", `{"docs":[{"_id":"1","_source":false},{"_id":"2","_source":true},{"_id":"1","_source":["a"]},{"_id":"spaced"}]}`, 2},
		{"POST", "/shop/_search", `{"query":{"match_all":{}}}`, 4}, {"GET", "/shop/_search", "", 4}, {"POST", "/_search", `{}`, 5}, {"POST", "/shop-2,other/_search?pretty", `{}`, 1}, {"POST", "/s*/_search", `{"_source":true}`, 5},
		{"POST", "/other,shop-2/_search", `{}`, 1}, {"POST", "/store/_search?seq_no_primary_term=true", `{"version":true}`, 4},
		// What asks for less, or isn't there.
		{"GET", doc1 + "?_source_includes=a", "", 0}, {"GET", doc1 + "?filter_path=_source", "", 0}, {"GET", doc1 + "?_source=a", "", 0}, {"GET", "/shop/_doc/absent", "", 0},
		{"GET", "/shop/_source/absent", "", 0}, {"GET", "/none/_doc/1", "", 0}, {"GET", "/shop/_source/1?_source_includes=a", "", 0},
		{"POST", "/shop/_search", `{"_source":["a"]}`, 0}, {"POST", "/shop/_search?_source=a", `{}`, 0}, {"POST", "/shop-2/_search?filter_path=hits.hits._source", `{}`, 0},
		{"POST", "/shop/_search", `{"_source":false}`, 0}, {"POST", "/shop/_mget?_source=false", `{"ids":["1"]}`, 0},
		// What no rule stamps.
		{"GET", "/other/_doc/1", "", 0}, {"GET", "/other/_source/1", "", 0}, {"POST", "/other/_search", `{}`, 0}, {"POST", "/other/_mget", `{"ids":["1"]}`, 0},
	} {
		direct, proxied := w.ask(w.direct, q.method, q.target, q.body), w.ask(w.proxied, q.method, q.target, q.body)
		got := stamps(proxied.Body)
		if q.body != "" {
			zip := w.ask(w.proxied, q.method, q.target, zipped(q.body), "Content-Encoding", "gzip")
			if len(stamps(zip.Body)) != q.stamps || took(unstampedBody(zip.Body)) != took(unstampedBody(proxied.Body)) {
				t.Errorf("%s %s %s, compressed: %d %s", q.method, q.target, q.body, zip.Status, zip.Body)
			}
		}
		if strings.Contains(direct.Body, "ours") {
			direct.Body = strings.ReplaceAll(direct.Body, `{"_rev":"0-1-0123456789","a":1}`, `{"a":1}`) // the stamp has its place
		}
		if len(got) != q.stamps || direct.Status != proxied.Status || took(direct.Body) != took(unstampedBody(proxied.Body)) || proxied.Header.Get(watch.StampField) != "" {
			t.Errorf("%s %s %s: %d stamps, not %d [%s]\ndirect  %d %s\nproxied %d %s", q.method, q.target, q.body, len(got), q.stamps,
				proxied.Header.Get(watch.StampField), direct.Status, direct.Body, proxied.Status, proxied.Body)
		}
		if strings.Contains(proxied.Body, "\"_source\"") && direct.Status == 200 && !gjson.Valid(proxied.Body) {
			t.Errorf("%s: no JSON any more: %s", q.target, proxied.Body)
		}
	}
}

func TestAHeadTellsTheLengthThatTheGetHas(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put(doc1, `{"a":1}`)
	for _, target := range []string{doc1, "/shop/_source/1", "/shop/_doc/2"} {
		get, head := w.ask(w.proxied, "GET", target, ""), w.ask(w.proxied, "HEAD", target, "")
		if head.Status != get.Status || head.Header.Get("Content-Length") != get.Header.Get("Content-Length") || get.Status == 200 && len(stamps(get.Body)) != 1 {
			t.Errorf("%s: %d %s, and %d %s", target, get.Status, get.Header.Get("Content-Length"), head.Status, head.Header.Get("Content-Length"))
		}
	}
}

func TestAHeadIsNoRead(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put(doc1, `{"a":1}`)
	w.ask(w.proxied, "HEAD", doc1, "", "Optimist-Session", "s")
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=none")
}

func TestStampsSayWhatWasServed(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put("/shop", severalShards)
	w.put(doc1, `{"a":1}`)
	w.put(doc1+"?routing=x", `{"a":1}`)
	w.put("/shop-2/_doc/1", `{"a":1}`)
	seen := map[stamp.ID]bool{}
	copies := map[stamp.ID]bool{}
	for _, target := range []string{doc1, doc1 + "?routing=x", "/shop-2/_doc/1", doc1} {
		a := w.ask(w.proxied, "GET", target, "")
		s, ok := stamp.Parse([]byte(stamps(a.Body)[0]))
		if !ok || s.SeqNo != gjson.Get(a.Body, "_seq_no").Int() || s.PrimaryTerm != 1 || s.Copy == 0 {
			t.Errorf("%s: %+v in %s", target, s, a.Body)
		}
		seen[s.Document], copies[s.Copy] = true, true
	}
	if len(seen) != 3 || len(copies) != 4 {
		t.Errorf("%d documents of 3, %d copies of 4", len(seen), len(copies))
	}
}

// Where stale writes are refused, nothing depends on the copy, and the stamp of a revision is always the same.
func TestAStampThatIsOnlyHeldAgainstTheRevisionIsTheSameForAll(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _version}, on_conflict: fail}\n", Identity{})
	w.put(doc1, `{"a":1}`)
	first, second := w.ask(w.proxied, "GET", doc1, ""), w.ask(w.proxied, "GET", doc1, "")
	if first.Body != second.Body || !regexp.MustCompile(`"a":1,"_version":"0-1-[0-9a-v]{10}"}`).MatchString(first.Body) {
		t.Errorf("%s\n%s", first.Body, second.Body)
	}
	mine := gjson.Get(first.Body, "_source").Raw
	w.wants(w.ask(w.proxied, "PUT", doc1, strings.Replace(mine, "1", "2", 1)), 200, "guarded;attempts=1;base=stamp")
	w.wants(w.ask(w.proxied, "PUT", doc1, strings.Replace(mine, "1", "3", 1)), 409, "guarded;attempts=1;base=stamp")
	if got := w.stored(doc1); got != `{"a":2}` {
		t.Errorf("stored %s", got)
	}
	w.wants(w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":`+mine+`}`), 409, "guarded;attempts=1;base=stamp")
	fresh := gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source").Raw
	w.wants(w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":`+strings.Replace(fresh, "2", "4", 1)+`}`), 200, "guarded;attempts=1;base=stamp")
	if got := w.stored(doc1); got != `{"a":4}` {
		t.Errorf("stored %s", got)
	}
}

func TestAStampIsABaseWithoutASession(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put("/shop", `{"aliases":{"store":{}}}`)
	w.put(doc1, `{"a":1,"b":1}`)
	for i, read := range []func() string{
		func() string { return gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source").Raw },
		func() string { return w.ask(w.proxied, "GET", "/store/_source/1", "").Body },
		func() string {
			return gjson.Get(w.ask(w.proxied, "POST", "/_mget", `{"docs":[{"_index":"shop","_id":"1"}]}`).Body, "docs.0._source").Raw
		},
	} {
		mine := read()
		w.put(doc1, fmt.Sprintf(`{"a":%d,"b":%d}`, i, 100+i))
		a := w.ask(w.proxied, "PUT", "/store/_doc/1", `{"c":true,`+mine[1:])
		w.wants(a, 200, "merged;attempts=2;base=stamp")
		if got := w.stored(doc1); gjson.Get(got, "b").Int() != int64(100+i) || !gjson.Get(got, "c").Bool() || strings.Contains(got, "_rev") {
			t.Errorf("stored %s", got)
		}
		w.put(doc1, `{"a":1,"b":1}`)
	}
}

// The hits of a search are bases with their bodies only where the rule has them remembered.
func TestAHitsStampIsAGuardAtLeast(t *testing.T) {
	for _, c := range []struct {
		reads string
		Identity
	}{{"[get]", Identity{Infer: true}}, {"[get, search]", Identity{Infer: true}}, {"[get, search]", Identity{}}} {
		reads := c.reads
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _rev, reads: "+reads+"}}\n", c.Identity)
		w.put(doc1+"?refresh=true", `{"a":1,"b":1}`)
		hit := gjson.Get(w.ask(w.proxied, "POST", "/shop/_search", `{}`).Body, "hits.hits.0._source").Raw
		w.put(doc1, `{"a":1,"b":2}`)
		a := w.ask(w.proxied, "PUT", doc1, strings.Replace(hit, `"a":1`, `"a":2`, 1))
		if reads == "[get]" {
			w.wants(a, 409, "guarded;attempts=1;base=stamp;reason=numbers")
			continue
		}
		w.wants(a, 200, "merged;attempts=2;base=stamp")
		if got := w.stored(doc1); got != `{"a":2,"b":2}` {
			t.Errorf("stored %s", got)
		}
	}
}

func TestWhoSavesFromMemoryRevertsNothing(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _rev}, merge: {paths: {/n: sum}}}\n", Identity{Infer: true, Address: true})
	w.put(doc1, `{"n":10,"list":[]}`)
	read := func() string { return gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source._rev").Str }
	first, second := read(), read() // nothing tells the two apart
	save := func(n int, list, rev string) answer {
		return w.ask(w.proxied, "PUT", doc1, fmt.Sprintf(`{"n":%d,"list":[%s],"_rev":%q}`, n, list, rev))
	}
	w.wants(save(11, `"a"`, first), 200, "guarded;attempts=1;base=stamp")
	w.wants(save(12, `"x"`, second), 200, "merged;attempts=2;base=stamp")
	w.wants(save(14, `"a","b"`, first), 200, "merged;attempts=2;base=stamp")
	w.wants(save(12, `"x","y"`, second), 200, "merged;attempts=2;base=stamp")
	w.wants(save(14, `"a","b"`, first), 200, "merged;attempts=1;base=stamp") // nothing is new to it
	d := w.stored(doc1)
	if gjson.Get(d, "n").Int() != 16 || len(gjson.Get(d, "list").Array()) != 4 {
		t.Errorf("stored %s: of four saves that added 1, 2, 3 and 0, and an entry each", d)
	}
}

func TestAStampOfAnotherDocumentGuardsNothing(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put("/shop", severalShards)
	w.put(doc1, `{"a":1}`)
	w.put("/shop/_doc/2", `{"a":2}`)
	mine := gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source").Raw
	for _, target := range []string{"/shop/_doc/2", doc1 + "?routing=r", "/shop-2/_doc/1"} {
		a := w.ask(w.proxied, "PUT", target, mine)
		if a.Status > 201 || !strings.HasPrefix(a.Outcome(), "passed;attempts=1;base=none") {
			t.Errorf("%s: %d %s", target, a.Status, a.Outcome())
		}
		if got := w.stored(target); got != `{"a":1}` {
			t.Errorf("%s: stored %s", target, got)
		}
	}
}

func TestAStampOfAnIndexThatWasMadeAnewGuardsNothing(t *testing.T) {
	for _, by := range []string{"proxied", "direct"} {
		w := newWorld(t, stamping, Identity{})
		w.put(doc1, `{"a":1}`)
		mine := gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source").Raw
		url := map[string]string{"proxied": w.proxied, "direct": w.direct}[by]
		if by == "direct" { // what is known of the index is never older than a second where a stamp is held against it
			w.ask(w.proxied, "PUT", "/shop/_settings", `{"index":{"number_of_replicas":0}}`)
		}
		w.ask(url, "DELETE", "/shop", "")
		w.put(doc1, `{"a":"other"}`) // the same numbers again
		w.wants(w.ask(w.proxied, "PUT", doc1, mine), 200, "passed;attempts=1;base=")
	}
}

func TestWhatIsNoStampIsRefused(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put(doc1, `{"a":1}`)
	good := stamps(w.ask(w.proxied, "GET", doc1, "").Body)[0]
	for _, body := range []string{`{"_rev":1}`, `{"_rev":""}`, `{"_rev":"7"}`, `{"a":1,"_rev":{"x":1}}`, `{"_rev":"` + good + `","_rev":"0-1-0123456789"}`} {
		for _, target := range []string{"PUT " + doc1, "PUT /shop/_create/9", "POST /shop/_doc", "POST /shop/_update/1"} {
			method, path, _ := strings.Cut(target, " ")
			sent := body
			if strings.Contains(path, "_update") {
				sent = `{"doc":` + body + `}`
			}
			if a := w.ask(w.proxied, method, path, sent); a.Status != 400 || !strings.Contains(a.Body, "[_rev]") {
				t.Errorf("%s %s: %d %s", target, sent, a.Status, a.Body)
			}
		}
	}
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2,"_rev":null}`), 200, "passed;attempts=1;base=none")
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":3,"_rev":null}`), 200, "passed;attempts=1;base=none")
	if got := w.stored(doc1); got != `{"a":3}` {
		t.Errorf("stored %s", got)
	}
}

func TestNoWriteStoresAStamp(t *testing.T) {
	for _, mode := range []rule.Mode{rule.Guard, rule.Observe} {
		w := newWorld(t, stamping, Identity{Infer: true})
		w.put("/shop", `{"aliases":{"store":{}}}`)
		w.put(doc1, `{"a":1}`)
		mine := gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source").Raw
		w.app.rules.SetMode(mode)
		bulk := `{"index":{"_id":"b1"}}` + "\n" + mine + "\r\n" + `{"delete":{"_id":"none"}}` + "\n\n" + `{"create":{"_index":"shop-2","_id":"b2"}}` + "\n" + mine + "\n" +
			`{"update":{"_id":"b1"}}` + "\n" + `{"doc":` + mine + `,"upsert":` + mine + "}\n" + `{"index":{"_index":"other","_id":"b3"}}` + "\n" + `{"_rev":1}` + "\n"
		for _, q := range []struct{ method, target, body, name, value string }{
			{"PUT", doc1, mine, "X", "y"}, {"PUT", "/store/_doc/1", mine, "X", "y"}, {"PUT", "/shop/_doc/2", mine, "X", "y"}, {"PUT", "/shop/_create/3", mine, "X", "y"},
			{"PUT", "/shop/_doc/4?op_type=create", mine, "X", "y"}, {"POST", "/shop/_doc?refresh", mine, "X", "y"}, {"PUT", "/shop/_doc/5", zipped(mine), "Content-Encoding", "gzip"},
			{"POST", "/shop/_update/1", `{"doc":` + mine + `,"doc_as_upsert":true}`, "X", "y"}, {"POST", "/shop/_update/8", `{"doc":` + mine + `,"doc_as_upsert":true}`, "X", "y"}, {"POST", "/shop/_update/6", `{"doc":{"b":1},"upsert":` + mine + `}`, "X", "y"},
			{"PUT", "/shop/_doc/7?if_seq_no=0&if_primary_term=1", mine, "X", "y"}, {"POST", "/shop/_bulk?refresh", bulk, "Content-Type", "application/x-ndjson"},
		} {
			a := w.ask(w.proxied, q.method, q.target, q.body, q.name, q.value)
			if a.Status > 201 && a.Status != 409 || strings.Contains(a.Body, `"errors":true`) && !strings.Contains(q.target, "_bulk") {
				t.Errorf("%s %s: %d %s", q.method, q.target, a.Status, a.Body)
			}
			if mode == rule.Guard != (a.Outcome() != "") && !strings.HasPrefix(q.target, "/shop/_doc?") {
				t.Errorf("%s %s %s: outcome %q", mode, q.method, q.target, a.Outcome())
			}
		}
		all := w.ask(w.direct, "POST", "/shop,shop-2/_search?size=100", `{}`).Body
		if n := gjson.Get(all, "hits.total.value").Int(); n < 8 || len(stamps(all)) != 0 || strings.Contains(all, "_rev") {
			t.Errorf("%s: %d documents: %s", mode, n, all)
		}
		if got := w.stored("/other/_doc/b3"); got != `{"_rev":1}` {
			t.Errorf("%s: of an index that isn't stamped: %s", mode, got)
		}
	}
}

func TestObserveTakesOutStampsOnlyAndPutsNoneIn(t *testing.T) {
	w := newWorld(t, stamping, Identity{Infer: true})
	w.app.rules.SetMode(rule.Observe)
	w.put(doc1, `{"a":1}`)
	if a := w.ask(w.proxied, "GET", doc1, ""); len(stamps(a.Body)) != 0 {
		t.Errorf("%s", a.Body)
	}
	for _, body := range []string{`{"_rev":"1"}`, `{"_rev":"theirs"}`, `{"_rev":null}`} {
		if a := w.ask(w.proxied, "PUT", doc1, body); a.Status != 200 || w.stored(doc1) != body {
			t.Errorf("%s: %d, stored %s", body, a.Status, w.stored(doc1))
		}
	}
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.put(doc1, `{"a":2}`)
	before := w.counted("optimist_lost_updates_total")
	w.ask(w.proxied, "PUT", doc1, `{"a":3,"_rev":"0-1-0123456789"}`, "Optimist-Session", "s")
	if got := w.stored(doc1); got != `{"a":3}` {
		t.Errorf("stored %s", got)
	}
	if n := w.counted("optimist_lost_updates_total"); n != before+1 {
		t.Errorf("%d lost updates are counted after %d: the last one overwrote a change", n, before)
	}
	w.app.rules.SetMode(rule.Off)
	if w.ask(w.proxied, "PUT", doc1, `{"a":3,"_rev":"0-1-0123456789"}`); w.stored(doc1) != `{"a":3,"_rev":"0-1-0123456789"}` {
		t.Errorf("off changed %s", w.stored(doc1))
	}
}

func TestWhatCannotBeStampedSaysSo(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put(doc1+"?refresh=true", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	w.put("/shop/_doc/2?refresh=true", `{"a":1}`)
	for _, q := range []struct {
		method, target, body string
		stamps               int
	}{{"GET", doc1, "", 0}, {"GET", "/shop/_source/1", "", 0}, {"POST", "/shop/_mget", `{"ids":["1","2"]}`, 1}, {"POST", "/shop/_search", `{}`, 1}} {
		a := w.ask(w.proxied, q.method, q.target, q.body)
		if a.Status != 200 || a.Header.Get(watch.StampField) != "none;reason=too_large" || len(stamps(a.Body)) != q.stamps {
			t.Errorf("%s: %d %q, %d stamps", q.target, a.Status, a.Header.Get(watch.StampField), len(stamps(a.Body)))
		}
	}
	if a := w.ask(w.proxied, "GET", "/shop/_doc/2", "", "Authorization", "AWS4-HMAC-SHA256 Credential=x"); len(stamps(a.Body)) != 0 {
		t.Errorf("a client that signs what it writes can't have its stamps taken out: %s", a.Body)
	}
}

func TestAnUpdateShowsADocumentWithItsStamp(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put(doc1, `{"a":1,"b":1}`)
	for target, body := range map[string]string{"/shop/_update/1?_source=true": `{"doc":{"a":2}}`, "/shop/_update/1": `{"doc":{"a":3},"_source":true}`} {
		w.put(doc1, `{"a":1,"b":1}`)
		a := w.ask(w.proxied, "POST", target, body)
		source := gjson.Get(a.Body, "get._source")
		s, ok := stamp.Parse([]byte(source.Get("_rev").Str))
		if a.Status != 200 || !ok || s.SeqNo != gjson.Get(a.Body, "get._seq_no").Int() {
			t.Fatalf("%s: %d %s", target, a.Status, a.Body)
		}
		w.put(doc1, `{"a":2,"b":2}`)
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"c":1,`+source.Raw[1:]), 200, "merged;attempts=2;base=stamp")
		if got := w.stored(doc1); gjson.Get(got, "b").Int() != 2 || !gjson.Get(got, "c").Exists() {
			t.Errorf("stored %s", got)
		}
	}
	for _, part := range [][2]string{
		{"/shop/_update/1?_source=a", `{"doc":{"a":9}}`}, {"/shop/_update/1?_source=true&filter_path=get", `{"doc":{"a":10}}`},
		{"/shop/_update/1", `{"doc":{"a":11},"_source":["a"]}`}, {"/shop/_update/1?_source=true", `{"doc":{"a":12},"_source":["a"]}`},
		{"/shop/_update/1?_source=true", `{"doc":{"a":13},"\u005fsource":["a"]}`},
	} {
		target, body := part[0], part[1]
		if a := w.ask(w.proxied, "POST", target, body); a.Status != 200 || len(stamps(a.Body)) != 0 {
			t.Errorf("%s: %d %s", target, a.Status, a.Body)
		}
	}
}

// A client may read by an alias of several indices all the time, also if the engine can't say what that is.
func TestReadsAskSeldomWhetherANameIsStamped(t *testing.T) {
	for name, status := range map[string]int{"several indices": http.StatusNotFound, "nobody knows": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			w := newWorldOn(t, stamping, Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/all" {
					return false
				}
				asked.Add(1)
				out.WriteHeader(status)
				return true
			}))
			w.put("/shop", `{"aliases":{"all":{}}}`)
			w.put("/other", `{"aliases":{"all":{}}}`)
			before := asked.Load()
			for range 5 {
				for _, request := range []string{"POST /all/_search", "POST /all/_mget", "GET /all/_doc/1"} {
					method, target, _ := strings.Cut(request, " ")
					w.ask(w.proxied, method, target, `{"ids":["1"]}`[:len(`{"ids":["1"]}`)*strings.Count(target, "_mget")])
				}
			}
			if n := asked.Load() - before; n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestADocumentThatAnUpdateDeletesHasNoStamp(t *testing.T) {
	const answer = `{"_index":"shop","_id":"1","_version":2,"result":"deleted","_seq_no":1,"_primary_term":1,` +
		`"get":{"_seq_no":1,"_primary_term":1,"found":true,"_source":{"a":1}}}`
	w := newWorldOn(t, stamping, Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/shop/_update/1" {
			return false
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, answer)
		return true
	}))
	w.put("/shop/_doc/0", `{}`)
	a := w.ask(w.proxied, "POST", "/shop/_update/1", `{"script":"ctx.op='delete'","_source":true}`, "Optimist-Session", "s")
	if a.Status != 200 || a.Body != answer {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 201, "guarded;attempts=1;base=absent")
}

func TestAPatchMayCarryAStamp(t *testing.T) {
	w := newWorld(t, stamping, Identity{})
	w.put(doc1, `{"a":1}`)
	mine := stamps(w.ask(w.proxied, "GET", doc1, "").Body)[0]
	merge := func(a int) answer {
		return w.ask(w.proxied, "PATCH", doc1, fmt.Sprintf(`{"a":%d,"_rev":%q}`, a, mine), "Content-Type", "application/merge-patch+json")
	}
	if a := merge(2); a.Status != 200 || w.stored(doc1) != `{"a":2}` {
		t.Errorf("%d %s, stored %s", a.Status, a.Body, w.stored(doc1))
	}
	if a := merge(3); a.Status != 200 || w.stored(doc1) != `{"a":3}` {
		t.Errorf("again from the same copy: %d %s, stored %s", a.Status, a.Body, w.stored(doc1))
	}
	w.put(doc1, `{"a":4}`)
	if a := merge(5); a.Status != 409 || w.stored(doc1) != `{"a":4}` {
		t.Errorf("stale: %d %s, stored %s", a.Status, a.Body, w.stored(doc1))
	}
	for _, ops := range []string{`[{"op":"add","path":"/_rev","value":1}]`, `[{"op":"copy","from":"/_rev/x","path":"/b"}]`, `[{"op":"replace","path":"","value":{"_rev":"x"}}]`} {
		if a := w.ask(w.proxied, "PATCH", doc1, ops, "Content-Type", "application/json-patch+json"); a.Status != 400 || !strings.Contains(a.Body, "[_rev]") {
			t.Errorf("%s: %d %s", ops, a.Status, a.Body)
		}
	}
	shown := w.ask(w.proxied, "PATCH", doc1+"?_source=true", `[{"op":"add","path":"/_rev2","value":1}]`, "Content-Type", "application/json-patch+json")
	if shown.Status != 200 || len(stamps(gjson.Get(shown.Body, "get._source").Raw)) != 1 {
		t.Errorf("%d %s", shown.Status, shown.Body)
	}
}

// The engines take docs and ids in one body, and answer in the order of both: what is one document's must not be taken for
// another's.
func TestAMultiGetOfDocsAndIDsTellsThemApart(t *testing.T) {
	for name, rules := range map[string]string{"stamps": stamping, "sessions": ""} {
		w := newWorld(t, rules, Identity{})
		for _, target := range []string{doc1, "/shop/_doc/2"} {
			w.put(target, `{"of":"`+target+`"}`)
		}
		for _, body := range []string{
			`{"docs":[{"_id":"1"}],"ids":["2"]}`, `{"ids":["1","2"],"docs":[{"_id":"1"}]}`, `{"ids":["2"],"docs":[{"_id":"1"}]}`,
		} {
			got := w.ask(w.proxied, "POST", "/shop/_mget", body, "Optimist-Session", name+body)
			for _, d := range gjson.Get(got.Body, "docs").Array() {
				target := d.Get("_source.of").String()
				a := w.ask(w.proxied, "GET", target, "")
				if name == "stamps" && stamps(d.Raw)[0][:14] != stamps(a.Body)[0][:14] {
					t.Errorf("%s: %s, and by itself %s", body, d.Raw, a.Body)
				}
				sent := strings.Replace(d.Get("_source").Raw, "{", `{"changed":true,`, 1)
				account := w.ask(w.proxied, "PUT", target, sent, "Optimist-Session", name+body, "Optimist-Dry-Run", "true").Body
				if gjson.Get(account, "change.#").Int() != 1 || gjson.Get(account, "outcome.attempts").Int() != 1 {
					t.Errorf("%s: %s: %s", body, target, account)
				}
			}
		}
	}
}
