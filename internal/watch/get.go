package watch

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"

	"optimist/internal/api"
	"optimist/internal/client"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// get looks at the read of one document: the answer passes as it comes, with an ETag, and the session remembers what it saw.
func (rd *Reading) get() bool {
	op := rd.r.Op()
	part := Partial(op.Query)
	if !part && rd.stampedGet() {
		return true
	}
	rd.choose()
	if op.Head || op.Kind == api.Source {
		rd.choice.open = false // no answer to these names the index
	}
	mode := rd.w.Rules.Effective(rd.choice.rule)
	if !rd.watchesOne(mode, part) {
		return false
	}
	ref, ok := rd.r.Ref()
	if c := rd.r.Client(); !ok || c.Signed || c.Bound {
		return false
	}
	tried := rd.document.stamper != nil
	rd.document = Document{Ref: ref, name: ref.Index}
	switch {
	case op.Head:
		return rd.watchStatus()
	case part:
		return rd.getPart(mode)
	case op.Kind == api.Source && mode == rule.Guard:
		return !tried && rd.getWhole() || rd.watchStatus()
	case op.Kind == api.Source:
		return rd.watchSource() || rd.watchStatus()
	}
	rd.forwardWatched(mode)
	return true
}

// watchesOne reports whether there is anything to be seen in a read of one document. Of a part of one there is nothing, but where
// its client may be shown all of it in a form that isn't known, or names its session.
func (rd *Reading) watchesOne(mode rule.Mode, part bool) bool {
	op, c := rd.r.Op(), &rd.choice
	if part && (op.Head || mode == rule.Off && !c.open || hidesDocument(op) || !hidesRevision(op.Query) && !rd.named()) {
		return false
	}
	return c.open || mode != rule.Off && (c.rule.Session || c.rule.IfMatch)
}

// forwardWatched forwards the read of one document, and looks at its answer as it passes.
func (rd *Reading) forwardWatched(mode rule.Mode) {
	rd.begin(true)
	c, h := &rd.choice, rd.makeHooks()
	if c.open || rd.remembers(c.rule) {
		rd.copy.Whole = h.whole
	}
	o := proxy.ForwardOptions{OnHead: h.head, Copy: h.copy, Last: h.last}
	switch {
	case c.open:
		o.Peek, o.OnHead = headPeek, h.headOpen
	case mode == rule.Guard && c.rule.IfMatch:
		o.Peek, o.OnHead = headPeek, h.headTagged
	}
	rd.r.Pass(o)
}

// headTagged adds the entity tag that stands for the revision, whose numbers stand before _source in the engine's answer.
func (rd *Reading) headTagged(h *wire.Head, first []byte) []wire.Field {
	rd.copy.Head(h, nil)
	if !rd.copy.usable || h.Status != http.StatusOK || h.Get("etag") != nil {
		return nil
	}
	it := rd.copy.beginning(first)
	if !it.Numbered {
		return nil
	}
	rd.added[0] = wire.Field{Name: etagName, Value: etag.Tag{Numbers: it.Numbers}.Append(rd.etag[:0])}
	return rd.added[:]
}

var etagName = []byte("ETag")

// headOpen looks which rule watches the read after all.
func (rd *Reading) headOpen(h *wire.Head, first []byte) []wire.Field {
	rd.copy.Head(h, nil)
	if !rd.copy.usable {
		return nil
	}
	rd.decide(rd.copy.beginning(first).Index)
	if !rd.remembers(rd.choice.rule) {
		rd.copy.Whole = nil
	}
	if ru := rd.choice.rule; rd.w.Rules.Effective(ru) == rule.Guard && ru.IfMatch {
		return rd.headTagged(h, first)
	}
	rd.copy.usable = rd.copy.Whole != nil
	return nil
}

