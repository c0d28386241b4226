package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/configtest"
	"optimist/internal/doc"
	"optimist/internal/embedded"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/outbound"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/rewrite/tree"
)

// engine is the embedded engine as an upstream, with places for what goes wrong on the way.
type engine struct {
	*embedded.Engine
	mu   sync.Mutex
	sent []string // the writes that reached it, as "METHOD target"

	// before is called with each request, after with its answer; an error of after is an answer that was lost.
	before func(r *upstream.Request) (*upstream.Response, error)
	after  func(r *upstream.Request, res *upstream.Response) error
}

func (e *engine) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	if e.before != nil {
		if res, err := e.before(r); res != nil || err != nil {
			return res, err
		}
	}
	if isWrite(r) {
		e.mu.Lock()
		e.sent = append(e.sent, r.Method+" "+string(r.Target))
		e.mu.Unlock()
	}
	res := e.handle(r)
	if e.after != nil {
		if err := e.after(r, res); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// isWrite reports whether a request is a write, and no question.
func isWrite(r *upstream.Request) bool {
	return r.Method != "GET" && !strings.Contains(string(r.Target), "optimist-probe")
}

func (e *engine) handle(r *upstream.Request) *upstream.Response {
	answer := e.Handle(&embedded.Request{Method: r.Method, Target: string(r.Target), ContentType: "application/json", Body: append([]byte(nil), r.Body...)})
	res := &upstream.Response{Payload: answer.Body}
	res.Status = answer.Status
	res.Fields = []wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}
	return res
}

func (e *engine) writes() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sent)
}

// lostError is an answer that didn't come.
var lostError = &upstream.Error{Node: "http://stub", Class: upstream.Lost, Sent: true, Err: errors.New("connection reset")}

// world is a service over an embedded engine.
type world struct {
	t      *testing.T
	engine *engine
	s      *Service
	store  *session.Store
	rules  *rule.Set
	read5  string        // a document as it was once
	later  time.Duration // by how much the service's clock is ahead
	parks  bool          // nobody waits for the answer to a first try: see outbound.Parker
	parked func()        // is called while one is parked
}

// parker sends the request that it keeps when it is asked for the answer.
type parker struct {
	ctx     context.Context
	engine  *engine
	request upstream.Request
	waits   atomic.Int64
}

func (p *parker) Waits() { p.waits.Add(1) }

func (p *parker) Park(w *outbound.Template, body []byte, n doc.Numbers, create bool) bool {
	r := w.Guarded(body, n, create)
	p.request = upstream.Request{Method: r.Method, Target: bytes.Clone(r.Target), Body: bytes.Clone(r.Body)}
	return true
}

func (p *parker) Received() (*upstream.Response, *es.Item, error) {
	res, err := p.engine.Do(context.WithoutCancel(p.ctx), &p.request)
	return res, nil, err
}

// newWorld starts one whose rules come from YAML; none is the default rule.
func newWorld(t *testing.T, rules string) *world {
	t.Helper()
	_, set := configtest.Compile(t, "version: 1\nupstream: {urls: [http://127.0.0.1:1]}\n"+rules)
	w := &world{t: t, engine: &engine{Engine: embedded.New(embedded.Options{})}, rules: set}
	// The store is older than its sessions' age: a write of which nothing is known isn't one whose base a restart has lost.
	now := time.Now()
	w.store = session.New(session.Options{Now: func() time.Time { return now }})
	now = now.Add(time.Hour)
	w.start(Options{})
	return w
}

// start makes the world's service, with what o has of options.
func (w *world) start(o Options) {
	o.Upstream, o.Engine, o.Sessions = w.engine, &es.Client{Upstream: w.engine}, w.store
	o.Now = func() time.Time { return time.Now().Add(w.later) }
	w.s = New(o)
}

// direct sends a request straight to the engine.
func (w *world) direct(method, target, body string) (int, string) {
	w.t.Helper()
	res := w.engine.handle(&upstream.Request{Method: method, Target: []byte(target), Body: []byte(body)})
	return res.Status, string(res.Payload)
}

// holdFirst has the engine hold the first write from now on: held is closed when it is there, and it goes on when hold is closed.
func (w *world) holdFirst() (hold, held chan struct{}) {
	hold, held = make(chan struct{}), make(chan struct{})
	var first sync.Once
	next := w.engine.before
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if isWrite(r) {
			first.Do(func() { close(held); <-hold })
		}
		if next != nil {
			return next(r)
		}
		return nil, nil
	}
	return hold, held
}

// loseFirst has the answer to the first PUT get lost from now on. meanwhile is called for it before that: the engine has seen the PUT only if
// meanwhile hands it over.
func (w *world) loseFirst(meanwhile func(r *upstream.Request)) {
	lost := false
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "PUT" || lost {
			return nil, nil
		}
		lost = true
		meanwhile(r)
		return nil, lostError
	}
}

// put stores a document straight in the engine.
func (w *world) put(id, body string) {
	w.t.Helper()
	if status, answer := w.direct("PUT", "/shop/_doc/"+id, body); status != 200 && status != 201 {
		w.t.Fatalf("PUT: %d %s", status, answer)
	}
}

// stored is the document in the engine.
func (w *world) stored(id string) string {
	w.t.Helper()
	_, body := w.direct("GET", "/shop/_doc/"+id, "")
	return gjson.Get(body, "_source").Raw
}

