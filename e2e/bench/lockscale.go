package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/tidwall/gjson"
)

// many measures locks of different names, and what they cost optimist.
func (s *lockSite) many(ctx context.Context, out io.Writer, repeat int) error {
	const names, clients = 1000, 64
	different := func(worker, n int) string { return "many-" + strconv.Itoa((worker*names/clients+n*7)%names) }
	w := throughOptimist("optimist", s.plain.URL, "/_lock/global/")
	if _, err := contend(ctx, w, clients, lockTurn, different); err != nil {
		return err
	}
	p := &process{pid: s.plain.PID()}
	var turns []lockTimes
	var cost []float64
	for range repeat {
		before, err := p.cpu()
		if err != nil {
			return err
		}
		t, err := contend(ctx, w, clients, lockTurn, different)
		if err != nil {
			return err
		}
		after, err := p.cpu()
		if err != nil {
			return err
		}
		turns = append(turns, t)
		cost = append(cost, micros(after-before)/(t.rate*lockTurn.Seconds()))
	}
	t := middle(turns)
	fmt.Fprintf(out, "\n%d different locks, %d clients: %.0f locks/s, p50 %.1f ms, p99 %.1f ms, %.0f µs of optimist's processor time each.\n",
		names, clients, t.rate, ms(t.p50), ms(t.p99), median(cost))
	return nil
}

