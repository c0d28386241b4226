package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"optimist/e2e/optimist"
)

// searches measures what watching a search costs: the same search through an optimist that doesn't watch it, through one that does where
// that is the default, and through one whose rule says so, in turns.
func searches(ctx context.Context, s *stage, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("search", flag.ContinueOnError)
	kind := fs.String("engine", "opensearch", "opensearch, elasticsearch7 or elasticsearch9")
	pairs := fs.Int("pairs", 400, "how many turns each row is made of")
	if err := fs.Parse(args); err != nil {
		return err
	}
	url, title, err := s.startEngine(ctx, *kind, "1g")
	if err != nil {
		return err
	}
	var urls []string
	for _, reads := range []string{"[get, mget]", "[get, mget, search_by_writers]", "[get, mget, search]"} {
		config := "rules: [{name: r, base: {reads: " + reads + "}}]\n"
		p, err := s.startOptimist(ctx, optimist.Options{Upstream: []string{url}, Config: config})
		if err != nil {
			return err
		}
		urls = append(urls, p.URL)
	}
	if err := fillShop(ctx, url, urls); err != nil {
		return err
	}
	fmt.Fprintf(out, "Searches on %s of documents of half a kilobyte, one at a time, %d turns for each row; medians, and how much more\n"+
		"than without in the same turn.\n\n", title, *pairs)
	fmt.Fprintln(out, "| hits | answer | not watched | by default | by a rule |\n| ---: | --- | ---: | ---: | ---: |")
	for _, hits := range []int{10, 20, 100, 1000} {
		for _, coding := range []string{"identity", "gzip"} {
			fmt.Fprintf(out, "| %d | %s ", hits, coding)
			if err := compareSearches(ctx, out, urls, search{hits, coding}, *pairs); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillShop makes the documents, and has each optimist know that its client writes them.
func fillShop(ctx context.Context, engine string, urls []string) error {
	var bulk strings.Builder
	text := strings.Repeat("some words ", 40)
	for i := range 1000 {
		fmt.Fprintf(&bulk, "{\"index\":{\"_id\":\"%d\"}}\n{\"n\":%[1]d,\"tags\":[\"a\",\"b\"],\"text\":%q}\n", i, text)
	}
	type request struct{ method, url, body string }
	requests := []request{
		{http.MethodPut, engine + "/shop", `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`},
		{http.MethodPost, engine + "/shop/_bulk?refresh=true", bulk.String()},
	}
	for _, url := range urls {
		requests = append(requests, request{http.MethodGet, url + "/shop/_doc/0", ""},
			request{http.MethodPut, url + "/shop/_doc/0?refresh=true", `{"n":0}`})
	}
	for _, r := range requests {
		if status, err := send(ctx, http.DefaultClient, r.method, r.url, r.body); err != nil || status > 299 {
			return fmt.Errorf("%s %s: status %d, %w", r.method, r.url, status, err)
		}
	}
	return nil
}

// search is what is searched for, and how the answer may come.
type search struct {
	hits   int
	coding string
}

func compareSearches(ctx context.Context, out io.Writer, urls []string, q search, pairs int) error {
	var without []float64
	var more [2][]float64
	for pair := range pairs + pairs/4 {
		var took [3]float64
		for _, side := range rand.Perm(len(took)) {
			d, err := q.once(ctx, urls[side])
			if err != nil {
				return err
			}
			took[side] = float64(d) / float64(time.Millisecond)
		}
		if pair < pairs/4 {
			continue // the engine and the pools are warming up
		}
		without = append(without, took[0])
		more[0], more[1] = append(more[0], took[1]-took[0]), append(more[1], took[2]-took[0])
	}
	base := median(without)
	fmt.Fprintf(out, "| %.2f ms ", base)
	for _, list := range more {
		fmt.Fprintf(out, "| %+.2f ms (%+.1f %%) ", median(list), 100*median(list)/base)
	}
	fmt.Fprintln(out, "|")
	return nil
}

// searchClient takes answers as they come: it would expand them else.
var searchClient = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func (q search) once(ctx context.Context, url string) (time.Duration, error) {
	body := fmt.Sprintf(`{"size":%d,"query":{"match_all":{}},"sort":[{"n":"asc"}]}`, q.hits)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/shop/_search", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept-Encoding", q.coding)
	begin := time.Now()
	res, err := searchClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	d := time.Since(begin)
	if err == nil && (res.StatusCode != http.StatusOK || bytes.Contains(text, []byte("_seq_no"))) {
		err = fmt.Errorf("status %d: %.300s", res.StatusCode, text)
	}
	return d, err
}