// waiting ends the test unless so many changes wait for their turn when all that was begun waits. In a bubble their patience doesn't end
// meanwhile, however slow the machine is.
func (w *world) waiting(n int) {
	w.t.Helper()
	synctest.Wait()
	if _, waiting := w.s.lanes.Busy(); waiting != n {
		w.t.Fatalf("%d changes wait for their turn, and not %d", waiting, n)
	}
}

// client is somebody with a session.
type client struct {
	w         *world
	sess      session.Session
	route     session.Credentials
	anonymous bool
}

func (w *world) client(name string) *client {
	return &client{w: w, sess: identity.Named(session.Credentials{}, []byte(name))}
}

// stranger is a client whose session is inferred.
func (w *world) stranger() *client {
	return &client{w: w, sess: identity.Inferred(session.Credentials{}, netip.MustParseAddr("127.0.0.1"))}
}

// nobody is a client that there is no telling from others.
func (w *world) nobody() *client {
	return &client{w: w, sess: identity.Inferred(session.Credentials{}, netip.Addr{}), anonymous: true}
}

// read gets a document as the door would watch it.
func (c *client) read(id string) string {
	c.w.t.Helper()
	epoch := c.w.store.Epoch()
	status, body := c.w.direct("GET", "/shop/_doc/"+id, "")
	ref := docRef(id)
	if c.anonymous {
		return gjson.Get(body, "_source").Raw
	}
	if status == 404 {
		c.w.store.ReadAbsent(c.sess, ref, epoch)
		return ""
	}
	rev, ok := revisionIn(body)
	if !ok {
		c.w.t.Fatalf("no revision in %s", body)
	}
	c.w.store.Read(c.sess, ref, rev, epoch)
	return string(rev.Source)
}

type result struct {
	status  int
	body    string
	etag    string
	outcome string
	err     error
}

func (r result) String() string {
	return fmt.Sprintf("%d %s [%s] %v", r.status, r.body, r.outcome, r.err)
}

// send performs a write through the service.
func (c *client) send(method, target, body string, fields ...wire.Field) result {
	return c.sendContext(c.w.t.Context(), method, target, body, fields...)
}

func (c *client) sendContext(ctx context.Context, method, target, body string, fields ...wire.Field) result {
	c.w.t.Helper()
	return c.do(ctx, method, target, []byte(body), fields...)
}

// sendBody saves the document "1" from a buffer of the caller's.
func (c *client) sendBody(body []byte) result {
	return c.do(c.w.t.Context(), "PUT", "/shop/_doc/1", body)
}

func (c *client) do(ctx context.Context, method, target string, body []byte, fields ...wire.Field) result {
	c.w.t.Helper()
	return c.doRequest(ctx, &Request{Request: base.Request{Fields: fields}}, method, target, body)
}

// doRequest performs a write with what r has already.
func (c *client) doRequest(ctx context.Context, r *Request, method, target string, body []byte) result {
	c.w.t.Helper()
	var op api.Op
	api.Parse([]byte(method), []byte(target), &op)
	r.Op, r.Method, r.Body, r.Session, r.Route, r.Anonymous = &op, []byte(method), body, c.sess, c.route, c.anonymous
	if r.Rule = c.w.rules.Match(string(op.Index), op.Kind); r.Rule == nil {
		c.w.t.Fatalf("no rule takes %s %s", method, target)
	}
	r.Fields = append(r.Fields, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")})
	if c.w.parks {
		r.Parker = &parker{ctx: ctx, engine: c.w.engine}
	}
	a, err := c.w.s.Do(ctx, r)
	if errors.Is(err, base.ErrParked) {
		if c.w.parked != nil {
			c.w.parked()
		}
		a, err = c.w.s.Resume(r)
	}
	if err != nil {
		out := result{err: err}
		var f *outcome.Failure
		if errors.As(err, &f) {
			out.outcome = string(f.Outcome.Append(nil))
		}
		return out
	}
	defer a.Release()
	out := result{status: a.Status, body: string(a.Body)}
	for _, f := range a.Fields {
		switch string(f.Name) {
		case "Optimist-Outcome":
			out.outcome = string(f.Value)
		case "ETag":
			out.etag = string(f.Value)
		}
	}
	return out
}

func (c *client) save(id, body string) result { return c.send("PUT", "/shop/_doc/"+id, body) }

// same fails unless two JSON documents say the same.
func same(t *testing.T, got, want string) {
	t.Helper()
	equal, err := tree.Same([]byte(want), []byte(got), tree.Limits{})
	if err != nil || !equal {
		t.Errorf("document %s, want %s (%v)", got, want, err)
	}
}

func has(t *testing.T, r result, status int, outcome string) {
	t.Helper()
	if r.err != nil || r.status != status || !strings.HasPrefix(r.outcome, outcome) {
		t.Errorf("got %v, want %d and the outcome %s…", r, status, outcome)
	}
}

// get is what the engine answers to a read of the document.
func (w *world) get(id string) string {
	w.t.Helper()
	_, body := w.direct("GET", "/shop/_doc/"+id, "")
	return body
}

// ruled is a change of which only its rule is known.
func ruled(ru *rule.Rule) *change {
	r := &Request{Request: base.Request{Rule: ru}}
	return &change{req: r, Search: base.Search{Question: base.Question{Request: &r.Request}}}
}

// revisionIn is the revision in the engine's answer to a GET.
func revisionIn(body string) (rev doc.Revision, ok bool) {
	it := es.ParseItem([]byte(body))
	return it.Revision, it.Numbered
}
