package guard

import (
	"bytes"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/glob"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/proxy"
)

const (
	// watchLimit is the size of an answer, in bytes, up to which it is looked at; of larger documents only the numbers are known.
	watchLimit = 16 << 20
	// headPeek is how many bytes of a document's answer are waited for before its head goes on: the numbers stand before _source.
	headPeek = 2 << 10
)

// partialParams are the query parameters that make a read give less than the document, or another form of it, or, as source, hold a body
// that may.
var partialParams = [...]string{"_source", "_source_includes", "_source_excludes", "_source_include", "_source_exclude", "stored_fields",
	"filter_path", "format", "source", madeUp, withoutVectors}

// partOnly are those by which a client says which part it wants.
var partOnly = partialParams[:6]

const (
	madeUp         = "force_synthetic_source"  // made of the fields: lists are sorted, keys may stand elsewhere
	withoutVectors = "_source_exclude_vectors" // of Elasticsearch 9.2 and later
)

func partial(query []byte) bool {
	if len(query) == 0 {
		return false
	}
	for _, name := range partialParams {
		v, ok := api.Param(query, name)
		switch {
		case !ok, name == "_source" && string(v) == "true", name == "format" && string(v) == "json":
		case (name == madeUp || name == withoutVectors) && string(v) == "false":
		default:
			return true
		}
	}
	return false
}

// otherForm reports whether a read is partial by its form alone: its client may have all of the document, but nothing here can tell.
func otherForm(query []byte) bool {
	for _, name := range partOnly {
		if v, ok := api.Param(query, name); ok && !(name == "_source" && string(v) == "true") {
			return false
		}
	}
	v, ok := api.Param(query, "filter_path")
	if v, err := api.DecodeValue(nil, v); ok && err == nil {
		for part := range bytes.SplitSeq(v, []byte(",")) {
			if len(part) > 0 && part[0] == '-' || glob.Match(string(part), "_source") || bytes.HasPrefix(part, []byte("_source.*")) {
				return true
			}
		}
		return false
	}
	return true
}

// get watches a document read: the answer passes as it comes, with an ETag, and the session remembers what it saw.
func (g *Guard) get(x *proxy.Exchange) bool {
	if rules := g.rules.Rules(); rules.Stamps() && g.stampGet(x, rules) {
		return true
	}
	op, l, w := x.Op(), of(x), g.watcher(x)
	ru, mode := w.rule, g.rules.Effective(w.rule)
	if op.Head || op.Kind == api.Source {
		w.open = false // no answer to these names the index
	}
	part := partial(op.Query)
	if part && (op.Head || mode == rule.Off || !otherForm(op.Query)) || !w.open && (mode == rule.Off || !(ru.Session || ru.IfMatch)) {
		return false
	}
	c := g.who(x)
	ref, ok := l.ref(op)
	if !ok || c.signed || c.bound {
		return false
	}
	switch {
	case op.Head || part:
		return c.known && ru.Session && g.exists(x, c, ref)
	case op.Kind == api.Source:
		return mode == rule.Guard && g.source(x, c) || c.known && ru.Session && g.exists(x, c, ref)
	}
	r := &l.read
	r.begin(g, x, c, ref)
	defer r.end()
	if c.known && (w.open || ru.Session) {
		r.tee.whole = r.onWhole
	}
	o := proxy.ForwardOptions{OnHead: r.onHead, Copy: r.onBody, Last: r.onLast}
	switch {
	case w.open:
		r.watch = w
		o.Peek, o.OnHead = headPeek, r.onHeadOpen
	case mode == rule.Guard && ru.IfMatch:
		o.Peek, o.OnHead = headPeek, r.onHeadTagged
	}
	g.forward(x, o)
	return true
}

// headOpen looks which rule watches the read after all.
func (r *reading) headOpen(h *wire.Head, first []byte) []wire.Field {
	r.tee.head(h, first)
	if !r.tee.usable {
		return nil
	}
	ru := r.watch.of(es.ParseItem(r.tee.plain(first)).Index)
	mode := r.g.rules.Effective(ru)
	if mode == rule.Off || !ru.Session {
		r.tee.whole = nil
	}
	if mode == rule.Guard && ru.IfMatch {
		return r.tee.withETag(h, first)
	}
	r.tee.usable = r.tee.whole != nil
	return nil
}