// rememberCopy remembers the document of an answer that was copied.
func (rd *Reading) rememberCopy() {
	d := &rd.document
	if body, ok := rd.copy.Body(); ok {
		d.readOne(rd.copy.Status, body)
	} else if d.Numbers = rd.copy.numbers; d.Known() { // what was read before is not its base
		d.Numbered, d.whole = true, true
	} else if rd.copy.Status == http.StatusOK {
		rd.showOne(d)
	}
	d.watches = rd.choice.rule
	rd.remember(d)
}

// remember notes in the client's session the document that it saw, if a rule asks for that, and the client still waits: an answer that
// its client never sees is no base. A stamped document is remembered for any client that brings the stamp back.
func (rd *Reading) remember(d *Document) {
	if !rd.remembers(d.watches) {
		rd.show(d)
		if d.stamper == nil || !d.stamper.FromStamp || !d.whole {
			return
		}
	}
	if rd.r.Op().Head || rd.clientLeft() {
		return
	}
	rd.lookAtName(d)
	if rd.lookAtIndex(d) && rd.clientLeft() {
		return
	}
	ref := rd.home(d)
	rd.compare(d, &ref)
	switch {
	case d.absent:
		rd.w.Sessions.ReadWithTicket(rd.client.Session, ref, doc.Revision{}, rd.epoch, rd.ticket)
	case d.whole && d.Numbered && rd.ticket == 0:
		d.stale = rd.w.Sessions.Found(rd.client.Session, ref, d.Revision, rd.epoch) || d.stale
	case d.whole && d.Numbered:
		rd.w.Sessions.ReadWithTicket(rd.client.Session, ref, d.Revision, rd.epoch, rd.ticket)
	default:
		rd.show(d)
	}
}

// lookAtName notes which index the read shows the name to stand for.
func (rd *Reading) lookAtName(d *Document) {
	if d.Index != nil && api.OneIndex(d.name) {
		rd.w.Catalog.Found(rd.r.Asker(), d.name, d.Ref.Index, !d.hit)
	}
}

// lookAtIndex notes what the read shows of the index, and reports whether it has asked the engine for it, which may take long.
func (rd *Reading) lookAtIndex(d *Document) (asked bool) {
	switch missing := d.absent && d.noIndex; {
	case missing && rd.ticket != 0:
		rd.w.Sessions.IndexMissing(rd.client.Session.Credentials(), d.Ref.Index, rd.ticket)
		rd.epoch = rd.w.Sessions.Epoch() // the read itself is of the time after that
	case missing:
	case d.absent, d.whole && d.Numbered:
		return rd.settle(d)
	}
	return false
}

// settle has the engine asked what the index is, if that is suspected to be another one than before, or if nobody knows yet to which
// document the routing leads. The read itself needs that: what was read before it mustn't take it along, and it is no base of another
// document. It reports whether it has asked: the client may have left meanwhile.
func (rd *Reading) settle(d *Document) (asked bool) {
	return rd.askFor(d.Ref.Index, d.name, func() bool {
		_, maybe := rd.homes(d)
		return maybe != "" || rd.suspects(d.Ref.Index)
	})
}

// settleFirst is settle for a search of these names, before it is sent: while its hits come nobody may ask. What is suspected then is lost.
// Which indices a pattern finds isn't known before, and of a long list only the first names are settled.
func (rd *Reading) settleFirst(names string) {
	realm, n := rd.r.Client().Realm, 0
	for name := range strings.SplitSeq(names, ",") {
		if n++; n > settledFirst {
			return
		}
		if !api.OneIndex(name) {
			continue
		}
		index := name
		if ix, known := rd.w.Catalog.Cached(realm, name); known {
			index = ix.Name
		}
		rd.askFor(index, name, func() bool { return !rd.w.Catalog.Knows(realm, index) || rd.suspects(index) })
	}
}

// settledFirst is of how many names of a search the engine is asked at most.
const settledFirst = 8

// suspects reports whether other clients have found another index of the name, and the engine hasn't been asked about it since.
func (rd *Reading) suspects(index string) bool {
	_, open := rd.w.Sessions.Suspicion(rd.r.Client().Session.Credentials(), index)
	return open
}

