package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const (
	randomClients = 8
	randomRounds  = 25
)

// randomRules say which numbers are sums, and what tells entries apart.
const randomRules = `rules:
  - {name: random, merge: {paths: {/n: sum, /items: {by_key: id}}}}
`

// TestRandomClientsThatSayWhoTheyAreLoseNothing: clients read a document in all ways in which it can be read whole, change parts of it by
// chance, spell it as they like, and write it back in all ways. Each of their changes is in the document, once, and none is refused.
func TestRandomClientsThatSayWhoTheyAreLoseNothing(t *testing.T) {
	sessions := map[string]func(w *randomClient) (header, value string){
		"session":  func(w *randomClient) (string, string) { return "Optimist-Session", w.name },
		"trace":    func(w *randomClient) (string, string) { return "Traceparent", "00-" + w.trace + "-00f067aa0ba902b7-01" },
		"If-Match": func(w *randomClient) (string, string) { return "If-Match", w.tag },
	}
	eachTarget(t, func(t *testing.T, e target) {
		for name, who := range sessions {
			t.Run(name, func(t *testing.T) {
				index, p := e.index(t), optimistFor(t, e, randomRules)
				truth := randomTruth{own: map[string]any{}, log: map[string]bool{}, items: map[string]any{}}
				request(t, http.StatusCreated, http.MethodPut, p.URL+"/"+index+"/_doc/1?refresh=true", truth.empty(), nil)
				var wg sync.WaitGroup
				for i := range randomClients {
					w := &randomClient{Rand: rand.New(rand.NewPCG(uint64(i), 7)), truth: &truth, url: p.URL, index: index, who: who,
						name: fmt.Sprintf("w%d", i), tagged: name == "If-Match"}
					wg.Go(func() { w.work(t) })
				}
				wg.Wait()
				truth.compare(t, e.send(t, http.StatusOK, http.MethodGet, "/"+index+"/_source/1", "").body)
			})
		}
	})
}

// randomTruth is what must be in the document at the end.
type randomTruth struct {
	mu    sync.Mutex
	own   map[string]any
	log   map[string]bool
	n     int64
	items map[string]any
}

func (r *randomTruth) empty() string {
	for i := range randomClients {
		r.own[fmt.Sprintf("w%d", i)] = map[string]any{}
	}
	own, _ := json.Marshal(r.own)
	return fmt.Sprintf(`{"own":%s,"log":[],"n":0,"items":[],"last":null,"at":1700000000000}`, own)
}

func (r *randomTruth) compare(t *testing.T, source string) {
	t.Helper()
	d := parsed(source)
	if got := d["own"]; !reflect.DeepEqual(got, any(r.own)) {
		t.Errorf("own: %v, want %v", got, r.own)
	}
	log, _ := d["log"].([]any)
	for _, entry := range log {
		name, _ := entry.(string)
		if !r.log[name] {
			t.Errorf("log: %v is there twice, or was taken out", entry)
		}
		delete(r.log, name)
	}
	list, _ := d["items"].([]any)
	items := map[string]any{}
	for _, item := range list {
		id, _ := item.(map[string]any)["id"].(string)
		items[id] = item
	}
	if len(r.log) > 0 || len(list) != len(items) || number(d["n"]) != r.n || !reflect.DeepEqual(items, r.items) {
		t.Errorf("log: lost %v; n: %v, want %d; items: %v, want %v", r.log, d["n"], r.n, items, r.items)
	}
}

func parsed(source string) (d map[string]any) {
	decoder := json.NewDecoder(strings.NewReader(source))
	decoder.UseNumber()
	_ = decoder.Decode(&d) // what isn't there is missed
	return d
}

func number(v any) int64 {
	text, _ := v.(json.Number)
	n, _ := text.Int64()
	return n
}

// randomClient is a client that reads, changes and writes.
type randomClient struct {
	*rand.Rand
	truth      *randomTruth
	url, index string
	who        func(w *randomClient) (header, value string)
	name       string
	tagged     bool // by If-Match
	trace, tag string
	made       int
}

