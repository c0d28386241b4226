package app_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// randomBulks is how many random bulks are compared on an engine. The long tests compare more.
func randomBulks(e target) int {
	n := 40
	if e.name == "embedded" {
		n = 200
	}
	if long() {
		n *= 50
	}
	return n
}

// maker makes random bulks: most of their items are valid, some are odd, and some break the whole.
type maker struct {
	*rand.Rand
	most  int  // items of a bulk
	large bool // documents that are too large to be held
}

func (m *maker) pick(of ...string) string { return of[m.IntN(len(of))] }

// rarely picks one of the words in one of n cases.
func (m *maker) rarely(n int, of ...string) string {
	if m.IntN(n) > 0 {
		return ""
	}
	return m.pick(of...)
}

// breaks is true for one of n bulks of items that it is asked for: what breaks one item refuses the whole.
func (m *maker) breaks(n int) bool { return m.IntN(n*m.most/2) == 0 }

func (m *maker) document() string {
	return m.pick(`{"a":1}`, `{"a":1.50,"b":[1,2]}`, `{ "t" : "ü\u00e9" }`, `{}`, `{"n":9007199254740993}`, fmt.Sprintf(`{"a":%d}`, m.IntN(9)), `{"o":{"c":null}}`) +
		m.rarely(60, "x", " ", "\t", "}")
}

// largeDocument is larger than optimist holds in this test.
func (m *maker) largeDocument() string {
	if !m.large || m.IntN(40) > 0 {
		return m.document()
	}
	return `{"l":"` + strings.Repeat("x", tiny+m.IntN(3*tiny)) + `"}`
}

// odd is a part that the engines refuse the whole bulk for; mostly it is none.
func (m *maker) odd(of ...string) string {
	if m.breaks(20) {
		return m.pick(of...)
	}
	return `{"doc":{"a":1}}`
}

func (m *maker) part() string {
	return m.pick(`{"doc":{"a":2}}`, `{"doc":{"a":1}}`, `{"doc":{"b":[3]},"doc_as_upsert":true}`, `{"doc":{"a":7},"upsert":{"u":1}}`, `{"doc":{"a":2},"_source":true}`,
		`{"doc":{"a":1},"detect_noop":false}`, `{"doc":{}}`, `{"doc":{"a":3},"upsert":{}}`, `{"\u0064oc":{"a":4}}`, m.odd(`{"upsert":{}}`, `{}`, `{"doc":{},"script":{"source":"x"}}`, `{"doc_as_upsert":true}`),
		`{"script":{"source":"ctx._source.a = 5"},"upsert":{"s":1}}`, `{"script":{"source":"ctx.op = 'none'"}}`,
		`{"script":{"source":"ctx.op = 'delete'"}}`, `{"script":{"source":"ctx._source.a = 6"},"scripted_upsert":true,"upsert":{}}`) + m.rarely(200, "x")
}

func (m *maker) action(verb string) string {
	members := []string{}
	add := func(member string) {
		if member != "" {
			members = append(members, member)
		}
	}
	add(m.rarely(3, `"_index":"shop"`, `"_index":"store"`, `"_index":"other"`, `"_index":null`, `"_index":"no/t"`, `"\u005findex":"store"`))
	id := m.pick(`"_id":"1"`, `"_id":"2"`, `"_id":"3"`, `"_id":"\u00fc/4"`, `"_id":5`, `"_id":"6","routing":"r"`, `"_id":"1","routing":5`,
		`"\u005fid":"2"`, `"_id":"\u0033"`, `"_id":" 7"`, `"_id":"`+strings.Repeat("l", 511+m.IntN(3))+`"`)
	if verb == "update" || verb == "delete" || m.IntN(6) > 0 {
		add(id)
	}
	if id != `"_id":"6","routing":"r"` || m.breaks(8) { // the engines refuse a member that is there twice
		add(m.rarely(8, `"routing":null`))
	}
	if verb == "index" || verb == "delete" || m.breaks(12) { // of the others they may refuse the bulk for it
		add(m.rarely(12, `"if_seq_no":1000000,"if_primary_term":1`, `"version":4,"version_type":"external"`))
	}
	add(m.rarely(30, `"require_alias":true`, `"require_alias":false`, `"pipeline":"none"`, `"pipeline":"_none"`, `"_source":true`,
		`"version":"4","version_type":"external_gte"`, `"if_seq_no":"0","if_primary_term":"1"`, `"routing":""`))
	if m.breaks(20) {
		add(m.pick(`"if_seq_no":1`, `"colour":1`, `"pipeline":[]`, `"op_type":"create"`, `"_id":"1","_id":"1"`, `"_id":{}`, `"_type":"_doc"`,
			`"if_seq_no":-1,"if_primary_term":0`, `"_ID":"1"`))
	}
	if verb == "update" {
		add(m.rarely(5, `"retry_on_conflict":2`))
	}
	return `{"` + verb + `":{` + strings.Join(members, ",") + `}}` + m.rarely(300, "x", " ", ",")
}

