package watch

import (
	"errors"
	"time"

	"optimist/internal/budget"
	"optimist/internal/catalog"
	"optimist/internal/client"
	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/tenantheader"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// Options are what a Watcher needs. All but Now are required.
type Options struct {
	Rules    *rule.Switch
	Upstream es.Doer
	Catalog  *catalog.Catalog
	Sessions *session.Store
	Metrics  *obs.Metrics
	// MaxBody is up to how many bytes a document is stamped, and a request for several is looked at.
	MaxBody int64
	// TenantHeaders looks for fields that choose a tenant, and that nobody has named.
	TenantHeaders *tenantheader.Finder
	// Now is the clock by which a client waits. Default time.Now.
	Now func() time.Time
}

// Watcher looks at reads. It is safe for concurrent use; each connection has a Reading.
type Watcher struct {
	Options
	scrolls *scrolls
}

// Reading is the read that a connection has under way. It is for one goroutine; its zero value is ready to be used, again and
// again.
type Reading struct {
	read

	// What one read leaves to the next.
	copy  Capture
	hooks hooks
	etag  [48]byte
	added [1]wire.Field
	room  [8]wire.Field
}

// read is what belongs to one read alone.
type read struct {
	w         *Watcher
	r         *client.Request
	client    *client.Client
	rules     *rule.Set
	epoch     session.Epoch // from before the read
	ticket    uint64        // of the read among all; 0: it has none
	began     time.Time
	questions questions
	unread    bool // it is a search that may find whole documents, and that nobody watches
	many      bool // it is a search that shows many documents, at once or page by page

	choice   choice
	document Document // of a read of one
	stamps   stamps
}

// hooks are methods that the door calls, each made once for a connection.
type hooks struct {
	head, headTagged, headOpen, shown func(h *wire.Head, first []byte) []wire.Field

	copy        func(b []byte)
	last, whole func()
}

// choice is which rule has a read remembered.
type choice struct {
	target rule.Target
	rule   *rule.Rule
	// open says that the request's name may be an alias that another rule takes by its index, which the answer names.
	open bool
}

// added are members that the engine is asked to put into hits, and that are taken out again: the client didn't ask for them.
type added struct{ numbers, version bool }

// New makes a Watcher.
func New(o Options) *Watcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Watcher{o, newScrolls()}
}

// begin is for right before the read is sent. exact says that its answer has the bytes that are stored now. A search sees what
// was refreshed last, and so does a read that needn't be real-time. One that prefers a copy of the shard may get a stale one. A
// pretty or filtered answer has a document's numbers and texts in another form. Such reads prove nothing of the index, and have no ticket.
// What they show may be older than what the client's session has in hand: see session.Store.Found.
func (rd *Reading) begin(exact bool) {
	rd.client = rd.r.Client()
	rd.epoch, rd.ticket, rd.began = rd.w.Sessions.Epoch(), 0, rd.w.Now()
	for _, name := range [...]string{"pretty", "filter_path", "realtime", "preference"} {
		v, given := uri.Param(rd.r.Op().Query, name)
		exact = exact && (!given || name == "realtime" && (len(v) == 0 || string(v) == "true"))
	}
	if exact {
		rd.ticket = rd.w.Sessions.Ticket()
	}
	rd.copy.reset(budget.Of(rd.r.Context()), copyLimit)
}

// of makes rd the read of a request.
func (rd *Reading) of(w *Watcher, r *client.Request) {
	rd.read = read{} // a zero literal clears it in place
	rd.w, rd.r, rd.rules = w, r, w.Rules.Rules()
}

// end gives up what an idle connection shouldn't hold.
func (rd *Reading) end() {
	rd.read = read{}
	rd.copy.release()
}

// patience is how long a client waits for an answer at least, before it gives up. Whether it did isn't asked before.
const patience = 10 * time.Millisecond

// clientLeft reports whether the client has given the read up: what it never sees is no base.
func (rd *Reading) clientLeft() bool {
	return rd.w.Now().Sub(rd.began) >= patience && wire.PeerLeft(rd.r.Context())
}

// ask sends the read upstream in another form and collects the answer.
func (rd *Reading) ask(method string, path, query, body []byte) (*upstream.Response, error) {
	target := append([]byte(nil), path...)
	if len(query) > 0 {
		target = append(append(target, '?'), query...)
	}
	r := &upstream.Request{Method: method, Target: target, Body: body, Repeatable: true, Client: rd.r.Place()}
	r.Fields = wire.Without(rd.r.Fields(), "accept-encoding", "content-length", "expect")
	return rd.w.Upstream.Do(rd.r.Context(), r)
}

// askForAll is ask for a read of several documents, with another query.
func (rd *Reading) askForAll(query []byte) (*upstream.Response, error) {
	body, err := rd.r.Body(rd.w.MaxBody)
	if err != nil {
		return nil, err
	}
	return rd.ask(wire.MethodString(rd.r.Head().Method), rd.r.Op().Path, query, body)
}

// answer gives the client the engine's answer with another body, and says what has no stamp.
func (rd *Reading) answer(res *upstream.Response, body []byte, more ...wire.Field) {
	fields := append(wire.Without(res.EndToEnd(nil), "content-length"), more...)
	_ = rd.r.Answer(res.Status, rd.stamps.report(rd.w.Metrics, fields), body)
}

// failed deals with an answer that couldn't be collected. One that is too large is forwarded as it comes, without stamps.
func (rd *Reading) failed(err error) {
	if !errors.Is(err, upstream.TooLarge) {
		rd.r.Fail(err)
		return
	}
	rd.stamps.skip(outcome.ReasonTooLarge)
	fields := rd.stamps.report(rd.w.Metrics, nil)
	rd.r.Pass(proxy.ForwardOptions{OnHead: func(h *wire.Head, _ []byte) []wire.Field {
		rd.shown(h, nil)
		return fields
	}})
}
