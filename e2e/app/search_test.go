package app_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/obs"
)

// searchFor is the body of a search for one document.
func searchFor(id string) string { return fmt.Sprintf(`{"query":{"ids":{"values":[%q]}}}`, id) }

// appends has 16 workers search for a document, append an entry, and write it back whole. It returns the entries that were acknowledged.
func appends(t *testing.T, url, index, id string, named bool) (entries []string) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			var who http.Header
			if named {
				who = session(fmt.Sprint("worker-", w))
			}
			for n := range rounds(16) {
				found := request(t, 200, "POST", url+"/"+index+"/_search", searchFor(id), who)
				var d struct{ List []string }
				if err := json.Unmarshal([]byte(gjson.Get(found.body, "hits.hits.0._source").Raw), &d); err != nil {
					t.Error(err, found.body)
					return
				}
				entry := fmt.Sprintf("w%d-%d", w, n)
				body, _ := json.Marshal(map[string]any{"list": append(d.List, entry)})
				if a, err := do(t.Context(), "PUT", url+"/"+index+"/_doc/"+id+"?refresh=true", string(body), who); err != nil || a.status != 200 {
					t.Errorf("%v %d %s", err, a.status, a.body)
					continue
				}
				mu.Lock()
				entries = append(entries, entry)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return entries
}

// TestApplicationsThatSearchAndThenIndexLoseNothing: no rule says that searches are watched.
func TestApplicationsThatSearchAndThenIndexLoseNothing(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		p := optimistFor(t, e, "")
		e.send(t, 201, "PUT", "/"+index+"/_doc/1?refresh=true", `{"list":[]}`)
		request(t, 200, "GET", p.URL+"/"+index+"/_doc/1", "", nil)
		request(t, 200, "PUT", p.URL+"/"+index+"/_doc/1?refresh=true", `{"list":["first"]}`, nil) // from now on it is known that it writes
		entries := appends(t, p.URL, index, "1", false)
		lost, stored := lostOf(t, e, index, entries)
		if len(entries) != 16*rounds(16) || lost > 0 || stored != len(entries)+1 {
			t.Errorf("%d of %d acknowledged are lost, %d are stored", lost, len(entries), stored)
		}
	})
}

// lostOf is how many of the entries aren't in the document, and how many it has.
func lostOf(t *testing.T, e target, index string, entries []string) (lost, stored int) {
	t.Helper()
	var d struct{ List []string }
	if err := json.Unmarshal([]byte(e.source(t, "/"+index+"/_doc/1")), &d); err != nil {
		t.Fatal(err)
	}
	for _, s := range entries {
		if !slices.Contains(d.List, s) {
			lost++
		}
	}
	return lost, len(d.List)
}

// TestObserveCountsWhatSearchThenIndexLoses.
func TestObserveCountsWhatSearchThenIndexLoses(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprintf("named=%v", named), func(t *testing.T) {
				index := e.index(t)
				p := optimistFor(t, e, "", "--mode", "observe")
				e.send(t, 201, "PUT", "/"+index+"/_doc/1?refresh=true", `{"list":[]}`)
				request(t, 200, "GET", p.URL+"/"+index+"/_doc/1", "", nil)
				request(t, 200, "PUT", p.URL+"/"+index+"/_doc/1?refresh=true", `{"list":["first"]}`, nil)
				entries := appends(t, p.URL, index, "1", named)
				lost, _ := lostOf(t, e, index, entries)
				counted := p.Metric(t, obs.MetricLostUpdates, fmt.Sprintf("index=%q", index))
				t.Logf("%d of %d are lost, %.0f are counted", lost, len(entries), counted)
				if math.Abs(counted-float64(lost)) > 0.05*float64(lost) {
					t.Errorf("%d of %d are lost, %.0f are counted", lost, len(entries), counted)
				}
			})
		}
	})
}

