package hostile

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// pass waits for so long, or for the end of the test.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// Engine, good clients and attackers work on other machines than optimist. Where the times are looked at, none of them must take optimist's
// time, nor other work on this machine. So there the kernel serves the test first, with the engine and the clients; then optimist; then
// all others; and the attackers last. That takes the right to real-time priorities, which root has.
const (
	clientPriority   = 2
	optimistPriority = 1
)

// idle is the command that starts an attacker: it gets the processor time that nobody else wants. Where the times aren't looked at, there is
// no such command: on a busy machine, an idle process may never come to its end.
func idle() []string {
	if path, err := exec.LookPath("chrt"); err == nil && long() {
		return []string{path, "--idle", "0"}
	}
	return nil
}

// serveFirst gives a process a real-time priority. It reports whether it may.
func serveFirst(t *testing.T, pid, priority int) bool {
	t.Helper()
	out, err := exec.Command("chrt", "--all-tasks", "--rr", "--pid", strconv.Itoa(priority), strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		t.Logf("the times are those of a shared machine: %v %s", err, out)
	}
	return err == nil
}

// firstInLine has the kernel serve the test first until its end, and the processes that it starts from now on.
func firstInLine(t *testing.T) bool {
	t.Helper()
	if !long() || !serveFirst(t, os.Getpid(), clientPriority) {
		return false
	}
	t.Cleanup(func() {
		_ = exec.Command("chrt", "--all-tasks", "--other", "--pid", "0", strconv.Itoa(os.Getpid())).Run()
	})
	return true
}

// goodAddress is where the good client comes from. Attackers come from 127.0.0.1: clients without credentials are told apart by that.
const goodAddress = "127.0.0.2"

// pair is a good client, and its control: one that does the same at the same time, through a forwarder without any logic. What becomes slow
// for the control is the machine, and the engine, which works for the attackers, too.
type pair struct{ good, control *good }

func (g *target) beginPair(t *testing.T, forwarder, name string) pair {
	t.Helper()
	return pair{(&good{target: g, url: g.URL, from: goodAddress, path: "/good/_doc/" + name}).begin(t),
		(&good{target: g, url: forwarder, from: goodAddress, path: "/control/_doc/" + name}).begin(t)}
}

// finish returns how long the slowest writes of both take.
func (p pair) finish(t *testing.T) (good, control time.Duration) {
	t.Helper()
	_, good = p.good.finish(t)
	_, control = p.control.finish(t)
	return good, control
}

// Attackers of every kind work at once, and a good client among them loses nothing, and has all its writes guarded. The process stays
// within its budget. How much slower the client's writes are is said and not judged: it depends on the machine, as the control shows, and
// on optimist (docs/security.md).
func TestAGoodClientWorksOnUnderAMixedAttack(t *testing.T) {
	for name, refuses := range map[string]string{"of clients": "", "of strangers": refusing} {
		t.Run(name, func(t *testing.T) {
			alone := firstInLine(t)
			_, engineURL := play(t, "engine", refuses)
			_, forwarder := play(t, "forwarder", strings.TrimPrefix(engineURL, "http://"))
			g := startAt(t, engineURL, bounded+ownCredentials(t))
			if alone {
				serveFirst(t, g.PID(), optimistPriority)
			}
			g.attackedMixed(t, forwarder)
		})
	}
}

// ownCredentials is configuration with which optimist has credentials of its own.
func ownCredentials(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "basic")
	if err := os.WriteFile(file, []byte("optimist:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "upstream: {auth: {basic_file: " + file + "}}\n"
}

func (g *target) attackedMixed(t *testing.T, forwarder string) {
	t.Helper()
	quietly := g.beginPair(t, forwarder, "quiet")
	pass(t, mixedTime()/3)
	quiet, quietControl := quietly.finish(t)
	g.put(t, "/attacked/_doc/1", `{"a":"aaaaaaaa"}`)
	g.put(t, "/attacked/_doc/large", `{"a":"`+strings.Repeat("a", 4*mebi)+`"}`)
	before := g.cpu(t)
	p := g.beginPair(t, forwarder, "1")
	var counts string
	grown := g.growth(t, func() {
		attackers, _ := play(t, "attackers", g.addr, idle()...)
		pass(t, mixedTime())
		counts = attackers.end()
	})
	slowest, control := p.finish(t)
	times := func(a, b time.Duration) float64 { return float64(a) / float64(b) }
	t.Logf("attempts %v, processor time %v; the slowest writes of the good client take %.1f times as long as quietly, and of its control %.1f "+
		"times", counts, g.cpu(t)-before, times(slowest, quiet), times(control, quietControl))
	if _, stack, panicked := strings.Cut(g.Log(), "panic"); panicked {
		t.Errorf("panic%.2000s", stack)
	}
	g.holds(t, grown)
}

// attackFrom is all attackers at once, against an address.
func attackFrom(ctx context.Context, addr string, ready func(string)) (string, error) {
	attacks := (&target{addr: addr}).mixedAttacks()
	ready("")
	return fmt.Sprint(run(ctx, attacks)), nil
}

// mixedAttacks are one of each kind that the tests of this package know, by a few workers each.
func (g *target) mixedAttacks() []attack {
	const media = "application/json"
	document := zipped(func(w io.Writer) {
		_, _ = io.WriteString(w, `{"a":"`)
		repeat(w, "a", 4*mebi-64)
		_, _ = io.WriteString(w, `"}`)
	})
	ids := zipped(func(w io.Writer) {
		_, _ = io.WriteString(w, `{"ids":[`)
		repeat(w, `"",`, mebi/16)
		_, _ = io.WriteString(w, `""]}`)
	})
	items := zipped(func(w io.Writer) { repeat(w, `{"delete":{"_id":"1"}}`+"\n", mebi/200) })
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