// tree measures paths of depth 5: all clients on one, and each on its own.
func (s *lockSite) tree(ctx context.Context, out io.Writer, workers, repeat int) error {
	w := throughOptimist("optimist", s.plain.URL, "/bench-tree/_lock/tree/")
	fmt.Fprintf(out, "\nA tree, paths of depth 5.\n\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "clients\tpaths\tlocks/s\tp50 ms\tp99 ms\tfewest/most a worker")
	for _, row := range []struct {
		name    string
		clients int
		path    func(worker, n int) string
	}{
		{"one", 1, func(int, int) string { return "a/b/c/d/e" }},
		{"the same", workers, func(int, int) string { return "a/b/c/d/e" }},
		{"each its own", workers, func(worker, _ int) string { return "a/b/c/d/e" + strconv.Itoa(worker) }},
	} {
		var turns []lockTimes
		for n := range repeat + 1 {
			t, err := contend(ctx, w, row.clients, lockTurn, row.path)
			if err != nil {
				return err
			}
			if n > 0 {
				turns = append(turns, t)
			}
		}
		t := middle(turns)
		fmt.Fprintf(table, "%d\t%s\t%.0f\t%.1f\t%.1f\t%d/%d\n", row.clients, row.name, t.rate, ms(t.p50), ms(t.p99), t.fewest, t.most)
	}
	_ = table.Flush() // to a terminal or a pipe that has gone: nobody's loss
	return nil
}

// large fills one tree with leases, and measures one more.
func (s *lockSite) large(ctx context.Context, out io.Writer, leases int) error {
	const root, clients = "/bench-large/_lock/tree/", 16
	path := func(n int) string { return fmt.Sprintf("%sa/b%d/c%d/d/e%d", root, n%10, n%100, n) }
	var wg sync.WaitGroup
	tokens, errs := make([]string, leases), make([]error, clients)
	each := func(do func(a *asker, n int) error) (time.Duration, error) {
		start := time.Now()
		for c := range clients {
			wg.Go(func() {
				a := newAsker(s.plain.URL)
				defer a.close()
				for n := c; n < leases && errs[c] == nil && ctx.Err() == nil; n += clients {
					errs[c] = do(&a, n)
				}
			})
		}
		wg.Wait()
		return time.Since(start), errors.Join(append(errs, ctx.Err())...)
	}
	filled, err := each(func(a *asker, n int) error {
		status, body, err := a.ask(http.MethodPut, path(n)+"?owner=w&ttl=1h", "")
		if tokens[n] = gjson.GetBytes(body, "token").Raw; err == nil && status != http.StatusCreated {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	if err != nil {
		return err
	}
	one := throughOptimist("optimist", s.plain.URL, root+"a/b1/more/")
	t, err := contend(ctx, one, 1, lockTurn, func(int, int) string { return "x" })
	if err != nil {
		return err
	}
	sixteen, err := contend(ctx, one, clients, lockTurn, func(worker, _ int) string { return "x" + strconv.Itoa(worker) })
	if err != nil {
		return err
	}
	emptied, err := each(func(a *asker, n int) error {
		status, body, err := a.ask(http.MethodDelete, path(n)+"?owner=w&token="+tokens[n], "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d leases in one tree: taken by %d clients in %.1f s, given back in %.1f s.\n", leases, clients, filled.Seconds(),
		emptied.Seconds())
	fmt.Fprintf(out, "Among them, one client: %.0f locks/s (p50 %.1f ms, p99 %.1f); %d clients, each on its own path: %.0f (%.1f, %.1f).\n",
		t.rate, ms(t.p50), ms(t.p99), clients, sixteen.rate, ms(sixteen.p50), ms(sixteen.p99))
	return nil
}

// crowd has many clients wait for one lock at once, and then serves them all.
func (s *lockSite) crowd(ctx context.Context, out io.Writer, clients int) error {
	const path = "/_lock/global/crowd"
	p := &process{pid: s.plain.PID()}
	holder := &optimistLocker{asker: newAsker(s.plain.URL), path: "/_lock/global/", owner: "holder", ttl: "1h"}
	if err := holder.lock(ctx, "crowd"); err != nil {
		return err
	}
	before := p.rss()
	addr := strings.TrimPrefix(s.plain.URL, "http://")
	var wg sync.WaitGroup
	errs := make([]error, clients)
	conns := make([]net.Conn, clients)
	for i := range clients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return fmt.Errorf("client %d of %d (ulimit -n?): %w", i, clients, err)
		}
		defer c.Close()
		conns[i] = c
		ask := fmt.Sprintf("PUT %s?owner=w%d&ttl=30s&wait=30m HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n", path, i)
		if _, err := io.WriteString(c, ask); err != nil {
			return err
		}
	}
	look := newAsker(s.plain.Admin)
	defer look.close()
	for waiting := 0; waiting < clients && ctx.Err() == nil; {
		_, body, err := look.ask(http.MethodGet, "/metrics", "")
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(string(body), `optimist_locks_waiting{class="foreground"} `)
		after, _, _ = strings.Cut(after, "\n")
		waiting, _ = strconv.Atoi(strings.TrimSpace(after))
		rest(ctx, 20*time.Millisecond)
	}
	memory := p.rss() - before
	start := time.Now()
	for i, c := range conns {
		wg.Go(func() { errs[i] = takeTurn(c, path, i) })
	}
	if err := holder.unlock("crowd"); err != nil {
		return err
	}
	wg.Wait()
	took := time.Since(start)
	fmt.Fprintf(out, "\n%d clients wait for one lock: %.1f KiB of optimist's memory each with the connection; all served in %.1f s, "+
		"%.0f locks/s.\n",
		clients, float64(memory)/float64(clients)/1024, took.Seconds(), float64(clients)/took.Seconds())
	return errors.Join(errs...)
}

// takeTurn waits for the lock that was asked for, and gives it back.
func takeTurn(c net.Conn, path string, i int) error {
	in := bufio.NewReaderSize(c, 512)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("%d %s", res.StatusCode, body)
	}
	token := gjson.GetBytes(body, "token").Raw
	if _, err := fmt.Fprintf(c, "DELETE %s?owner=w%d&token=%s HTTP/1.1\r\nHost: bench\r\n\r\n", path, i, token); err != nil {
		return err
	}
	if res, err = http.ReadResponse(in, nil); err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("released: %d", res.StatusCode)
	}
	return nil
}
