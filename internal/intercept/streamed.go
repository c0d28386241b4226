package intercept

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/es"
	"optimist/internal/respond"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// line is an item's action and document while the document still comes: what is here, and then as far as the line goes. It is an
// upstream.Source.
type line struct {
	from    io.Reader
	text    []byte // what is here, not sent yet
	room    []byte
	behind  []byte // what follows the line
	ended   bool   // nothing follows behind
	whole   bool   // all of the line was read
	err     error
	stopped atomic.Bool
}

var errStopped = errors.New("the rest of the item isn't wanted")

// Next implements upstream.Source.
func (l *line) Next() ([]byte, error) {
	switch {
	case l.stopped.Load():
		return nil, errStopped
	case l.err != nil:
		return nil, l.err
	case len(l.text) > 0:
		text := l.text
		l.text = nil
		return text, nil
	case l.whole:
		return nil, io.EOF
	case l.room == nil:
		l.room = make([]byte, 64<<10)
	}
	n, err := l.from.Read(l.room)
	text := l.room[:n]
	if at := bytes.IndexByte(text, '\n'); at >= 0 {
		l.whole, l.behind, text = true, bytes.Clone(text[at+1:]), text[:at+1]
	}
	switch {
	case err == io.EOF:
		l.whole, l.ended = true, true
	case err != nil:
		l.err = err
		return nil, err
	}
	return text, nil
}

// Interrupt implements upstream.Source. A read that waits for the client goes on until that sends something, or has taken too long.
func (l *line) Interrupt() { l.stopped.Store(true) }

// skip reads what nobody wanted of the line.
func (l *line) skip() error {
	l.stopped.Store(false)
	for {
		if _, err := l.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// filteredElement is what the client wants to see of an element of the answer's items; nil if that is nothing.
func filteredElement(query, element []byte) []byte {
	all := append(append([]byte(`{"items":[`), element...), "]}"...)
	for left := range es.Elements(respond.Filtered(query, all), "items") {
		return bytes.Clone(left)
	}
	return nil
}

// answer gives the client what became of all items.
func (s *stream) answer() {
	field := outcomeField(&s.account)
	if s.refusal != nil {
		_ = s.r.Answer(s.refusal.Status, append(s.refusal.Fields, field), s.refusal.Body)
		return
	}
	a := proxy.Streamed{Status: http.StatusOK, Fields: append(s.head, field)}
	if s.head == nil {
		a.Own, a.Fields = true, []wire.Field{respond.JSON, field}
	}
	if !s.refresh.last(s) {
		a.Fields = append(a.Fields, wire.Field{Name: []byte("Warning"), Value: []byte(`299 optimist "the engine hasn't refreshed all of it"`)})
	}
	s.summary.Took = time.Since(s.began)
	head, tail := s.summary.Append(nil), []byte("]}")
	if s.filtered {
		head, tail = s.filteredHead(head)
	}
	a.Length = int64(len(head)) + s.out.size + int64(len(tail))
	a.Body = io.MultiReader(bytes.NewReader(head), s.out.reader(), bytes.NewReader(tail))
	_ = s.r.AnswerFrom(&a)
}

// filteredHead is what stands before and behind the items.
func (s *stream) filteredHead(head []byte) (before, behind []byte) {
	of := respond.Filtered(s.r.Op().Query, append(bytes.TrimSuffix(head, []byte(`,"items":[`)), '}'))
	if s.out.size == 0 {
		return of, nil
	}
	before = bytes.TrimSuffix(bytes.TrimSpace(of), []byte("}"))
	if len(before) > 1 {
		before = append(before, ',')
	}
	return append(before, `"items":[`...), []byte("]}")
}

// refresh has what a bulk writes be found by searches when it is answered, if the client wants that. A refresh costs the engine the same
// for one document as for many, and to wait for one takes up to a second: so a bulk that goes in many windows isn't refreshed with each
// of them, but once behind the last, where its client may do that. The first window is refreshed as the client says; so is all of a bulk
// that ends there.
type refresh struct {
	wanted bool
	probed bool // whether the client may refresh indices by themselves
	once   bool // it may
	names  map[string]bool
}

func refreshOf(r *request) refresh {
	v, given := uri.Param(r.Op().Query, "refresh")
	return refresh{wanted: given && string(v) != "false", names: map[string]bool{}}
}

// of reports whether a window is to be refreshed with its requests.
func (f *refresh) of(s *stream, b *items) bool {
	if !f.wanted {
		return true // the parameter may say so, or be wrong, which the engine tells
	}
	if s.windows > 0 && !f.probed {
		f.probed, f.once = true, f.now(s)
	}
	for name := range b.names {
		f.names[name] = true
	}
	return !f.once
}

// last refreshes what was written since the first window. It reports whether all that was to be refreshed is.
func (f *refresh) last(s *stream) bool { return !f.once || f.now(s) }

// now refreshes all indices that were written.
func (f *refresh) now(s *stream) bool {
	var names []string
	length, lenient := 0, true
	send := func() bool {
		req := esapi.IndicesRefreshRequest{Index: names, IgnoreUnavailable: &lenient}
		names, length = nil, 0
		a, err := es.Ask(s.r.Context(), s.i.Upstream, req, es.Way{Caller: s.r.Caller(), Timeout: bulkTimeout})
		return err == nil && a.Status == http.StatusOK
	}
	for name := range f.names {
		names = append(names, es.Segment(name))
		if length += len(names[len(names)-1]); length > mostOfTarget && !send() {
			return false
		}
	}
	return len(names) == 0 || send()
}

// mostOfTarget is up to how many bytes of names go into one request: the engines take 4 KiB of a request line.
const mostOfTarget = 2 << 10

var _ upstream.Source = (*line)(nil)
