package hostile

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"optimist/e2e/hostile/attacks"
)

// Every form of attack becomes large: its body is as long as a guarded one may be, and sent as gzip data by many clients at the same time.
// What a parser makes of it has to come from the budget, too. Patches are dearest to read, and a line of a bulk has no limit of its own; all
// forms are tried where there is time.
func TestEveryFormStaysWithinTheBudget(t *testing.T) {
	const clients = 16
	g := start(t, bounded+attacks.Config)
	g.put(t, "/i/_doc/1", `{"a":"a","l":[1,2,3],"o":{"a":1},"n":1}`)
	before, _ := g.rss(t)
	highest := before
	for _, a := range attacks.All() {
		if kind, _, _ := strings.Cut(a.Name, ": "); !long() && !slices.Contains([]string{"patch", "steps", "action"}, kind) {
			continue
		}
		request, ok := inGzip(t, a.Request(4*mebi-200))
		if !ok {
			continue
		}
		g.forgetPeak(t)
		statuses := atOnce(clients, func(int) int { return g.exchange(request) })
		_, peak := g.rss(t)
		highest = max(highest, peak)
		if peak-before > memory+slack {
			t.Errorf("%s: memory grew by %d MiB, statuses %v", a.Name, (peak-before)/mebi, statuses)
		}
		if testing.Verbose() {
			t.Logf("%-40s %4d KiB sent %4d MiB more %v", a.Name, len(request)>>10, (peak-before)/mebi, statuses)
		}
	}
	g.holds(t, highest-before)
}

// inGzip is the request with its body as gzip data. ok is false for one without a body, or that has a coding already.
func inGzip(t *testing.T, plain []byte) (coded []byte, ok bool) {
	t.Helper()
	head, body, _ := bytes.Cut(plain, []byte("\r\n\r\n"))
	line, fields, _ := strings.Cut(string(head), "\r\n")
	method, target, _ := strings.Cut(strings.TrimSuffix(line, " HTTP/1.1"), " ")
	own := []string{"Content-Encoding", "gzip"}
	for field := range strings.SplitSeq(fields, "\r\n") {
		switch name, value, _ := strings.Cut(field, ": "); name {
		case "Host", "Content-Length":
		case "Content-Encoding", "Transfer-Encoding":
			return nil, false
		default:
			own = append(own, name, value)
		}
	}
	if len(body) == 0 || len(head) > 60<<10 { // longer heads are refused
		return nil, false
	}
	return request(method, target, zipped(func(w io.Writer) { _, _ = w.Write(body) }), own...), true
}
