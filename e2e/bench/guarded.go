package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"optimist/e2e/optimist"
)

// guarded measures the processor time that a guarded write costs in optimist, beside proxies that forward the same requests
// without a guard.
func guarded(ctx context.Context, s *stage, args []string, out io.Writer) error {
	m := measurement{stub: "serve-engine-stub"}
	fs := m.flags("guarded")
	also := fs.String("also", "", "another build of optimist, to measure beside this one: what has a change cost?")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var missing []string
	m.contenders, missing = guardedContenders(m.only, *also)
	results, err := m.inTurns(ctx, s, workloads)
	if err != nil {
		return err
	}
	for _, w := range workloads {
		fmt.Fprintf(out, "%s: %s\n", w.name, w.what)
		printTable(out, m.contenders, results[w.name])
		fmt.Fprintln(out)
	}
	tellMissing(out, missing)
	return ctx.Err()
}

// guarding is the contender whose answers must say that they were guarded. Another build's name has a comma after it.
const guarding = "optimist serve"

func (c contender) guards() bool {
	return c.name == guarding || strings.HasPrefix(c.name, guarding+",")
}

// ruled has a rule that transforms what is written to one index, and leaves the other to the defaults.
const ruled = `rules:
- name: ruled
  match: {index: [ruled]}
  transform:
    - {op: increment, path: /edits, value: 1}
    - {op: now, path: /updated_at}
    - {op: default, path: /status, value: sold out, when: candidate.stock > 10}
- name: locked
  match: {index: [locked]}
  locks: enforce
- name: default
`

// guardedContenders are those of passthrough, with the real program guarding among them, and another build of it unless also
// is empty.
func guardedContenders(only, also string) (list []contender, missing []string) {
	list, missing = contenders(only)
	program := func(binary string) func(context.Context, string, string) (*process, error) {
		return func(ctx context.Context, dir, upstream string) (*process, error) {
			return startBuild(ctx, dir, upstream, optimist.Options{Binary: binary, Args: []string{"--mode", "guard"}, Config: ruled})
		}
	}
	if also != "" {
		list = append([]contender{{guarding + ", " + filepath.Base(also), program(also)}}, list...)
	}
	return append([]contender{{guarding, program("")}}, list...), missing
}

func tellMissing(out io.Writer, missing []string) {
	for _, name := range missing {
		fmt.Fprintf(out, "not measured, because it isn't installed: %s (Debian: apt-get install nginx-light haproxy)\n", name)
	}
}

// workload is a cycle of requests that every client goes through, and what comes before it. guards says that the contender guards.
type workload struct {
	name, what     string
	opening, cycle func(host string, client int, guards bool) []step
}

// steps are the clients that go through the workload at a contender.
func (w *workload) steps(addr string, clients int, guards bool) *steps {
	return &steps{addr: addr, clients: clients,
		opening: func(client int) []step { return w.opening(addr, client, guards) },
		cycle:   func(client int) []step { return w.cycle(addr, client, guards) }}
}

var workloads = []workload{
	{"if-match", "PUT with If-Match, the guard added from it; all requests are guarded writes", nothing, ifMatch},
	{"enforced", "the same in an index where locks are enforced, and nobody holds one", nothing, enforcedWrite},
	{"session", "GET and PUT in a named session, the guard added from what the session read; half are reads", nothing, inSession},
	{"view", "PUT after PUT in a named session, the guard added from what the session wrote", inSession, fromMemory},
	{"transform", "PUT with If-Match under a rule with three steps, one of them under a condition", nothing, transformed},
	{"patch", "PATCH under the same rule; optimist reads and writes, the others forward it", nothing, patched},
}

const (
	guardedMark = "Optimist-Outcome: guarded;attempts=1;base="
	// ifMatchField names another revision than the stub says to have written: no engine gives a write the numbers that it was guarded by.
	ifMatchField = `If-Match: "5-1"`
	// sentBody is the document with a change.
	sentBody = `{"name":"a small document","stock":11,"tags":["a","b"],"updated_at":"2024-05-01T10:00:00Z"}`
)

func ifMatch(host string, client int, guards bool) []step {
	return []step{write{"PUT", "bench", sentBody, ifMatchField, "if_match"}.of(host, client, guards)}
}

func enforcedWrite(host string, client int, guards bool) []step {
	return []step{write{"PUT", "locked", sentBody, ifMatchField, "if_match"}.of(host, client, guards)}
}

func inSession(host string, client int, guards bool) []step {
	return []step{
		{request: request("GET", document("bench", client), host, "", sessionField(client)), body: []byte(about(stubRead, "bench", client))},
		write{"PUT", "bench", sentBody, sessionField(client), "session"}.of(host, client, guards),
	}
}

func fromMemory(host string, client int, guards bool) []step {
	return []step{write{"PUT", "bench", sentBody, sessionField(client), "view"}.of(host, client, guards)}
}

func sessionField(client int) string { return "Optimist-Session: thread-" + strconv.Itoa(client) }

func transformed(host string, client int, guards bool) []step {
	s := write{"PUT", "ruled", sentBody, ifMatchField, "if_match"}.of(host, client, guards)
	if guards { // what the rule makes of its document the client hasn't seen: it gets the numbers of its base
		s.body = bytes.Replace(s.body, []byte(`"_seq_no":`+anyNumber), []byte(`"_seq_no":5`), 1)
	}
	return []step{s}
}

func patched(host string, client int, guards bool) []step {
	const operations = `[{"op":"increment","path":"/stock","value":1}]`
	return []step{write{"PATCH", "ruled", operations, "Content-Type: application/vnd.optimist-patch+json", "none"}.of(host, client, guards)}
}

func nothing(string, int, bool) []step { return nil }

// document is the path of a client's own document: conflicts aren't measured here.
func document(index string, client int) string {
	return "/" + index + "/_doc/" + strconv.Itoa(client+1)
}

// write is a write of a client's own document. base is what its outcome says where the contender guards.
type write struct{ method, index, body, field, base string }

// of is the write as a client sends it.
func (w write) of(host string, client int, guards bool) step {
	s := step{request: request(w.method, document(w.index, client), host, w.body, w.field), body: []byte(about(stubWritten, w.index, client))}
	if guards {
		s.mark = []byte(guardedMark + w.base)
	}
	return s
}