// askFor asks what a name is, and the index, as long as something is open, each once for a read. It reports whether it asked. All of the
// answer must be here, or nothing of the read be sent: while somebody waits for a connection to ask, the read must not hold another. If the
// engine doesn't answer, the read asks no more.
func (rd *Reading) askFor(index, name string, open func() bool) (asked bool) {
	q := &rd.questions
	for _, next := range [...]string{cmp.Or(name, index), index} { // the name may be of several indices
		switch {
		case q.asked[next]:
			continue
		case q.unanswered || !open():
			return asked
		case q.asked == nil:
			q.asked = make(map[string]bool)
		}
		q.asked[next], asked = true, true
		rd.r.FreeUpstream()
		_, err := rd.w.Catalog.Learn(rd.r.Context(), rd.r.Asker(), next)
		q.unanswered = err != nil
	}
	return asked
}

// sampled is of how many reads one is compared with others: Host alone is a field that nobody has named, and all requests have it.
const sampled = 8

// compare looks for fields by which the document is another one for other clients: what they share could cross tenants then.
func (rd *Reading) compare(d *Document, ref *doc.Ref) {
	if rand.Uint32()%sampled != 0 || !rd.client.Unlisted || //nolint:gosec // chance is all that it takes
		rd.ticket == 0 || rd.r.Op().Kind == api.Mget || !d.absent && !d.Numbered {
		return
	}
	credentials := rd.client.Session.Credentials()
	rd.w.TenantHeaders.Saw(credentials[:], ref, d.Numbers, rd.r.Unlisted(rd.room[:0]))
}

// homes is the document as its writes name it. Documents that are read through a routing alias have the alias's routing: documents of two
// such aliases differ, even with the same id, unless the index has one shard. homes doesn't wait for the engine to say whether that is so:
// until that is known, the document has no routing, or the one that is maybe.
func (rd *Reading) homes(d *Document) (home doc.Ref, maybe string) {
	name, own := d.name, ""
	switch {
	case d.hit:
		name = ""
	case d.whole:
		own = d.Routing()
	}
	return rd.w.Catalog.Home(rd.r.Client().Realm, name, d.Ref, own)
}

// home is the document as what is read of it is remembered. If the engine hasn't said what its index is, that counts for its own routing
// only. Without one, it may be another document, or the same: what the session knew of that is older, and is no base any more.
func (rd *Reading) home(d *Document) doc.Ref {
	ref, maybe := rd.homes(d)
	if maybe != "" {
		rd.w.Sessions.ReadUnknown(rd.client.Session, ref)
		ref.Routing = maybe
	}
	return ref
}

// watchStatus looks at a read that shows no numbers: a missing document is a base, too. If the read shows a document without its numbers,
// the session knows that it has seen the document. Of a _source, a 404 may also say that the index keeps none: that is in its body.
func (rd *Reading) watchStatus() bool {
	rd.learnName()
	rd.begin(true)
	if !rd.remembers(rd.choice.rule) {
		return false
	}
	op, d := rd.r.Op(), &rd.document
	ix, known := rd.w.Catalog.Cached(rd.client.Realm, d.Ref.Index)
	if known {
		d.Ref = ix.Ref(d.Ref.Routing, d.Ref.ID)
	}
	absent := func() {
		if !rd.settle(d) || !rd.clientLeft() {
			rd.w.Sessions.ReadAbsent(rd.client.Session, rd.home(d), rd.epoch)
		}
	}
	o := proxy.ForwardOptions{OnHead: func(h *wire.Head, first []byte) []wire.Field {
		switch {
		case h.Status == http.StatusNotFound && !Partial(op.Query):
			rd.copy.Head(h, nil)
		case h.Status == http.StatusOK && !op.Head:
			rd.readNumbers(h, first)
			rd.showOne(d)
			if !known {
				rd.showUnknown() // the name may be an alias
			}
		}
		return nil
	}}
	if rd.showsNumbers() {
		o.Peek = headPeek
	}
	o.Copy, o.Last = rd.copy.Copy, rd.copy.Last
	rd.copy.Whole = func() {
		missing := op.Head && op.Kind == api.Get
		if !op.Head {
			body, ok := rd.copy.Body()
			missing = ok && es.NoDocument(body)
		}
		if missing && rd.copy.Status == http.StatusNotFound && !rd.clientLeft() {
			absent()
		}
	}
	rd.r.Pass(o)
	return true
}