func (m *maker) bulk() string {
	var b strings.Builder
	end := m.pick("\n", "\n", "\n", "\r\n")
	for range 1 + m.IntN(m.most) {
		verb := m.pick("index", "index", "create", "update", "delete")
		b.WriteString(m.rarely(40, "\n", "\r\n", "  \n") + m.action(verb) + end)
		switch verb {
		case "update":
			b.WriteString(m.part() + end)
		case "delete":
		default:
			b.WriteString(m.rarely(80, "", "7", "[]") + m.largeDocument() + end)
		}
	}
	if text := b.String(); m.IntN(150) > 0 {
		return text
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (m *maker) target() string {
	return m.pick("/shop/_bulk", "/shop/_bulk", "/shop/_bulk", "/store/_bulk", "/_bulk") + m.rarely(8, "?refresh=true", "?filter_path=items.*.status,errors",
		"?require_alias=true", "?_source=true", "?refresh=maybe", "?colour=red", "?timeout=10s", "?routing=r", "?_source_includes=a", "?_source_excludes=a",
		"?refresh=wait_for", "?pipeline=_none", "?human", "?wait_for_active_shards=1", "?filter_path=-items.*.error,-took",
		"?require_alias", "?refresh=true&refresh=false")
}

// each is what differs each time, or from one index to another.
var each = regexp.MustCompile(`"took":\d+|"ingest_took":\d+|seqNo \[\d+\]|"index_uuid":"[^"]*"|"(_seq_no|shard)":"?\d+"?|(app|absent)-[0-9a-f]{12}|` +
	`\[Source: .*?; line: \d+, column: \d+\]|` + // Elasticsearch 7 quotes the request, and what the memory behind it was before
	// OpenSearch mixes up the items of a bulk that pipelines refuse.
	`"(index|create|update)":\{"_index":"[^"]*",("_type":"_doc",)?"_id":("[^"]*"|null),"status":400,"error":\{"type":"illegal_argument_exception","reason":"pipeline |` +
	`"_index":"no/t",("_type":"_doc",)?"_id":("[^"]*"|null),"status":40[04],"error":\{[^}]*\}|` + // an index that can't be made isn't there for what goes alone
	`"[0-9A-Za-z_-]{20}"|\[[0-9A-Za-z_-]{20}\]|\[[0-9A-Za-z_-]{22}\]`)

// tiny is how large a body may be, in bytes, to be held where bulks are to go in windows.
const tiny = 1 << 10

// comparison is the same bulks sent to one set of indices directly, and to another through optimist.
type comparison struct {
	*testing.T
	of    [2]side
	trail []string
	// windows says that what is refused directly isn't sent through optimist: a bulk that breaks has been written up to there where it goes
	// in windows.
	windows bool
}

// side is where one half of a comparison goes.
type side struct {
	url    string
	header http.Header
	names  *strings.Replacer // of the indices
}

// ask sends a request to both sides.
func (c *comparison) ask(method, target, body string) (direct, proxied answer) {
	c.Helper()
	var got [2]answer
	for k, s := range c.of {
		a, err := do(c.Context(), method, s.url+s.names.Replace(target), s.names.Replace(body), s.header)
		if err != nil {
			c.Fatal(err)
		}
		a.body = each.ReplaceAllString(a.body, "…")
		// An item may go in a request by itself. If it is a noop, nothing is refreshed for it.
		a.body = strings.ReplaceAll(a.body, `"result":"noop","forced_refresh":true,`, `"result":"noop",`)
		// What a pipeline drops has one version if it was to be created, and another if not.
		a.body = strings.ReplaceAll(a.body, `"_version":-4,`, `"_version":-3,`)
		if c.windows { // which are refreshed together, at the end
			a.body = strings.ReplaceAll(a.body, `"forced_refresh":true,`, "")
		}
		if got[k] = a; k == 0 && c.windows && a.status >= 400 && method == http.MethodPost {
			return a, a
		}
	}
	return got[0], got[1]
}

// same fails the test unless both sides answer the same.
func (c *comparison) same(method, target, body string) {
	c.Helper()
	direct, proxied := c.ask(method, target, body)
	if direct.status != proxied.status || direct.body != proxied.body {
		c.Fatalf("%s\n%s %s\n%s\ndirect  %d %s\nproxied %d %s [%s]", strings.Join(c.trail[max(0, len(c.trail)-11):], "\n"),
			method, target, body, direct.status, direct.body, proxied.status, proxied.body, proxied.outcome())
	}
}

// TestRandomBulksAreWhatTheyAreWithoutOptimist sends the same bulks directly and through optimist: of a client that has read nothing, and of
// one that reads documents before it writes. While nobody else writes, the answers and the documents are equal.
func TestRandomBulksAreWhatTheyAreWithoutOptimist(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		for name, w := range map[string]struct {
			config string
			reads  bool
			most   int
		}{
			"blind":      {"", false, 7},
			"reads":      {"", true, 7},
			"in windows": {fmt.Sprintf("limits: {max_guarded_body: %dB}\n", tiny), true, 60},
		} {
			t.Run(name, func(t *testing.T) {
				p := optimistFor(t, e, w.config)
				seed := uint64(1) // always the same but for long tests: a new bulk may show an old difference
				if long() {
					seed = rand.Uint64()
				}
				if given, err := strconv.ParseUint(os.Getenv("BULK_SEED"), 10, 64); err == nil {
					seed = given
				}
				t.Logf("BULK_SEED=%d", seed)
				m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), most: w.most, large: w.config != ""}
				c := &comparison{T: t, windows: w.config != ""}
				for k, url := range []string{e.url, p.URL} {
					shop := e.index(t)
					store, other := shop+"-store", e.absent(t)
					e.send(t, 200, "POST", "/_aliases", `{"actions":[{"add":{"index":"`+shop+`","alias":"`+store+`"}}]}`)
					c.of[k] = side{url, session("s"), strings.NewReplacer("shop", shop, "store", store, "other", other)}
				}
				c.compare(m, w.reads, randomBulks(e))
			})
		}
	})
}

func (c *comparison) compare(m *maker, reads bool, bulks int) {
	ids := []string{"1", "2", "3", "%C3%BC%2F4", "5"}
	for n := range bulks {
		for range m.IntN(4) {
			if id := m.pick(ids...); reads {
				c.ask("GET", "/shop/_doc/"+id, "")
			}
		}
		target, text := m.target(), m.bulk()
		if strings.Contains(target, "filter_path") { // which leaves no name by which each could find these
			text = strings.ReplaceAll(text, "no/t", "other")
		}
		if strings.Contains(text, `"delete":{"_index":"other"`) { // a delete that goes first doesn't find an index that its bulk makes
			c.ask("PUT", "/other", "")
		}
		c.same("POST", target, text)
		c.trail = append(c.trail, target+"\n"+text)
		if n%10 > 0 {
			continue
		}
		for _, id := range ids {
			c.same("GET", "/shop/_source/"+id, "")
			c.same("GET", "/shop/_source/"+id+"?routing=r", "")
			c.same("GET", "/other/_source/"+id, "")
		}
	}
}
