package hostile

import (
	"context"
	"fmt"
	"io"
	"strings"
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

// Attackers of every kind work at once, and a good client among them loses nothing, and has all its writes guarded. The process stays
// within its budget. How much slower the client's writes are is said and not judged: the engine in memory works in the process of the
// attackers, and is most of it.
func TestAGoodClientWorksOnUnderAMixedAttack(t *testing.T) {
	g := start(t, bounded)
	quietly := g.begin(t, "/good/_doc/quiet")
	ctx, cancel := context.WithTimeout(t.Context(), mixedTime()/3)
	<-ctx.Done()
	cancel()
	_, quiet := quietly.finish(t)
	attacks := g.mixedAttacks(t)
	c := g.begin(t, "/good/_doc/1")
	ctx, cancel = context.WithTimeout(t.Context(), mixedTime())
	defer cancel()
	before := g.cpu(t)
	var counts map[string]int
	grown := g.growth(t, func() { counts = run(ctx, attacks) })
	_, slowest := c.finish(t)
	t.Logf("attempts %v, processor time %v; the slowest writes of the good client take %.1f times as long as quietly", counts, g.cpu(t)-before,
		float64(slowest)/float64(quiet))
	if _, stack, panicked := strings.Cut(g.Log(), "panic"); panicked {
		t.Errorf("panic%.2000s", stack)
	}
	g.holds(t, grown)
}

// mixedAttacks are one of each kind that the tests of this package know, by a few workers each.
func (g *target) mixedAttacks(t *testing.T) []attack {
	const media = "application/json"
	g.put(t, "/attacked/_doc/1", `{"a":"aaaaaaaa"}`)
	g.put(t, "/attacked/_doc/large", `{"a":"`+strings.Repeat("a", 4*mebi)+`"}`)
	document := zipped(t, func(w io.Writer) {
		_, _ = io.WriteString(w, `{"a":"`)
		repeat(w, "a", 4*mebi-64)
		_, _ = io.WriteString(w, `"}`)
	})
	ids := zipped(t, func(w io.Writer) {
		_, _ = io.WriteString(w, `{"ids":[`)
		repeat(w, `"",`, mebi/16)
		_, _ = io.WriteString(w, `""]}`)
	})
	items := zipped(t, func(w io.Writer) { repeat(w, `{"delete":{"_id":"1"}}`+"\n", mebi/200) })
	var doubling []string
	for i := range 40 {
		doubling = append(doubling, fmt.Sprintf(`{"op":"copy","from":"","path":"/%d"}`, i))
	}
	patch := []byte("[" + strings.Join(doubling, ",") + "]")
	all := func(requests ...[]byte) func() {
		return func() {
			for _, r := range requests {
				g.exchange(r)
			}
		}
	}
	write := request("PUT", "/attacked/_doc/1", document, "Content-Type", media, "Content-Encoding", "gzip")
	return []attack{
		{"compressed documents", 2, all(write)},
		{"half a request", 2, g.leaving(write[:len(write)/2])},
		{"bombs of ids and of items", 2, all(
			request("POST", "/attacked/_mget", ids, "Content-Type", media, "Content-Encoding", "gzip"),
			request("POST", "/attacked/_bulk", items, "Content-Type", media, "Content-Encoding", "gzip"))},
		{"patches that double", 1, all(request("PATCH", "/attacked/_doc/1", patch, "Content-Type", "application/json-patch+json"))},
		{"readers that leave", 2, g.leaving(request("GET", "/attacked/_doc/large", nil))},
		{"brackets", 1, all(request("PUT", "/attacked/_doc/2", []byte(strings.Repeat("[", mebi)), "Content-Type", media))},
		{"locks", 1, all(request("PUT", "/_lock/global/attacked?owner=o&ttl=1s&wait=100ms", nil))},
		{"changes of aliases", 1, all(request("POST", "/_aliases", []byte(`{"actions":[{"add":{"index":"nothing","alias":"a"}}]}`), "Content-Type", media))},
	}
}

// leaving sends bytes and leaves.
func (g *target) leaving(bytes []byte) func() {
	return func() {
		if c, err := g.connect(); err == nil {
			_, _ = c.Write(bytes)
			_ = c.Close()
		}
	}
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
