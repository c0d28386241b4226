package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"optimist/internal/demo/app"
	"optimist/internal/embedded"
)

// serveEmbedded serves the in-memory engine.
func serveEmbedded(ctx context.Context, _ []string, out io.Writer) error {
	ln, err := listen(ctx, out)
	if err != nil {
		return err
	}
	e := embedded.New(embedded.Options{})
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	<-ctx.Done()
	_ = e.Close() // whatever it holds is gone anyway
	return <-done
}

// send does one request, reads the answer to its end, and returns its status. A body is JSON, or lines of it for a bulk.
func send(ctx context.Context, c *http.Client, method, url, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	switch {
	case strings.HasSuffix(url, "/_bulk"):
		req.Header.Set("Content-Type", "application/x-ndjson")
	case body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// newClient is a client with connections for so many requests at once.
func newClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true,
		DialContext: (&net.Dialer{}).DialContext}}
}

// creation is one way to make new documents, which need no guard.
type creation struct {
	name     string
	requests int
	send     func(ctx context.Context, c *http.Client, url string, turn, n int) (int, error)
}

const created = `{"name":"a small document","stock":10,"tags":["a","b"]}`

func (s *site) creations() []creation {
	single := func(method string, path func(turn, n int) string) func(context.Context, *http.Client, string, int, int) (int, error) {
		return func(ctx context.Context, c *http.Client, url string, turn, n int) (int, error) {
			return send(ctx, c, method, url+"/"+s.index+path(turn, n), created)
		}
	}
	bulk := func(lines func(turn, n int) string) func(context.Context, *http.Client, string, int, int) (int, error) {
		return func(ctx context.Context, c *http.Client, url string, turn, n int) (int, error) {
			return send(ctx, c, http.MethodPost, url+"/"+s.index+"/_bulk", lines(turn, n))
		}
	}
	nameless := strings.Repeat("{\"index\":{}}\n"+created+"\n", 1000)
	return []creation{
		{"PUT _create", 1000, single(http.MethodPut, func(turn, n int) string { return fmt.Sprintf("/_create/c-%d-%d", turn, n) })},
		{"POST without an id", 1000, single(http.MethodPost, func(int, int) string { return "/_doc" })},
		{"_bulk, 1,000 creates", bulks, bulk(thousandCreates)},
		{"_bulk, 1,000 without ids", bulks, bulk(func(int, int) string { return nameless })},
	}
}

// bulks is how many bulks are measured together: a single one takes too short a time.
const bulks = 16

// thousandCreates are the lines of a bulk.
func thousandCreates(turn, n int) string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "{\"create\":{\"_id\":\"b-%d-%d-%d\"}}\n%s\n", turn, n, i, created)
	}
	return b.String()
}

// creates measures 1,000 new documents straight at the engine, through nginx, which adds nothing but the way, and through optimist, one
// request after the other and 16 at once.
func (s *site) creates(ctx context.Context, out io.Writer, repeat int) error {
	fmt.Fprintf(out, "1,000 new documents, one by one, or %d bulks; medians of %d turns, in ms, and least–most.\n\n", bulks, 2*repeat)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "way\tclients\tdirect\t\tthrough nginx\t\tthrough optimist\t\t× direct\t× nginx")
	turn := 0
	for _, way := range s.creations() {
		for _, clients := range []int{1, 16} {
			took, err := way.compare(ctx, []string{s.engine, s.nginx, s.plain}, clients, turn, 2*repeat)
			if err != nil {
				return err
			}
			turn += 2 * repeat
			fmt.Fprintf(w, "%s\t%d", way.name, clients)
			for _, ms := range took {
				fmt.Fprintf(w, "\t%s", spread(ms))
			}
			fmt.Fprintf(w, "\t%s\t%s\n", ratio(took[2], took[0]), ratio(took[2], took[1]))
		}
	}
	_ = w.Flush() // to a terminal or a pipe that has gone: nobody's loss
	fmt.Fprintln(out)
	return nil
}

