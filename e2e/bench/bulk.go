package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"optimist/e2e/optimist"
)

// bulk measures bulks straight at the engine, through nginx, which adds nothing but the way, and through optimist: bulks of which nothing
// has to be guarded, and bulks of which every item is. One bulk is sent at a time. A pair is one bulk of each side, in an order by chance,
// so that whatever else the machine does meets all sides alike.
func bulk(ctx context.Context, st *stage, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bulk", flag.ContinueOnError)
	kind := fs.String("engine", "opensearch", "opensearch, elasticsearch7, elasticsearch9 or embedded")
	pairs := fs.Int("pairs", 200, "how often each side is measured")
	items := fs.Int("items", 1000, "items of a bulk")
	only := fs.String("only", "", "only the bulks whose name has this in it")
	also := fs.String("also", "", "another build of optimist, to measure beside this one: what has a change gained?")
	if err := fs.Parse(args); err != nil {
		return err
	}
	s, err := openBulkSite(ctx, st, *kind, *also)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Bulks of %d items on %s, %d processors for engine, client and proxies: medians of %d pairs.\n"+
		"A ratio is the median of the pairs' own ratios, with its confidence interval of 95 %%.\n\n", *items, s.title, processors(), *pairs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "bulks\tdirect ms\tnginx ms\toptimist ms\t× direct\t\t× nginx\t\tCPU µs an item: nginx\toptimist")
	if *also != "" {
		fmt.Fprintf(w, "\t%[1]s ms\toptimist × %[1]s\t\t%[1]s µs", filepath.Base(*also))
	}
	fmt.Fprintln(w)
	for _, way := range bulkWays(*items) {
		if !strings.Contains(way.name, *only) {
			continue
		}
		if err := s.compare(ctx, w, way, *pairs); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return w.Flush()
}

// bulkSite is an engine, and what stands before it.
type bulkSite struct {
	title string
	sides [4]bulkSide // direct, nginx, optimist, another build of it; what isn't there has no URL
	used  int         // numbers given to bulks so far
}

// bulkSide is a way to the engine. It has indices of its own.
type bulkSide struct {
	url     string
	number  int
	process *process // nil: there is none between client and engine
	guards  bool     // it is optimist
	client  *http.Client
	took    []float64 // ms
	spent   []float64 // processor time of the process, in µs an item
}

