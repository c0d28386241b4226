package ruletest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/explain"
	"optimist/internal/intercept"
	"optimist/internal/mark"
	"optimist/internal/rule"
)

// Result is what became of one test.
type Result struct {
	File string
	Line int
	Name string
	Took time.Duration
	// Failures are what wasn't as expected, each in one line or a few; none: the test passed.
	Failures []string
	// Err says that the test could not be carried out.
	Err error
	// Writes are the writes that were tested, each with its account.
	Writes []Written
}

// Failed reports whether the test didn't pass.
func (r *Result) Failed() bool { return r.Err != nil || len(r.Failures) > 0 }

// Written is a write that was tested.
type Written struct {
	Name    string // of the writer; empty if there is only one
	Request string
	Status  int
	Outcome string // the answer's field
	Account *explain.Account

	stored []byte // the document after it
}

// Runner runs tests. It may be used by several goroutines. Close it.
type Runner struct {
	Config *config.Config
	Rules  *rule.Set

	closing sync.WaitGroup // servers take a moment to end, and the next test needn't wait for that
}

// Close waits until all that tests have started has ended.
func (r *Runner) Close() { r.closing.Wait() }

// Run runs one test of a file, in a world of its own.
func (r *Runner) Run(ctx context.Context, f *File, t *Test) *Result {
	begun := time.Now()
	res := &Result{File: f.Name, Line: t.line, Name: t.Name}
	w, err := newWorld(r.Config, r.Rules, t.now)
	if err == nil {
		defer r.closing.Go(w.close)
		err = (&play{ctx: ctx, w: w, t: t, rules: r.Rules, res: res}).run()
	}
	res.Err, res.Took = err, time.Since(begun)
	return res
}

// play is one run of one test.
type play struct {
	ctx   context.Context
	w     *world
	t     *Test
	rules *rule.Set
	res   *Result
	reads []read // of each writer
}

// read is what a writer has read before it writes.
type read struct {
	etag   string
	served []byte // the document; nil where there was none, or it hasn't read
}