// compare measures turns of each side, which begin with another one each time, in ms. A side without a URL is left out.
func (y *creation) compare(ctx context.Context, sides []string, clients, turn, turns int) ([][]float64, error) {
	took := make([][]float64, len(sides))
	for n := range turns {
		for i := range sides {
			k := (i + n) % len(sides)
			if sides[k] == "" {
				continue
			}
			t, err := y.measure(ctx, sides[k], clients, (turn+n)*len(sides)+k)
			if err != nil {
				return nil, err
			}
			took[k] = append(took[k], float64(t)/float64(time.Millisecond))
		}
	}
	return took, nil
}

// spread is a median, the least and the most, as two cells of a table.
func spread(x []float64) string {
	if len(x) == 0 {
		return "–\t"
	}
	return fmt.Sprintf("%.0f\t%.0f–%.0f", median(x), slices.Min(x), slices.Max(x))
}

func ratio(a, b []float64) string {
	if len(a) == 0 || len(b) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", median(a)/median(b))
}

// measure makes 1,000 documents.
func (y *creation) measure(ctx context.Context, url string, clients, turn int) (time.Duration, error) {
	c := newClient(clients)
	defer c.CloseIdleConnections()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	start := time.Now()
	for client := range clients {
		wg.Go(func() {
			for n := client; n < y.requests; n += clients {
				status, err := y.send(ctx, c, url, turn, n)
				if err == nil && status != http.StatusOK && status != http.StatusCreated {
					err = fmt.Errorf("%s at %s: status %d", y.name, url, status)
				}
				if err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start), first
}

// reads measures reads through optimist of a document whose lane is busy, beside those of one that nobody writes, under the same load.
func (s *site) reads(ctx context.Context, out io.Writer, repeat, workers int) error {
	fmt.Fprintf(out, "Reads by one client while %d workers write through optimist; medians of %d turns.\n\n", workers, repeat)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "reads of\tthrough\tp50 µs\tp99 µs\treads/s")
	busy, quiet := "/"+s.index+"/_doc/busy", "/"+s.index+"/_doc/quiet"
	for _, doc := range []string{busy, quiet} {
		if err := (&app.Application{URLs: []string{s.engine}, Path: doc, Workers: workers}).Prepare(ctx); err != nil {
			return err
		}
	}
	rows := []struct{ name, where, url string }{
		{"the document that they write", "optimist", s.plain + busy},
		{"another document", "optimist", s.plain + quiet},
		{"the document that they write", "nothing", s.engine + busy},
		{"another document", "nothing", s.engine + quiet},
	}
	p50, p99, rate := make([][]float64, len(rows)), make([][]float64, len(rows)), make([][]float64, len(rows))
	writing, stop := context.WithCancel(ctx)
	writers := make(chan struct{})
	go func() {
		defer close(writers)
		a := &app.Application{URLs: []string{s.plain}, Path: busy, Sessions: app.Named, Workers: workers, Rounds: 1 << 30}
		a.Work(writing)
	}()
	defer func() { stop(); <-writers }()
	for turn := range repeat {
		for i := range rows {
			k := (i + turn) % len(rows)
			m, err := measureReads(ctx, rows[k].url)
			if err != nil {
				return err
			}
			p50[k], p99[k] = append(p50[k], micros(m.p50)), append(p99[k], micros(m.p99))
			rate[k] = append(rate[k], float64(m.requests)/m.elapsed.Seconds())
		}
	}
	for i, row := range rows {
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\n", row.name, row.where, median(p50[i]), median(p99[i]), median(rate[i]))
	}
	_ = w.Flush() // to a terminal or a pipe that has gone: nobody's loss
	fmt.Fprintln(out)
	return nil
}

// readTime is how long one turn of reads takes.
const readTime = time.Second

func measureReads(ctx context.Context, url string) (sample, error) {
	c := newClient(1)
	defer c.CloseIdleConnections()
	var times []time.Duration
	start := time.Now()
	for time.Since(start) < readTime {
		began := time.Now()
		status, err := send(ctx, c, http.MethodGet, url, "")
		if err != nil {
			return sample{}, err
		}
		if status != http.StatusOK {
			return sample{}, fmt.Errorf("reading %s: status %d", url, status)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return sample{requests: int64(len(times)), elapsed: time.Since(start), p50: times[len(times)/2], p99: times[len(times)*99/100]}, nil
}
