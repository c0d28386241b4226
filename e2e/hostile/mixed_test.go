package hostile

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"
)

// attack is one kind of attacker: attempt is called again and again by each of its workers, until the attack ends.
type attack struct {
	name    string
	workers int
	attempt func()
}

// run has all attackers work at once until ctx ends, and returns how many attempts each kind made.
func run(ctx context.Context, attacks []attack) map[string]int {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		counts = map[string]int{}
	)
	for _, a := range attacks {
		for range a.workers {
			wg.Go(func() {
				n := 0
				for ctx.Err() == nil {
					a.attempt()
					n++
				}
				mu.Lock()
				counts[a.name] += n
				mu.Unlock()
			})
		}
	}
	wg.Wait()
	return counts
}

// mixedTime is how long the mixed attack lasts.
func mixedTime() time.Duration {
	if long() {
		return time.Minute
	}
	return 3 * time.Second
}

// Attackers of every kind work at once, and a good client among them loses nothing.
func TestAGoodClientWorksOnUnderAMixedAttack(t *testing.T) {
	g := start(t, "")
	g.put(t, "/attacked/_doc/1", `{"a":1}`)
	document := zipped(t, func(w io.Writer) {
		_, _ = io.WriteString(w, `{"a":"`)
		repeat(w, "a", 8*mebi)
		_, _ = io.WriteString(w, `"}`)
	})
	write := request("PUT", "/attacked/_doc/1", document, "Content-Type", "application/json", "Content-Encoding", "gzip")
	c := g.begin(t, "/good/_doc/1")
	ctx, cancel := context.WithTimeout(t.Context(), mixedTime())
	defer cancel()
	before := g.cpu(t)
	var counts map[string]int
	grown := g.growth(t, func() {
		counts = run(ctx, []attack{
			{"compressed documents", 4, func() { g.exchange(write) }},
			{"half a request", 4, func() {
				if c, err := g.connect(); err == nil {
					_, _ = c.Write(write[:len(write)/2])
					_ = c.Close()
				}
			}},
		})
	})
	c.finish(t)
	t.Logf("attempts %v, memory grew by %d MiB, processor time %v", counts, grown/mebi, g.cpu(t)-before)
}

// A connection on which nothing more comes holds nobody up.
func TestHalfARequestHoldsNobodyUp(t *testing.T) {
	g := start(t, "")
	for range 50 {
		if _, err := io.WriteString(g.dial(t), "PUT /i/_doc/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	if a := g.ask(t, "PUT", "/i/_doc/1", `{}`); a.Status != 201 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