// showsNumbers reports whether the numbers in the answer to a read of a part of a document matter: its client names its session.
func (rd *Reading) showsNumbers() bool {
	op := rd.r.Op()
	return op.Kind == api.Get && !op.Head && rd.named()
}

// readNumbers reads the numbers of the document, of which an answer shows a part. They stand before _source.
func (rd *Reading) readNumbers(h *wire.Head, first []byte) {
	if !rd.showsNumbers() {
		return
	}
	rd.copy.Head(h, nil)
	if rd.copy.usable {
		if it := rd.copy.beginning(first); it.Numbered {
			rd.document.Numbers = it.Numbers
		}
	}
	rd.copy.usable = false
}

// stampedGet answers a read of one document that a rule stamps, and reports false for all others. A HEAD is asked as a GET: it
// tells the length that the GET's answer has.
func (rd *Reading) stampedGet() bool {
	stamper := rd.stamper()
	if stamper == nil {
		return false
	}
	ref, ok := rd.r.Ref()
	if !ok || !rd.r.Rewritable() {
		return false
	}
	rd.choose()
	rd.document = Document{Ref: ref, name: ref.Index, stamper: stamper}
	return rd.getWhole()
}

// getWhole asks for the document where a bare _source is asked for, whose answer has no numbers, or where the document is
// stamped. The client gets the same bytes that the engine would have sent, but for the stamp and an ETag. Of a _source, whatever
// isn't a document found is asked for as the client put it.
func (rd *Reading) getWhole() bool {
	op, d := rd.r.Op(), &rd.document
	target := op.Path
	if op.Kind == api.Source {
		target = documentOfSource(op)
	}
	if target == nil {
		return false
	}
	rd.begin(true)
	if d.stamper != nil {
		rd.indexOf(d) // before the read: an index that is made anew meanwhile is noticed when it is described again
	}
	res, err := rd.ask(http.MethodGet, target, op.Query, nil)
	switch {
	case errors.Is(err, upstream.ErrTooLarge) && d.stamper == nil:
		return false
	case err != nil: // asked again as the client put it, it might be answered, and nobody would know with which revision
		rd.failed(err)
		return true
	}
	defer res.Release()
	d.readOne(res.Status, res.Payload)
	rd.decide(d.Index)
	d.watches = rd.choice.rule
	if !d.whole || d.stamper == nil && !d.Numbered {
		if op.Kind == api.Source && res.Status < 500 && res.Status != http.StatusTooManyRequests {
			return false // what is missing is said in another way there
		}
		rd.remember(d)
		rd.answer(res, res.Payload)
		return true
	}
	rd.remember(d)
	rd.stamp(d)
	var tag []wire.Field
	if d.Numbered && (d.stamper == nil || d.stamper.IfMatch) {
		tag = []wire.Field{{Name: etagName, Value: etag.Tag{Numbers: d.Numbers}.Append(nil)}}
	}
	rd.answer(res, rd.shaped(res.Payload), tag...)
	return true
}