// exists watches a read of which the status is all that is of use: that there is no document is a base, too. Of one that shows a document
// whose numbers aren't known the session knows that it has seen it.
func (g *Guard) exists(x *proxy.Exchange, c client, ref doc.Ref) bool {
	epoch, op := g.sessions.Epoch(), x.Op()
	if ix, ok := g.catalog.Known(c.session.Credentials(), ref.Index); ok {
		ref.Index = ix.Name
	}
	g.forward(x, proxy.ForwardOptions{OnHead: func(h *wire.Head, _ []byte) []wire.Field {
		switch {
		case h.Status == 404 && !partial(op.Query) && !wire.PeerLeft(x.Context()):
			g.sessions.ReadAbsent(c.session, ref, epoch)
		case h.Status == 200 && !op.Head:
			g.sessions.ReadUnknown(c.session, ref)
		}
		return nil
	}})
	return true
}

// patience is how long a client waits for an answer at least, before it gives up. Whether it did isn't asked before.
const patience = 10 * time.Millisecond

// saw remembers a read's answer in its session, if there is somebody who still wants it: what its client never sees is no base.
func (r *reading) saw() {
	if time.Since(r.began) >= patience && wire.PeerLeft(r.x.Context()) {
		return
	}
	body, ok := r.tee.body()
	if !ok {
		if n := r.tee.large; n.Known() {
			r.g.sessions.ReadAsked(r.client.session, r.ref, doc.Revision{Numbers: n}, r.epoch, r.asked) // what was read before is not its base
		}
		return
	}
	it := es.ParseItem(body)
	if it.Index != nil && string(it.Index) != r.ref.Index {
		r.ref.Index = string(it.Index)
	}
	switch {
	case r.tee.status == 404 && (it.Missing || noIndex(body)):
		r.g.sessions.ReadAsked(r.client.session, r.ref, doc.Revision{}, r.epoch, r.asked)
	case r.tee.status == 200 && it.Found && it.Numbered && it.Source != nil:
		r.g.sessions.ReadAsked(r.client.session, r.ref, it.Revision, r.epoch, r.asked)
	}
}

// noIndex reports whether an answer says that the index isn't there, which the first write may make: nor is the document.
func noIndex(body []byte) bool {
	return gjson.GetBytes(body, "error.type").Str == "index_not_found_exception"
}

// question is what a read of many documents asks for. Nothing of it is expanded, and nothing made of it, before the engine has answered it:
// until then anybody may have sent it.
type question struct {
	raw  []byte
	gzip bool
}

// glance is up to how many bytes of a compressed question are expanded before its answer, to see whether it asks for parts.
const glance = 64 << 10

// questionOf is the question of a request. ok is false where it can't be told what is asked for, because it isn't JSON, or is too large: nor
// can it then what the answer is.
func (g *Guard) questionOf(x *proxy.Exchange) (q question, ok bool) {
	var err error
	if q.raw, err = x.Body(g.maxBody); err != nil {
		return q, false
	}
	switch value := x.Head().Get("content-encoding"); {
	case value == nil:
		return q, blank(q.raw) || doc.ValidJSON(q.raw)
	case !coding.IsGzip(value):
		return q, false
	}
	q.gzip = true
	_, err = coding.Gunzip(q.raw, 0)
	return q, !errors.Is(err, coding.ErrMalformed)
}

func blank(body []byte) bool { return len(bytes.TrimSpace(body)) == 0 }

// early is the question as far as it may be looked at before the answer. known is false where that isn't possible.
func (q *question) early() (body []byte, known bool) {
	if !q.gzip {
		return q.raw, true
	}
	body, err := coding.Gunzip(q.raw, glance)
	return body, err == nil
}

// text is the question, for when it is answered. There may be none.
func (q *question) text(limit int64) (body []byte, ok bool) {
	if !q.gzip {
		return q.raw, true
	}
	body, err := coding.Gunzip(q.raw, limit)
	return body, err == nil && (blank(body) || doc.ValidJSON(body))
}

