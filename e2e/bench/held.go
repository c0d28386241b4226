package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"optimist/e2e/optimist"
)

// held measures what locks cost writes: where they are enforced, and where what is written under them is noted, to be undone. All ways go
// through one optimist, in turns; the ratios are to a write that is only guarded.
func held(ctx context.Context, s *stage, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("held", flag.ContinueOnError)
	kind := fs.String("engine", "opensearch", "opensearch, elasticsearch7 or elasticsearch9")
	pairs := fs.Int("pairs", 400, "how often each way is measured, one write and one bulk at a time")
	turns := fs.Int("turns", 9, "how often 16 clients write for a second in each way")
	if err := fs.Parse(args); err != nil {
		return err
	}
	url, title, err := s.startEngine(ctx, *kind, "1g")
	if err != nil {
		return err
	}
	secret := filepath.Join(s.dir, "secret")
	if err = os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
		return err
	}
	p, err := s.startOptimist(ctx, optimist.Options{Upstream: []string{url}, Config: fmt.Sprintf(heldConfig, secret)})
	if err != nil {
		return err
	}
	ways, err := holdLocks(ctx, p.URL)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Writes under locks on %s, %d processors for all: medians of %d turns, of bulks of half as many; "+
		"16 clients: of %d turns of a second.\n\n", title, processors(), *pairs, *turns)
	return compareHeld(ctx, out, ways, *pairs, *turns)
}

const heldConfig = `undo: {auth: {basic_file: '%s'}, max_documents: 1000000, max_bytes: 1GiB}
rules:
- {name: free, match: {index: [free]}, locks: enforce}
- {name: locked, match: {index: [locked]}, locks: enforce, lock_global: locked}
- {name: rest, base: {unknown: fetch}}
`

// heldWay is a way to write: to an index, with a lock's token or without.
type heldWay struct{ name, url, index, token string }

// holdLocks takes the locks, and gives the ways. The first one is what the others are compared with.
func holdLocks(ctx context.Context, url string) ([]heldWay, error) {
	ways := []heldWay{
		{"guarded", url, "plain", ""},
		{"locks enforced, nobody holds one", url, "free", ""},
		{"locks enforced, by the holder", url, "locked", "locked?owner=bench"},
		{"noted, to be undone", url, "noted", "noted?owner=bench&undo=true"},
	}
	for i := range ways {
		w := &ways[i]
		if w.token == "" {
			continue
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/_lock/global/"+w.token+"&ttl=2h", http.NoBody)
		if err != nil {
			return nil, err
		}
		text, err := answerTo(r, http.StatusCreated, http.StatusOK)
		for tries := 0; err != nil && tries < 10 && ctx.Err() == nil; tries++ { // an engine that has just started is slow
			text, err = answerTo(r, http.StatusCreated, http.StatusOK)
		}
		if err != nil {
			return nil, err
		}
		var lease struct{ Token json.Number }
		if err = json.Unmarshal(text, &lease); err != nil {
			return nil, err
		}
		w.token = lease.Token.String()
	}
	return ways, nil
}

// compareHeld measures the ways, and prints the table.
func compareHeld(ctx context.Context, out io.Writer, ways []heldWay, pairs, turns int) error {
	one, err := inTurns(ways, pairs, func(w *heldWay, n int) (float64, error) { return w.timed(ctx, 0, 1, n) })
	if err != nil {
		return err
	}
	bulks, err := inTurns(ways, pairs/2, func(w *heldWay, n int) (float64, error) { return w.timed(ctx, 1000, 100, n) })
	if err != nil {
		return err
	}
	many, err := inTurns(ways, turns, func(w *heldWay, n int) (float64, error) { return w.together(ctx, 16, n) })
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| way | one write, ms | × guarded | a bulk of 100, ms | × guarded | 16 clients, ms a write | × guarded |\n"+
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for i := range ways {
		fmt.Fprintf(out, "| %s ", ways[i].name)
		for _, figures := range [][][]float64{one, bulks, many} {
			fmt.Fprintf(out, "| %.2f | **%.2f** ", median(figures[i]), median(figures[i])/median(figures[0]))
		}
		fmt.Fprintln(out, "|")
	}
	return nil
}

// inTurns measures each way once a turn, in an order by chance. The first fifth of the turns, and at least one, warms up.
func inTurns(ways []heldWay, turns int, measure func(w *heldWay, n int) (float64, error)) ([][]float64, error) {
	figures := make([][]float64, len(ways))
	warm := max(1, turns/5)
	for n := range turns + warm {
		for _, i := range rand.Perm(len(ways)) {
			v, err := measure(&ways[i], n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			if n >= warm {
				figures[i] = append(figures[i], v)
			}
		}
	}
	return figures, nil
}

// timed is how many ms a write of so many documents takes, from what their session knows.
func (w *heldWay) timed(ctx context.Context, first, documents, n int) (float64, error) {
	begin := time.Now()
	err := w.write(ctx, first, documents, n)
	return float64(time.Since(begin)) / float64(time.Millisecond), err
}

// write changes documents that this session has written before: it is guarded by what the session knows.
func (w *heldWay) write(ctx context.Context, first, documents, n int) error {
	body := fmt.Sprintf(`{"n":%d,"name":"a small document","tags":["a","b"]}`, n)
	target, method := fmt.Sprintf("/_doc/%d", first), http.MethodPut
	if documents > 1 {
		var bulk strings.Builder
		for i := range documents {
			fmt.Fprintf(&bulk, "{\"index\":{\"_id\":\"%d\"}}\n%s\n", first+i, body)
		}
		body, target, method = bulk.String(), "/_bulk", http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+"/"+w.index+target, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Optimist-Session", fmt.Sprint("bench-", first))
	if w.token != "" {
		r.Header.Set("Optimist-Lock-Token", w.token)
	}
	text, err := answerTo(r, http.StatusOK, http.StatusCreated)
	if err == nil && documents > 1 && !bytes.Contains(text, []byte(`"errors":false`)) {
		err = fmt.Errorf("%.300s", text)
	}
	return err
}

// together is how many ms pass from write to write while clients write at once, each its own document.
func (w *heldWay) together(ctx context.Context, clients, turn int) (float64, error) {
	counts, errs := make([]int, clients), make([]error, clients)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for time.Since(begin) < time.Second && errs[i] == nil {
				errs[i] = w.write(ctx, 2000+i, 1, turn<<20+counts[i])
				counts[i]++
			}
		})
	}
	wg.Wait()
	took, all := time.Since(begin), 0
	for _, n := range counts {
		all += n
	}
	return float64(took) / float64(time.Millisecond) / float64(all), errors.Join(errs...)
}

var heldClient = newClient(16)

// answerTo is the body of the answer to a request, which has to have one of these statuses. A write has to be guarded.
func answerTo(r *http.Request, statuses ...int) ([]byte, error) {
	a, err := heldClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	outcome := a.Header.Get("Optimist-Outcome")
	if slices.Contains(statuses, a.StatusCode) && (outcome == "" || strings.HasPrefix(outcome, "guarded")) {
		return text, nil
	}
	return nil, fmt.Errorf("%s %s: %d %.300s", r.Method, r.URL, a.StatusCode, text)
}