func (p *play) run() error {
	t := p.t
	place := t.writes[0].request
	if err := p.prepare(place); err != nil {
		return err
	}
	p.reads = make([]read, len(t.writes))
	for i, w := range t.writes {
		if !t.Base.IsSet {
			break
		}
		var err error
		if p.reads[i], err = p.read(w, "writer-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	if err := p.meanwhile(place); err != nil {
		return err
	}
	before, err := p.stored(place)
	if err != nil {
		return err
	}
	for i := range t.writes {
		if err := p.write(i); err != nil {
			return err
		}
	}
	if len(t.Writers) > 0 {
		return p.whole(place, before)
	}
	return nil
}

// prepare makes the index and the base: that a document isn't there is told otherwise where the index isn't, either. A name that is none
// of an index (a date expression) is left to the first write.
func (p *play) prepare(at request) error {
	_, err := p.w.ask(p.ctx, p.w.direct, &message{method: http.MethodPut, target: at.path[:strings.LastIndex(at.path, "/_doc/")]})
	if err == nil && p.t.Base.IsSet && !p.t.Base.Null() {
		if err = p.put(at, p.t.Base.Text); err != nil {
			err = fmt.Errorf("base: %w", err)
		}
	}
	return err
}

// meanwhile is what others do between the reads and the writes.
func (p *play) meanwhile(place request) error {
	t := p.t
	switch {
	case t.Current.Null():
		a, err := p.w.ask(p.ctx, p.w.direct, &message{method: http.MethodDelete, target: place.path + place.routing})
		if err == nil && a.Status >= 400 && a.Status != http.StatusNotFound {
			err = fmt.Errorf("%w: %s", errEngine, a.reason())
		}
		if err != nil {
			return fmt.Errorf("current: %w", err)
		}
	case t.Current.IsSet:
		if err := p.put(place, t.Current.Text); err != nil {
			return fmt.Errorf("current: %w", err)
		}
	}
	for i := range t.Others {
		o := &t.Others[i]
		name := "other-" + strconv.Itoa(i)
		seen, err := p.read(o, name)
		if err != nil {
			return err
		}
		if err := p.carryOut(o, name, &seen, naming(o, "others", i)); err != nil {
			return err
		}
	}
	return nil
}

// naming is how a write among several is called.
func naming(w *Write, list string, i int) string {
	if w.Name != "" {
		return list + " " + w.Name
	}
	return list + "[" + strconv.Itoa(i) + "]"
}

func (p *play) write(i int) error {
	w, name := p.t.writes[i], ""
	if len(p.t.Writers) > 0 {
		name = naming(w, "writers", i)
	}
	return p.carryOut(w, "writer-"+strconv.Itoa(i), &p.reads[i], name)
}

// put stores a document straight in the engine.
func (p *play) put(at request, body []byte) error {
	m := &message{method: http.MethodPut, target: at.path + at.routing, header: jsonHeader(), body: body}
	a, err := p.w.ask(p.ctx, p.w.direct, m)
	if err == nil && a.Status >= 300 {
		err = fmt.Errorf("%w: %s", errEngine, a.reason())
	}
	return err
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// revision is what the engine holds.
type revision struct {
	source  []byte // nil: no document
	numbers string
}

func (p *play) stored(at request) (revision, error) {
	if strings.HasSuffix(at.path, "/") {
		return revision{}, nil // the document has no id yet
	}
	a, err := p.w.ask(p.ctx, p.w.direct, &message{method: http.MethodGet, target: at.path + at.routing})
	if err != nil {
		return revision{}, err
	}
	rev := revision{numbers: gjson.GetBytes(a.Body, "[_seq_no,_primary_term]").Raw}
	if source := gjson.GetBytes(a.Body, "_source"); source.Exists() {
		rev.source = p.withoutMarks([]byte(source.Raw))
	}
	return rev, nil
}

// withoutMarks is a document without the marks of write_id: they are different each time, and no test expects them.
func (p *play) withoutMarks(source []byte) []byte {
	for _, ru := range p.rules.All() {
		if ru.WriteID != "" {
			source, _ = mark.Take(source, ru.WriteID)
		}
	}
	return source
}

// read lets a client read the document through optimist.
func (p *play) read(w *Write, session string) (read, error) {
	h := p.headers(w)
	h.Del("Content-Type")
	p.name(h, w, session)
	a, err := p.w.ask(p.ctx, p.w.proxied, &message{method: http.MethodGet, target: w.request.path + w.request.routing, header: h})
	if err != nil {
		return read{}, err
	}
	r := read{etag: a.Header.Get("ETag")}
	if source := gjson.GetBytes(a.Body, "_source"); source.Exists() {
		r.served = []byte(source.Raw)
	}
	return r, nil
}

// carryOut lets a client write, and compares what comes of it with what it expects.
func (p *play) carryOut(w *Write, session string, seen *read, name string) error {
	m := p.message(w, session, seen)
	before, err := p.stored(w.request)
	if err != nil {
		return err
	}
	account, err := p.rehearse(m)
	if err != nil {
		return err
	}
	a, err := p.w.ask(p.ctx, p.w.proxied, m)
	if err != nil {
		return err
	}
	at := w.request
	if at.op == api.IndexAuto {
		at.path += url.PathEscape(gjson.GetBytes(a.Body, "_id").String())
	}
	after, err := p.stored(at)
	if err != nil {
		return err
	}
	p.res.Writes = append(p.res.Writes, Written{Name: name, Request: w.request.method + " " + w.request.target, Status: a.Status,
		Outcome: a.outcome(), Account: account, stored: after.source})
	found := compare(&w.Expect, &happened{answer: a, account: account, before: before, after: after})
	for _, f := range found {
		if name != "" {
			f = name + ": " + f
		}
		p.res.Failures = append(p.res.Failures, f)
	}
	return nil
}

// rehearse asks for the account of a write before it is made.
func (p *play) rehearse(m *message) (*explain.Account, error) {
	dry := *m
	dry.header = m.header.Clone()
	dry.header.Set(intercept.DryRunField, "true")
	a, err := p.w.ask(p.ctx, p.w.proxied, &dry)
	if err != nil {
		return nil, err
	}
	return readAccount(a)
}

func readAccount(a *answer) (*explain.Account, error) {
	account := new(explain.Account)
	if a.Status != http.StatusOK || a.Header.Get(intercept.DryRunField) != "true" {
		return nil, fmt.Errorf("the dry run was answered with %d %s", a.Status, a.reason())
	}
	if err := json.Unmarshal(a.Body, account); err != nil {
		return nil, fmt.Errorf("the dry run's answer can't be read: %w", err)
	}
	return account, nil
}

// whole compares what several writers have left with what the test expects.
func (p *play) whole(at request, before revision) error {
	after, err := p.stored(at)
	if err != nil {
		return err
	}
	e := p.t.Expect
	p.res.Failures = append(p.res.Failures, compare(&e, &happened{answer: &answer{}, before: before, after: after})...)
	return nil
}