func openBulkSite(ctx context.Context, st *stage, kind, also string) (s *bulkSite, err error) {
	s = &bulkSite{}
	var url string
	if url, s.title, err = st.startEngine(ctx, kind, "2g"); err != nil {
		return nil, err
	}
	s.sides[0].url = url
	if s.sides[1].url, s.sides[1].process, err = st.startNginx(ctx, url); err != nil {
		return nil, err
	}
	for i, build := range [...]string{"", also} {
		if i > 0 && build == "" {
			continue
		}
		p, err := st.startOptimist(ctx, optimist.Options{Upstream: []string{url}, Binary: build, Args: []string{"--mode", "guard"}})
		if err != nil {
			return nil, err
		}
		s.sides[2+i].url, s.sides[2+i].process, s.sides[2+i].guards = p.URL, processOf(p), true
	}
	for i := range s.sides {
		x := &s.sides[i]
		x.client, x.number = newClient(1), i
		if err := x.makeIndices(ctx, url); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// makeIndices makes the side's indices straight at the engine.
func (x *bulkSide) makeIndices(ctx context.Context, engineURL string) error {
	for indexed, mappings := range map[bool]string{false: `,"mappings":{"dynamic":false}`, true: ""} {
		status, err := send(ctx, http.DefaultClient, http.MethodPut, engineURL+"/"+x.index(indexed),
			`{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":-1}`+mappings+`}`)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("making the index: status %d, %w", status, err)
		}
	}
	return nil
}

// index is the name of one of the side's indices: the one whose fields are indexed, as the engine guesses them, or the one without fields.
func (x *bulkSide) index(indexed bool) string {
	if indexed {
		return fmt.Sprintf("indexed-%d", x.number)
	}
	return fmt.Sprintf("bulks-%d", x.number)
}

// bulkWay is a kind of bulk.
type bulkWay struct {
	name string
	// text is the bulk with this number, of an index.
	text func(n int) string
	// read says that the client names its session, and has read every document by an _mget before. All items are guarded then.
	read bool
	// indexed says that the engine indexes the fields of the documents.
	indexed bool
	// outcome is what optimist says of such a bulk.
	outcome string
	items   int
}

func bulkWays(items int) []bulkWay {
	of := func(line func(b *strings.Builder, n, i int)) func(int) string {
		return func(n int) string {
			var b strings.Builder
			for i := range items {
				line(&b, n, i)
			}
			return b.String()
		}
	}
	const passed = "passed;"
	guarded := fmt.Sprintf("guarded;items=%d;guarded=%[1]d", items)
	orders := func(id string, lines int) func(int) string {
		return of(func(b *strings.Builder, n, i int) {
			fmt.Fprintf(b, "{\"index\":{\"_id\":\"%s-%d\"}}\n%s\n", id, i, order(n, i, lines))
		})
	}
	return []bulkWay{
		{"new documents by create", of(func(b *strings.Builder, n, i int) {
			fmt.Fprintf(b, "{\"create\":{\"_id\":\"c-%d-%d\"}}\n%s\n", n, i, created)
		}), false, false, passed, items},
		{"new documents without ids", of(func(b *strings.Builder, _, _ int) {
			b.WriteString("{\"index\":{}}\n" + created + "\n")
		}), false, false, passed, items},
		{"documents that weren't read", of(func(b *strings.Builder, n, i int) {
			fmt.Fprintf(b, "{\"index\":{\"_id\":\"b-%d\"}}\n%s\n", i, changed(n))
		}), false, false, passed, items},
		{"guarded: documents that were read", of(func(b *strings.Builder, n, i int) {
			fmt.Fprintf(b, "{\"index\":{\"_id\":\"g-%d\"}}\n%s\n", i, changed(n))
		}), true, false, guarded, items},
		{"guarded: parts of them", of(func(b *strings.Builder, n, i int) {
			fmt.Fprintf(b, "{\"update\":{\"_id\":\"g-%d\"}}\n{\"doc\":{\"stock\":%d}}\n", i, n)
		}), true, false, guarded, items},
		{"orders of 1 KB that weren't read, indexed", orders("b", 7), false, true, passed, items},
		{"guarded: orders of 1 KB, indexed", orders("g", 7), true, true, guarded, items},
		{"guarded: orders of 2 KB, indexed", orders("g", 16), true, true, guarded, items},
	}
}

// changed is the document as it is after the nth change.
func changed(n int) string { return strings.Replace(created, "10", strconv.Itoa(n+100), 1) }

// order is a document as shops have them, with so many lines, as it is after the nth change.
func order(n, i, lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"customer":{"name":"Customer number %d","mail":"customer%[1]d@example.org","city":"Somewhere"},"status":"open",`+
		`"total":%d.50,"updated_at":"2026-11-%02dT10:00:%02dZ","notes":"what people write into a field, which the engine takes apart",`+
		`"lines":[`, i, n, 1+n%28, n%60)
	for k := range lines {
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":"SKU-%d-%d","title":"An article whose name is some words long, number %[2]d","quantity":%d,"price":%d.99}`,
			i, k, 1+k, 10+k)
	}
	b.WriteString("]}")
	return b.String()
}

