package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"optimist/internal/demo/app"
)

// shelfSize is how many carts a worker reads by one _mget, and writes back by one _bulk.
const shelfSize = 50

// stacker is a worker that reads many carts at once, puts an entry into each, and writes all of them back at once.
type stacker struct {
	name   string
	proxy  string
	index  string
	parts  bool // it sends what it changed, by update items with doc; else whole documents
	header http.Header

	acknowledged map[string][]string // entries, by the cart
	refused      []string
	outcomes     map[string]int
	ambiguous    int
}

type cartOf struct {
	ID     string         `json:"_id"`
	Source map[string]any `json:"_source"`
}

// round is one change of every cart.
func (s *stacker) round(ctx context.Context, n int) error {
	ids := make([]string, shelfSize)
	for i := range ids {
		ids[i] = fmt.Sprintf("%d", (i*7+n)%shelfSize) // not all in one order
	}
	asked, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		return err
	}
	a, err := do(ctx, http.MethodPost, s.proxy+"/"+s.index+"/_mget", string(asked), s.header)
	if err != nil {
		return err
	}
	var got struct{ Docs []cartOf }
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		return fmt.Errorf("%w: %s", err, a.body)
	}
	entry, amount := fmt.Sprintf("%s-%d", s.name, n), 1+n%3
	var bulk strings.Builder
	for _, d := range got.Docs {
		lines, _ := d.Source["lines"].([]any)
		total, _ := d.Source["total"].(float64)
		by, _ := d.Source["by"].(map[string]any)
		d.Source["lines"], d.Source["total"] = append(lines, fmt.Sprintf("%s=%d", entry, amount)), total+float64(amount)
		d.Source["last"] = s.name
		if by == nil {
			by = map[string]any{}
		}
		by[s.name] = n
		d.Source["by"] = by
		verb, body := "index", any(d.Source)
		if s.parts {
			verb, body = "update", map[string]any{"doc": d.Source}
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		fmt.Fprintf(&bulk, "{%q:{\"_id\":%q}}\n%s\n", verb, d.ID, text)
	}
	header := s.header.Clone()
	header.Set("Content-Type", "application/x-ndjson")
	if a, err = do(ctx, http.MethodPost, s.proxy+"/"+s.index+"/_bulk", bulk.String(), header); err != nil {
		return err
	}
	return s.read(a, entry)
}

// read takes the account of what was acknowledged.
func (s *stacker) read(a answer, entry string) error {
	for i, part := range strings.Split(a.outcome(), ";") {
		name, value, _ := strings.Cut(part, "=")
		var n int
		if _, err := fmt.Sscan(value, &n); i == 0 || err != nil {
			continue
		}
		if name == "ambiguous" {
			s.ambiguous += n
		} else {
			s.outcomes[name] += n
		}
	}
	var written struct {
		Items []map[string]struct {
			ID     string `json:"_id"`
			Status int
			Error  json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &written); err != nil || a.status != 200 || len(written.Items) != shelfSize {
		return fmt.Errorf("%d %v: %s", a.status, err, a.body)
	}
	for _, item := range written.Items {
		for verb, d := range item {
			if d.Status > 299 {
				s.refused = append(s.refused, fmt.Sprintf("%s %s %s: %d %s", entry, verb, d.ID, d.Status, d.Error))
				continue
			}
			s.acknowledged[d.ID] = append(s.acknowledged[d.ID], entry)
		}
	}
	return nil
}

// stack lets workers fill the carts, and says what came of it.
func stack(t *testing.T, e target, workers []*stacker, rounds int) (f filled) {
	t.Helper()
	index := workers[0].index
	for i := range shelfSize {
		e.send(t, http.StatusCreated, http.MethodPut, fmt.Sprintf("/%s/_doc/%d", index, i), `{"lines":[],"total":0,"by":{},"last":""}`)
	}
	var wg sync.WaitGroup
	for _, s := range workers {
		wg.Go(func() {
			for n := range rounds {
				if err := s.round(t.Context(), n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	acknowledged, unknown, ambiguous, outcomes := 0, 0, 0, map[string]int{}
	for i := range shelfSize {
		id := fmt.Sprintf("%d", i)
		var stored struct {
			Lines []string
			Total float64
		}
		if err := json.Unmarshal([]byte(e.source(t, "/"+index+"/_doc/"+id)), &stored); err != nil {
			t.Fatal(err)
		}
		times, sum := entriesOf(stored.Lines)
		for _, s := range workers {
			acknowledged += len(s.acknowledged[id])
			f.account(times, s.acknowledged[id])
		}
		unknown += len(times)
		if stored.Total != sum {
			f.off++
		}
	}
	for _, s := range workers {
		f.refused = append(f.refused, s.refused...)
		ambiguous += s.ambiguous
		for kind, n := range s.outcomes {
			outcomes[kind] += n
		}
	}
	t.Logf("%d acknowledged, %d lost, %d doubled; %v totals are off; %d ambiguous, %v", acknowledged, f.lost, f.doubled, f.off, ambiguous, outcomes)
	if unknown > len(f.refused) {
		t.Errorf("%d entries that nobody was acknowledged", unknown)
	}
	return f
}

func stackers(n int, proxy, index string, set func(s *stacker)) []*stacker {
	workers := make([]*stacker, n)
	for i := range workers {
		workers[i] = &stacker{name: fmt.Sprintf("w%d", i), proxy: proxy, index: index, header: http.Header{},
			acknowledged: map[string][]string{}, outcomes: map[string]int{}}
		set(workers[i])
	}
	return workers
}

// bulkRounds is how often each worker writes all carts.
func bulkRounds() int {
	if long() {
		return 40
	}
	return 4
}

// TestBulksOfCartsAreExact where the workers name their sessions.
func TestBulksOfCartsAreExact(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		p := optimistFor(t, e, cart)
		for name, parts := range map[string]bool{"whole": false, "parts": true} {
			t.Run(name, func(t *testing.T) {
				f := stack(t, e, stackers(16, p.URL, e.index(t), func(s *stacker) {
					s.header.Set(app.SessionHeader, s.name)
					s.parts = parts
				}), bulkRounds())
				if f.lost+f.doubled != 0 || f.off != 0 || f.refused != nil {
					t.Errorf("not exact: %+v", f)
				}
			})
		}
	})
}

// TestBulksOfCartsByUnnamedSessionsAreGuessed: nothing tells the workers apart but what they send.
func TestBulksOfCartsByUnnamedSessionsAreGuessed(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		p := optimistFor(t, e, cart)
		f := stack(t, e, stackers(16, p.URL, e.index(t), func(*stacker) {}), bulkRounds())
		if most := 16 * bulkRounds() * shelfSize / mistaken; f.lost+f.doubled > most || f.refused != nil {
			t.Errorf("more than %d are wrong, or some are refused: %+v", most, f)
		}
	})
}

// TestBulksOfCartsAreLostWithoutOptimist is the control.
func TestBulksOfCartsAreLostWithoutOptimist(t *testing.T) {
	e := inMemory(t)
	if f := stack(t, e, stackers(16, e.url, e.index(t), func(*stacker) {}), bulkRounds()); f.lost == 0 {
		t.Error("the control is to lose")
	}
}