// watchSource forwards the read of a bare _source as it is, so that not a byte of its answer is another, and asks for the document with its
// numbers before: at the same time, each of the two would hold a connection that the other may wait for. If both answers have the same
// bytes, the session remembers the document. It reports false, and has forwarded nothing, where there is nothing to compare.
func (rd *Reading) watchSource() bool {
	op, d := rd.r.Op(), &rd.document
	target := documentOfSource(op)
	if _, pretty := uri.Param(op.Query, "pretty"); target == nil || pretty {
		return false
	}
	rd.begin(true)
	if !rd.remembers(rd.choice.rule) {
		return false
	}
	res, err := rd.ask(http.MethodGet, target, op.Query, nil)
	if err != nil {
		return false
	}
	defer res.Release()
	d.readOne(res.Status, res.Payload)
	if !d.whole || !d.Numbered {
		return false
	}
	rd.decide(d.Index)
	d.watches = rd.choice.rule
	ref, stored := d.Ref, bare(res.Payload, d.Source)
	rd.copy.Whole = func() {
		if body, ok := rd.copy.Body(); ok && rd.copy.Status == http.StatusOK && bytes.Equal(body, stored) {
			rd.remember(d)
		} else if rd.copy.Status == http.StatusOK {
			rd.w.Sessions.ReadUnknown(rd.client.Session, ref)
		}
	}
	h := rd.makeHooks()
	rd.r.Pass(proxy.ForwardOptions{OnHead: h.head, Copy: h.copy, Last: h.last})
	return true
}

// shaped is the answer with its stamp in the form that was asked for.
func (rd *Reading) shaped(answer []byte) []byte {
	op, d := rd.r.Op(), &rd.document
	body := rd.stamps.into(answer)
	if op.Kind != api.Source {
		return body
	}
	source := body[d.from : d.from+len(d.Source)+len(body)-len(answer)]
	if v, pretty := uri.Param(op.Query, "pretty"); pretty && (len(v) == 0 || string(v) == "true") {
		return unindented(source)
	}
	return bare(body, source)
}

// documentOfSource is the path of the document whose bare _source is asked for; nil if it can't be told.
func documentOfSource(op *api.Op) []byte {
	i := bytes.LastIndex(op.Path, []byte("/_source"))
	if i < 0 {
		return nil
	}
	path, rest := append([]byte(nil), op.Path[:i]...), op.Path[i+len("/_source"):]
	if !op.Typed {
		path = append(path, "/_doc"...)
	}
	return append(path, rest...)
}

// BeginWrite begins to watch a write whose answer may show the document: see Written. Call it right before the write is sent.
func (rd *Reading) BeginWrite(w *Watcher, r *client.Request) {
	rd.w, rd.r, rd.rules, rd.stamps, rd.questions = w, r, w.Rules.Rules(), stamps{}, questions{}
	rd.begin(true)
}

// Written stamps the document in the answer to an _update or a PATCH, if that shows the whole of it. With keep, the document is remembered
// for the client that brings the stamp back. Written returns the answer with the stamp in it, and the fields to add to the answer.
func (rd *Reading) Written(ru *rule.Rule, keep bool, answer []byte) (body []byte, fields []wire.Field) {
	defer rd.end()
	document := es.Member(answer, "get")
	ref, ok := rd.r.Ref()
	if document == nil || !ok {
		return answer, nil
	}
	d := &Document{Ref: ref, name: ref.Index, stamper: ru}
	d.read(answer, document)
	written := es.ParseItem(answer)
	if d.whole = d.Found && d.Source != nil && string(written.Result) != "deleted"; !d.whole { // a script may delete what it shows
		return answer, nil
	}
	if d.Index = written.Index; d.Index != nil {
		d.Ref.Index = string(d.Index)
	}
	if keep {
		rd.remember(d)
	}
	rd.stamp(d)
	return rd.stamps.into(answer), rd.stamps.report(rd.w.Metrics, nil)
}

func (rd *Reading) makeHooks() *hooks {
	if h := &rd.hooks; h.head == nil {
		h.head, h.headTagged, h.headOpen = rd.copy.Head, rd.headTagged, rd.headOpen
		h.shown = rd.shown
		h.copy, h.last, h.whole = rd.copy.Copy, rd.copy.Last, rd.rememberCopy
	}
	return &rd.hooks
}