// mget watches a multi-get. What asks for parts of documents is left alone.
func (g *Guard) mget(x *proxy.Exchange) bool {
	op, rules := x.Op(), g.rules.Rules()
	if rules.Stamps() && g.stampMget(x, rules) {
		return true
	}
	if !rules.Takes(api.Mget) || partial(op.Query) {
		return false
	}
	c := g.who(x)
	if !c.known || c.signed || c.bound {
		return false
	}
	q, ok := g.questionOf(x)
	if !ok {
		return false // Forward sends what was read
	}
	epoch := g.sessions.Epoch()
	tee := newCapture(watchLimit)
	tee.whole = func() {
		if answer, ok := tee.body(); ok && tee.status == 200 && !wire.PeerLeft(x.Context()) {
			g.sawDocuments(x, c, &q, answer, epoch)
		}
	}
	g.forward(x, proxy.ForwardOptions{OnHead: tee.head, Copy: tee.copy, Last: tee.end})
	return true
}

// sawDocuments remembers the documents of a multi-get.
func (g *Guard) sawDocuments(x *proxy.Exchange, c client, q *question, answer []byte, epoch session.Epoch) {
	body, ok := q.text(g.maxBody)
	if !ok || bytes.Contains(body, []byte(`_source`)) || bytes.Contains(body, []byte(`stored_fields`)) {
		return // an escaped key is one that the engine reads and we don't: see mgetDocs
	}
	docs, ok := documentsOf(answer)
	if !ok {
		return
	}
	asked, ok := mgetDocs(x.Op(), body, len(docs))
	if !ok || len(asked) != len(docs) {
		return
	}
	for i, d := range docs {
		g.sawItem(c, asked[i], x.Head().Fields, d, epoch)
	}
}

// maxDocuments is how many documents of one multi-get are remembered or stamped at most: of an answer with more, none is.
const maxDocuments = 10_000

// documentsOf are the documents in the answer to a multi-get. ok is false where there are too many.
func documentsOf(answer []byte) (docs []gjson.Result, ok bool) {
	gjson.GetBytes(answer, "docs").ForEach(func(_, d gjson.Result) bool {
		docs = append(docs, d)
		return len(docs) <= maxDocuments
	})
	return docs, len(docs) <= maxDocuments
}

// usualRouting is that of a multi-get's documents which don't name their own. ok is false where it can't be read.
func usualRouting(op *api.Op) (routing string, ok bool) {
	v, given := api.Param(op.Query, "routing")
	if !given {
		return "", true
	}
	b, err := api.DecodeValue(nil, v)
	return string(b), err == nil
}

// mgetDocs reads which documents are asked for, in their order, up to one more than there should be: the answer doesn't repeat their
// routing.
func mgetDocs(op *api.Op, body []byte, most int) ([]doc.Ref, bool) {
	if bytes.IndexByte(body, '\\') >= 0 {
		return nil, false // a key that is escaped may be one that we look for
	}
	var refs []doc.Ref
	index := decoded(op.Index)
	routing, ok := usualRouting(op)
	if !ok {
		return nil, false
	}
	eachWanted(body, func(d gjson.Result) bool {
		r := doc.Ref{Index: index, ID: d.String(), Routing: routing}
		if d.IsObject() {
			r.ID = d.Get("_id").String()
			if v := d.Get("_index"); v.Exists() {
				r.Index = v.String()
			}
			for _, key := range [2]string{"routing", "_routing"} {
				if v := d.Get(key); v.Exists() {
					r.Routing = v.String()
				}
			}
		}
		refs = append(refs, r)
		return len(refs) <= most
	})
	return refs, true
}