// compare measures one kind of bulk, and prints its row. The first fifth of the pairs warms up.
func (s *bulkSite) compare(ctx context.Context, w io.Writer, way bulkWay, pairs int) error {
	for i := range s.sides {
		s.sides[i].took, s.sides[i].spent = nil, nil
	}
	warm := max(2, pairs/5)
	for n := range pairs + warm {
		for _, i := range rand.Perm(len(s.sides)) {
			if x := &s.sides[i]; x.url != "" {
				if err := s.measure(ctx, x, &way, n >= warm); err != nil {
					return err
				}
			}
		}
	}
	direct, nginx, this, also := &s.sides[0], &s.sides[1], &s.sides[2], &s.sides[3]
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", way.name, figure(direct.took), figure(nginx.took), figure(this.took),
		pairRatio(this.took, direct.took), pairRatio(this.took, nginx.took), figure(nginx.spent), figure(this.spent))
	if also.url != "" {
		fmt.Fprintf(w, "\t%s\t%s\t%s", figure(also.took), pairRatio(this.took, also.took), figure(also.spent))
	}
	fmt.Fprintln(w)
	return nil
}

// measure sends one bulk to a side. What prepares it isn't measured: the documents, and what the client reads.
func (s *bulkSite) measure(ctx context.Context, x *bulkSide, way *bulkWay, counts bool) error {
	s.used++
	text := way.text(s.used)
	if way.read {
		if err := x.read(ctx, way); err != nil {
			return err
		}
	}
	before, err := x.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	a, head, err := x.send(ctx, way, "_bulk", text)
	took := time.Since(began)
	if err != nil {
		return err
	}
	after, err := x.cpu()
	if err != nil {
		return err
	}
	if bytes.Contains(a[:min(len(a), 100)], []byte(`"errors":true`)) {
		return fmt.Errorf("%s: %.300s", x.url, a)
	}
	if got := head.Get("Optimist-Outcome"); x.guards && !strings.HasPrefix(got, way.outcome) {
		return fmt.Errorf("the outcome is %q, not %q", got, way.outcome)
	}
	if counts {
		x.took = append(x.took, float64(took)/float64(time.Millisecond))
		x.spent = append(x.spent, micros(after-before)/float64(way.items))
	}
	return nil
}

// read has the client read all documents of a bulk, which it makes if they aren't there.
func (x *bulkSide) read(ctx context.Context, way *bulkWay) error {
	ids := make([]string, way.items)
	for i := range ids {
		ids[i] = fmt.Sprintf("g-%d", i)
	}
	want, err := json.Marshal(map[string][]string{"ids": ids})
	if err != nil {
		return err
	}
	a, _, err := x.send(ctx, way, "_mget", string(want))
	if err != nil || !bytes.Contains(a, []byte(`"found":false`)) {
		return err
	}
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "{\"index\":{\"_id\":%q}}\n%s\n", id, created)
	}
	if _, _, err = x.send(ctx, way, "_bulk", b.String()); err == nil {
		_, _, err = x.send(ctx, way, "_mget", string(want))
	}
	return err
}

// send does one request of the client's.
func (x *bulkSide) send(ctx context.Context, way *bulkWay, what, body string) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/"+x.index(way.indexed)+"/"+what, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if way.read {
		req.Header.Set("Optimist-Session", "bench")
	}
	res, err := x.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	a, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s of %s: status %d: %.300s", what, x.url, res.StatusCode, a)
	}
	return a, res.Header, err
}

func (x *bulkSide) cpu() (time.Duration, error) {
	if x.process == nil {
		return 0, nil
	}
	return x.process.cpu()
}

// figure is a median.
func figure(x []float64) string {
	if len(x) == 0 || slices.Max(x) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", median(x))
}

// pairRatio is the median of the ratios of pairs, and the bounds of its confidence interval: the order statistics that are 1.96 standard
// deviations of the binomial distribution away from the middle.
func pairRatio(a, b []float64) string {
	if len(a) == 0 || len(a) != len(b) {
		return "–\t"
	}
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	slices.Sort(ratios)
	n := float64(len(ratios))
	away := int(0.98*math.Sqrt(n)) + 1
	middle := len(ratios) / 2
	return fmt.Sprintf("%.3f\t%.3f–%.3f", ratios[middle], ratios[max(0, middle-away)], ratios[min(len(ratios)-1, middle+away)])
}
