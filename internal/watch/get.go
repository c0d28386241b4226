package watch

import (
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/rule"
	"optimist/internal/upstream"
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
	if !it.Numbered || it.IsElsewhere("", rd.document.Ref.ID) {
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
		if !missing || rd.copy.Status != http.StatusNotFound {
			return
		}
		if rd.settle(d); !rd.clientLeft() {
			rd.w.Sessions.ReadAbsent(rd.client.Session, rd.home(d), rd.epoch)
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
	case errors.Is(err, upstream.TooLarge) && d.stamper == nil:
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

func (rd *Reading) makeHooks() *hooks {
	if h := &rd.hooks; h.head == nil {
		h.head, h.headTagged, h.headOpen = rd.copy.Head, rd.headTagged, rd.headOpen
		h.shown = rd.shown
		h.copy, h.last, h.whole = rd.copy.Copy, rd.copy.Last, rd.rememberCopy
	}
	return &rd.hooks
}
