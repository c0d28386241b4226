package write

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// This file is the exercise of docs/exercise.md, which quotes what stands between the marks.

// begin: intent

// appendLine is what a client wants that adds a line to a text field.
type appendLine struct{ field, line string }

// Next implements intent.Intent.
func (a appendLine) Next(cur doc.Revision) (intent.Draft, error) {
	switch {
	case cur.Known() && cur.Source == nil:
		return intent.Draft{}, intent.ErrUnread // the loop reads the document, and asks again
	case cur.Source == nil:
		return intent.Draft{}, doc.ErrMissing
	}
	text := gjson.GetBytes(cur.Source, a.field).Str + a.line + "\n"
	body, err := sjson.SetBytes(cur.Source, a.field, text)
	return intent.Draft{Body: body}, err
}

// Merges implements intent.Intent: a line is added to whatever is there.
func (appendLine) Merges(doc.Revision) bool { return false }

// Repeatable implements intent.Intent: added twice, the line would be there twice.
func (appendLine) Repeatable(*intent.Draft, doc.Revision) bool { return false }

// end: intent

// begin: request

// appendTo adds the request's body as a line to the field log.
func (s *Service) appendTo(ctx context.Context, c *change) error {
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return err
	}
	c.intent = appendLine{field: "log", line: string(c.req.Body)}
	return s.inLane(ctx, c)
}

// end: request

// begin: carrier

// bulkItem carries each load as the only item of a _bulk.
type bulkItem struct{ single }

func (b bulkItem) carry(ctx context.Context, l *load) (*upstream.Response, error) {
	action := fmt.Appendf(nil, `{"index":{"_index":%q,"_id":%q,"if_seq_no":%d,"if_primary_term":%d}}`,
		l.change.Doc.Index, l.change.Doc.ID, l.guard.SeqNo, l.guard.PrimaryTerm)
	res, err := b.Send(ctx, &upstream.Request{Method: http.MethodPost, Target: []byte("/_bulk"),
		Fields: []wire.Field{{Name: []byte("Content-Type"), Value: []byte("application/x-ndjson")}},
		Body:   bytes.Join([][]byte{action, l.body, nil}, []byte("\n"))})
	if err != nil {
		return nil, err
	}
	// The loop wants the answer that a single write gets.
	item := gjson.GetBytes(res.Payload, "items.0.index")
	res.Status, res.Payload = int(item.Get("status").Int()), []byte(item.Raw)
	return res, nil
}

// end: carrier

// A new kind of write, sent in a new way, loses nothing either: the loop knows neither of them.
func TestAToyIntentByAToyCarrierLosesNothing(t *testing.T) {
	w := newWorld(t, "rules: [{name: r, match: {index: [shop]}, retry: {max_attempts: 200, max_elapsed: 1m}}]\n")
	w.s.carrier = bulkItem{w.s.direct}
	w.put("1", `{"log":""}`)
	w.put("1", `{"log":""}`)
	const clients, lines = 8, 10
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := range lines {
				if err := w.appendLine(fmt.Sprintf("%d/%d", i, j)); err != nil {
					t.Errorf("client %d, line %d: %v", i, j, err)
				}
			}
		})
		wg.Go(func() { // others, who don't know of any of it
			for {
				_, got := w.direct("GET", target1, "")
				if status, _ := w.direct("PUT", fmt.Sprintf("%s?if_seq_no=%d&if_primary_term=1", target1, gjson.Get(got, "_seq_no").Int()),
					strings.Replace(gjson.Get(got, "_source").Raw, `"log":"`, fmt.Sprintf(`"log":"direct %d\n`, i), 1)); status == 200 {
					return
				}
			}
		})
	}
	wg.Wait()
	log := gjson.Get(w.stored("1"), "log").Str
	for i := range clients {
		for j := range lines {
			if line := fmt.Sprintf("%d/%d\n", i, j); strings.Count(log, line) != 1 {
				t.Errorf("%q is there %d times", line, strings.Count(log, line))
			}
		}
		if !strings.Contains(log, fmt.Sprintf("direct %d\n", i)) {
			t.Errorf("the line of the direct writer %d is lost", i)
		}
	}
}

// A change that needs no base is made again after a conflict, though nothing is known of what its client has seen.
func TestAToyIntentIsMadeAgainAfterAConflict(t *testing.T) {
	w := newWorld(t, "")
	w.s.carrier = interrupted{w.s.carrier, sync.OnceFunc(func() { w.put("1", `{"log":"direct\n"}`) })}
	w.put("1", `{"log":""}`)
	if err := w.appendLine("mine"); err != nil {
		t.Fatal(err)
	}
	if got := gjson.Get(w.stored("1"), "log").Str; got != "direct\nmine\n" {
		t.Errorf("stored: %q", got)
	}
}

// interrupted has something happen before each load is carried.
type interrupted struct {
	carrier
	before func()
}

func (i interrupted) carry(ctx context.Context, l *load) (*upstream.Response, error) {
	i.before()
	return i.carrier.carry(ctx, l)
}

// appendLine adds a line as the Service's perform would for a request that asks for it.
func (w *world) appendLine(line string) error {
	var op api.Op
	api.Parse([]byte("PUT"), []byte(target1), &op)
	r := &Request{Method: []byte("PUT"), Body: []byte(line),
		Request: base.Request{Op: &op, Rule: w.rules.Match("shop", api.Index), Session: w.client("c").sess}}
	c := &r.change
	if err := c.read(r, w.s); err != nil {
		return err
	}
	a, err := w.s.finish(c, w.s.appendTo(w.t.Context(), c))
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d %s", a.Status, a.Body)
	}
	return err
}

// TestTheExerciseIsTheOneOfThePage compares the marked pieces of this file with the page that quotes them.
func TestTheExerciseIsTheOneOfThePage(t *testing.T) {
	source, err := os.ReadFile("exercise_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/exercise.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"intent", "request", "carrier"} {
		_, rest, _ := strings.Cut(string(source), "// begin: "+name+"\n")
		piece, _, found := strings.Cut(rest, "// end: "+name+"\n")
		if piece = strings.TrimSpace(piece); !found || piece == "" || !strings.Contains(string(page), "```go\n"+piece+"\n```") {
			t.Errorf("docs/exercise.md doesn't quote the %s:\n%s", name, piece)
		}
	}
}