func (w *randomClient) ask(ctx context.Context, method, path, body string) (answer, error) {
	header, value := w.who(w)
	h := http.Header{}
	if value != "" {
		h.Set(header, value)
	}
	return do(ctx, method, w.url+path, body, h)
}

func (w *randomClient) work(t *testing.T) {
	for range randomRounds {
		w.trace, w.tag = fmt.Sprintf("%016x%016x", w.Uint64()|1, w.Uint64()), ""
		d := w.read(t)
		if d == nil {
			return
		}
		<-time.After(time.Duration(w.IntN(3000)) * time.Microsecond)
		effects, part, shrinks := w.change(d)
		a, way := w.write(t, d, part, shrinks)
		if a.status != http.StatusOK || gjson.Get(a.body, "errors").Bool() {
			t.Errorf("%s: %d %s [%s]", way, a.status, a.body, a.outcome())
			return
		}
		w.truth.mu.Lock()
		for _, effect := range effects {
			effect()
		}
		w.truth.mu.Unlock()
	}
}

// read reads the document in one of the ways that show all of it.
func (w *randomClient) read(t *testing.T) map[string]any {
	doc, source := "/"+w.index+"/_doc/1", "/"+w.index+"/_source/1"
	ways := []struct{ method, path, body, at string }{
		{"GET", doc, "", "_source"}, {"GET", doc + "?pretty", "", "_source"}, {"GET", doc + "?filter_path=_source", "", "_source"},
		{"GET", doc + "?filter_path=_source,_seq_no,_primary_term", "", "_source"}, {"GET", doc + "?preference=_local&human", "", "_source"},
		{"GET", doc + "?_source=true", "", "_source"}, {"GET", source, "", "@this"}, {"GET", source + "?pretty", "", "@this"},
		{"POST", "/_mget", `{"docs":[{"_index":"` + w.index + `","_id":"none"},{"_index":"` + w.index + `","_id":"1"}]}`, "docs.1._source"},
		{"POST", "/" + w.index + "/_mget?pretty", `{"ids":["1"]}`, "docs.0._source"},
		{"POST", "/" + w.index + "/_search", `{"query":{"match_all":{}}}`, "hits.hits.0._source"},
		{"POST", "/" + w.index + "/_search?seq_no_primary_term=true", `{"query":{"match_all":{}},"version":true}`, "hits.hits.0._source"},
	}
	if w.tagged {
		ways = ways[:1]
	}
	way := ways[w.IntN(len(ways))]
	if strings.HasSuffix(way.at, "hits.0._source") { // a client that finds an older state than its own may be refused
		if a, err := do(t.Context(), http.MethodPost, w.url+"/"+w.index+"/_refresh", "", nil); err != nil || a.status != http.StatusOK {
			t.Errorf("refresh: %v %d %s", err, a.status, a.body)
		}
	}
	a, err := w.ask(t.Context(), way.method, way.path, way.body)
	d := parsed(gjson.Get(a.body, way.at).Raw)
	own, _ := d["own"].(map[string]any)
	_, mine := own[w.name].(map[string]any)
	_, log := d["log"].([]any)
	if _, items := d["items"].([]any); err != nil || !mine || !log || !items {
		t.Errorf("%s %s: %v %d %s", way.method, way.path, err, a.status, a.body)
		return nil
	}
	w.tag = a.header.Get("Etag")
	return d
}