// TestPagesAreBasesAndKeepTheirBytes: of scrolls and points in time, where the engine has them.
func TestPagesAreBasesAndKeepTheirBytes(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		if e.name == "embedded" {
			t.Skip("it has neither")
		}
		index := e.index(t)
		for i := range 6 {
			e.send(t, 201, "PUT", fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i), `{"list": ["a"] }`)
		}
		p := optimistFor(t, e, "rules: [{name: r, base: {reads: [get, search]}}]\n")
		write := func(id string) { // what somebody else has added stays
			doc := "/" + index + "/_doc/" + id
			e.send(t, 200, "PUT", doc, `{"list":["a","b"]}`)
			request(t, 200, "PUT", p.URL+doc, `{"list":["a","c"]}`, nil)
			if got := e.source(t, doc); got != `{"list":["a","b","c"]}` {
				t.Errorf("%s: stored %s", id, got)
			}
		}
		// page asks for a page both ways, and returns it as it comes through optimist.
		page := func(method, straight, through, direct, proxied string) answer {
			a, b := e.send(t, 200, method, straight, direct), request(t, 200, method, p.URL+through, proxied, nil)
			if plainHits(a.body) != plainHits(b.body) {
				t.Errorf("%s %s:\n%s, without optimist\n%s", method, through, b.body, a.body)
			}
			return b
		}
		first := e.send(t, 200, "POST", "/"+index+"/_search?scroll=1m", `{"size":2,"sort":["_doc"]}`)
		mine := page("POST", "/"+index+"/_search?scroll=1m", "/"+index+"/_search?scroll=1m", `{"size":2,"sort":["_doc"]}`, `{"size":2,"sort":["_doc"]}`)
		next := func(a answer) string {
			return fmt.Sprintf(`{"scroll":"1m","scroll_id":%q}`, gjson.Get(a.body, "_scroll_id").String())
		}
		mine = page("POST", "/_search/scroll", "/_search/scroll", next(first), next(mine))
		write(gjson.Get(mine.body, "hits.hits.1._id").String())

		open, err := do(t.Context(), "POST", e.url+"/"+index+"/_search/point_in_time?keep_alive=1m", "", nil)
		if err != nil || open.status != 200 {
			open, err = do(t.Context(), "POST", e.url+"/"+index+"/_pit?keep_alive=1m", "", nil)
		}
		if err != nil || open.status != 200 {
			t.Logf("no points in time: %d %v", open.status, err)
			return
		}
		id := gjson.Get(open.body, "pit_id").String() + gjson.Get(open.body, "id").String()
		body := fmt.Sprintf(`{"size":2,"sort":[{"_doc":"desc"}],"pit":{"id":%q,"keep_alive":"1m"}}`, id)
		request(t, 200, "PUT", p.URL+"/"+index+"/_doc/0", `{"list":[]}`, nil) // a point in time names no index: that its client writes counts
		mine = page("POST", "/_search", "/_search", body, body)
		write(gjson.Get(mine.body, "hits.hits.0._id").String())
	})
}

// plainHits is an answer's list of hits, as it stands there.
func plainHits(body string) string { return gjson.Get(body, "hits").Raw }

// TestWatchedSearchesKeepTheirBytes: whatever is asked for.
func TestWatchedSearchesKeepTheirBytes(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		for i := range 3 {
			e.send(t, 201, "PUT", fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i), fmt.Sprintf(`{"a": %d.50, "x":{"_seq_no":[1, {"_version":2}]},"s":"}]\"{é"}`, i))
		}
		p := optimistFor(t, e, "rules: [{name: r, base: {reads: [search]}}]\n")
		for _, q := range []string{
			`{}`, `{"size":0}`, `{"size":1}`, `{"version":true}`, `{"seq_no_primary_term":true}`, `{"seq_no_primary_term":true,"version":true}`,
			`{"seq_no_primary_term":false}`, `{"_source":false}`, `{"_source":["a"]}`, `{"sort":["_doc"]}`, `{"query":{"match_none":{}}}`,
		} {
			for _, fields := range []http.Header{nil, {"Accept-Encoding": {"identity"}}} {
				straight, through := e.send(t, 200, "POST", "/"+index+"/_search", q), request(t, 200, "POST", p.URL+"/"+index+"/_search", q, fields)
				if a, b := plainHits(straight.body), plainHits(through.body); a == "" || a != b {
					t.Errorf("%s:\n%s, without optimist\n%s", q, through.body, straight.body)
				}
			}
		}
		if a := request(t, 200, "GET", p.URL+"/"+index+"/_search?q=*:*", "", nil); strings.Contains(plainHits(a.body), `"_primary_term"`) {
			t.Error(a.body)
		}
	})
}