// sawItem remembers one document of a multi-get, if a rule watches its index, by the name that was asked for or by its own.
func (g *Guard) sawItem(c client, ref doc.Ref, fields []wire.Field, item gjson.Result, epoch session.Epoch) {
	a := rule.Asked{Index: ref.Index, Kind: api.Mget, Fields: fields}
	if v := item.Get("_index"); v.Exists() {
		ref.Index = v.String()
		a.Concrete = ref.Index
	}
	ru := g.rules.Rules().MatchRequest(&a)
	if g.rules.Effective(ru) == rule.Off || !ru.Session {
		return
	}
	found := item.Get("found")
	switch {
	case item.Get("_id").String() != ref.ID: // whatever was asked for there
	case found.Exists() && !found.Bool():
		g.sessions.ReadAbsent(c.session, ref, epoch)
	case found.Bool():
		if rev, ok := es.Revision([]byte(item.Raw)); ok && rev.Source != nil {
			g.sessions.Read(c.session, ref, rev, epoch)
		}
	}
}

// capture is a copy of an answer on its way to the client.
type capture struct {
	// whole is called once when all of the answer is here, and the client doesn't have all of it yet: its next request may come, on
	// another connection, as soon as it does.
	whole  func()
	length int64
	status int
	gzip   bool
	usable bool
	full   bool
	large  doc.Numbers // of a document over the limit
	limit  int
	buf    []byte

	// Room for the field that is added.
	said [1]wire.Field
	etag [48]byte
}

var etagName = []byte("ETag")

func newCapture(limit int) *capture { return &capture{limit: limit} }

// head looks whether the answer can be read at all.
func (t *capture) head(h *wire.Head, _ []byte) []wire.Field {
	t.status, t.usable, t.length = h.Status, true, h.Length
	switch enc := h.Get("content-encoding"); {
	case enc == nil:
	case coding.IsGzip(enc):
		t.gzip = true
	default:
		t.usable = false
	}
	ct := h.Get("content-type")
	t.usable = t.usable && (bytes.Contains(ct, []byte("json")) || bytes.Contains(bytes.ToLower(ct), []byte("json")))
	return nil
}

// withETag adds the entity tag that stands for the revision, from the first bytes of the answer.
func (t *capture) withETag(h *wire.Head, first []byte) []wire.Field {
	t.head(h, first)
	if !t.usable || t.status != 200 || h.Get("etag") != nil {
		return nil
	}
	n, ok := numbers(t.plain(first))
	if !ok {
		return nil
	}
	t.said[0] = wire.Field{Name: etagName, Value: etag.Tag{Numbers: n}.Append(t.etag[:0])}
	return t.said[:]
}

// plain is the beginning of an answer without its content coding.
func (t *capture) plain(first []byte) []byte {
	if t.gzip {
		first, _ = coding.Gunzip(first, headPeek) // of an answer that is only here in part
	}
	return first
}

// numbers finds a revision's numbers in the beginning of the engine's answer to a get: they stand before _source.
func numbers(first []byte) (n doc.Numbers, ok bool) {
	it := es.ParseItem(first)
	return it.Numbers, it.Numbered
}

func (t *capture) copy(b []byte) {
	if !t.usable || t.full {
		return
	}
	if len(t.buf)+len(b) > t.limit || t.length > int64(t.limit) {
		t.full = true
		if len(t.buf) == 0 {
			t.buf = b
		}
		t.large, _ = numbers(t.plain(t.buf[:min(len(t.buf), headPeek)]))
		t.buf = nil
		return
	}
	t.buf = wire.Gather(t.buf, b, t.length)
}

// end says that the answer is complete.
func (t *capture) end() {
	if t.whole != nil {
		whole := t.whole
		t.whole = nil
		whole()
	}
}

// body is the answer's body without its content coding.
func (t *capture) body() ([]byte, bool) {
	switch {
	case !t.usable || t.full:
		return nil, false
	case !t.gzip:
		return t.buf, len(t.buf) > 0
	}
	b, err := coding.Gunzip(t.buf, int64(t.limit))
	return b, err == nil && doc.ValidJSON(b)
}

// written reads the answer to a write.
func (t *capture) written() (rev doc.Revision, created, ok bool) {
	if t.status != 200 && t.status != 201 {
		return rev, false, false
	}
	b, ok := t.body()
	if !ok {
		return rev, false, false
	}
	rev, ok = es.Revision(b)
	return rev, gjson.GetBytes(b, "result").Str == "created", ok
}