// change changes up to three things. part are the members that were changed; shrinks says that keys were taken out of objects.
func (w *randomClient) change(d map[string]any) (effects []func(), part map[string]any, shrinks bool) {
	part = map[string]any{"at": json.Number(fmt.Sprint(time.Now().UnixMilli()))}
	d["at"] = part["at"]
	done := func(name string, effect func()) {
		part[name] = d[name]
		effects = append(effects, effect)
	}
	for _, what := range w.Perm(6)[:w.IntN(4)] {
		w.made++
		id := fmt.Sprintf("%s-%d", w.name, w.made)
		switch what {
		case 0: // a tree of its own
			own := d["own"].(map[string]any)[w.name].(map[string]any)
			key := fmt.Sprintf("k/%d", w.IntN(4))
			if own[key] != nil {
				delete(own, key)
				shrinks = true
			} else {
				own[key] = map[string]any{"a~b": []any{id, nil, true, json.Number("12345678901234567890")}, "ä": json.Number("0.5")}
			}
			mine := parsed(spelled(w.Rand, own))
			done("own", func() { w.truth.own[w.name] = mine })
		case 1:
			log := d["log"].([]any)
			d["log"] = slices.Insert(log, w.IntN(len(log)+1), any(id))
			done("log", func() { w.truth.log[id] = true })
		case 2:
			log := d["log"].([]any)
			if i := slices.IndexFunc(log, func(e any) bool { return strings.HasPrefix(e.(string), w.name+"-") }); i >= 0 {
				gone := log[i].(string)
				d["log"] = slices.Delete(log, i, i+1)
				done("log", func() { delete(w.truth.log, gone) })
			}
		case 3:
			by := w.Int64N(100) - 20
			d["n"] = json.Number(fmt.Sprint(number(d["n"]) + by))
			done("n", func() { w.truth.n += by })
		case 4:
			items := d["items"].([]any)
			item := map[string]any{"id": id, "by": w.name, "q": json.Number("1")}
			d["items"] = slices.Insert(items, w.IntN(len(items)+1), any(item))
			done("items", func() { w.truth.items[id] = item })
		case 5:
			d["last"] = id
			done("last", func() {})
		}
	}
	return effects, part, shrinks
}

// write writes the document, or the part, in one of the ways that may be guarded.
func (w *randomClient) write(t *testing.T, d, part map[string]any, shrinks bool) (a answer, way string) {
	doc, update := "/"+w.index+"/_doc/1", "/"+w.index+"/_update/1"
	whole, some := spelled(w.Rand, d), spelled(w.Rand, part)
	ways := []struct{ method, path, body string }{
		{"PUT", doc, whole}, {"POST", doc + "?refresh=true", whole}, {"PUT", doc + "?op_type=index", whole},
		{"POST", "/_bulk", `{"index":{"_index":"` + w.index + `","_id":"1"}}` + "\n" + whole + "\n"},
		{"POST", update, `{"doc":` + some + `}`}, {"POST", update + "?retry_on_conflict=3", `{"doc":` + some + `,"doc_as_upsert":true,"detect_noop":false}`},
		{"POST", "/" + w.index + "/_bulk", `{"update":{"_id":"1","retry_on_conflict":2}}` + "\n" + `{"doc":` + some + "}\n"},
	}
	switch {
	case w.tagged:
		ways = ways[:3]
	case shrinks: // the engines' own merge takes no keys away
		ways = ways[:4]
	}
	c := ways[w.IntN(len(ways))]
	a, err := w.ask(t.Context(), c.method, c.path, c.body)
	if err != nil {
		t.Error(err)
	}
	return a, c.method + " " + c.path + " " + c.body
}

// spelled is JSON with white space, escapes and an order of keys by chance.
func spelled(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\t"}[r.IntN(4)] }
	switch v := v.(type) {
	case map[string]any:
		members := make([]string, 0, len(v))
		for name, value := range v {
			members = append(members, space()+spelled(r, name)+":"+space()+spelled(r, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		elements := make([]string, 0, len(v))
		for _, e := range v {
			elements = append(elements, spelled(r, e)+space())
		}
		return "[" + strings.Join(elements, ",") + "]"
	case string:
		if len(v) > 0 && v[0] < 0x80 && r.IntN(4) == 0 {
			return fmt.Sprintf(`"\u%04x`, v[0]) + strings.TrimPrefix(spelled(r, v[1:]), `"`)
		}
	}
	text, _ := json.Marshal(v)
	return string(text)
}
