package watch

import (
	"bytes"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/proxy"
)

// A named session is exact as long as it is known what its client was last shown. So whatever shows documents counts: a read that is
// watched, and also an answer that nobody here can read. The store knows what such an answer leaves: see session.Store.ShownUnknown. The
// forms of such answers aren't told apart: each request that isn't known to show nothing shows something.

// sourceKey stands before each document in an answer, whichever request that is to, as long as it is JSON.
var sourceKey = []byte(`"_source"`)

// sources is how many documents an answer shows, or a part of it.
func sources(answer []byte) int { return bytes.Count(answer, sourceKey) }

// seeker counts the documents in pieces of an answer.
type seeker struct{ tail []byte }

func (s *seeker) count(piece []byte) int {
	const edge = len(`"_source"`) - 1
	s.tail = append(s.tail, piece[:min(len(piece), edge)]...)
	n := sources(s.tail) + sources(piece) // what the piece only ends, and what is in it
	last := s.tail
	if len(piece) > edge {
		last = piece
	}
	s.tail = append(s.tail[:0], last[max(0, len(last)-edge):]...)
	return n
}

// sources is how many of those in the answer are accounted for by the document itself.
func (d *Document) sources() int {
	if d.Source == nil {
		return 0
	}
	return 1 + sources(d.Source)
}

// named reports whether the client names its session, and bases are looked for at all.
func (rd *Reading) named() bool { return rd.r.Client().Session.IsNamed() && rd.known() }

// known reports whether the client has a session, and bases are looked for at all.
func (rd *Reading) known() bool { return rd.r.Client().Known && rd.w.Rules.Mode() != rule.Off }

// unwatched forwards a request that nobody watches, and notes that its answer may show documents. It reports false, and has forwarded
// nothing, if there is nothing to be noted. Nothing of the answer changes, and nothing waits for it. Before a named session's request is
// sent, the engine may be asked what its name stands for.
func (rd *Reading) unwatched() bool {
	op := rd.r.Op()
	switch {
	case !rd.known() || !op.MayShow(rd.r.Head().Method) || hidesDocument(op):
		return false
	case !rd.named():
		if !rd.mayShowWhole() {
			return false
		}
	default:
		rd.learnName()
		if k := op.Kind; k == api.Search || k == api.Scroll || k == api.Mget {
			rd.forwardCopied(rd.showAll)
			return true
		}
	}
	rd.r.Pass(proxy.ForwardOptions{OnHead: rd.makeHooks().shown})
	return true
}

// shown notes an answer of which nobody knows which documents it shows, if it is a success.
func (rd *Reading) shown(h *wire.Head, _ []byte) []wire.Field {
	if h.Status >= 200 && h.Status <= 299 {
		rd.showUnknown()
	}
	return nil
}

// mayShowWhole reports whether the answer to a request that nobody watches may show whole documents. In an inferred session nothing else
// counts: many clients share it, and look at parts that they never write back.
func (rd *Reading) mayShowWhole() bool {
	switch op := rd.r.Op(); op.Kind {
	case api.Search:
		return rd.unread
	case api.Mget, api.Scroll:
		return !asksForPart(op.Query)
	case api.Other:
		return true
	}
	return false // a read of one document
}

// showUnknown notes an answer of which nobody knows which documents it shows.
func (rd *Reading) showUnknown() {
	if !rd.known() {
		return
	}
	c, index := rd.r.Client(), ""
	if name := rd.oneName(); name != "" {
		if ix, known := rd.w.Catalog.Cached(c.Realm, name); known && ix.Unknown == "" {
			index = ix.Name
		}
	}
	rd.w.Sessions.ShownUnknown(c.Session, index)
}

// oneName is the name of the only index, or alias, of which the answer shows documents; "": there may be others.
func (rd *Reading) oneName() string {
	switch rd.r.Op().Kind {
	case api.Get, api.Source, api.Search: // all others may name further indices in their body
		if name := rd.r.Index(); api.OneIndex(name) {
			return name
		}
	}
	return ""
}

// learnName has the engine asked what the name in a named session's read stands for, if that isn't known. What the read shows would count
// for all indices. Nothing of the read may be sent before.
func (rd *Reading) learnName() {
	if name := rd.oneName(); name != "" && !rd.r.Op().Head && rd.named() && rd.r.Rewritable() {
		rd.learn(name)
	}
}

// showAll notes the documents in an answer to a read of several that isn't watched.
func (rd *Reading) showAll(answer []byte) {
	rest := sources(answer)
	for _, list := range [...][]string{{"hits", "hits"}, {"docs"}} {
		for part := range es.Elements(answer, list...) {
			if d := readHit(answer, part, ""); d.whole && d.Ref.ID != "" {
				rd.show(d)
				rest -= d.sources()
			}
		}
	}
	rd.showRest(rest)
}

// showRest notes that an answer shows more documents than those that were read from it: below hits, or in aggregations. That counts for a
// client that names its session.
func (rd *Reading) showRest(n int) {
	if n > 0 && rd.named() {
		rd.showUnknown()
	}
}

// show notes a document, or a part of one, that an answer shows to a client that names its session, and that is no base.
// If the answer is about another document, that counts for all clients.
func (rd *Reading) show(d *Document) {
	if d.another {
		rd.showOne(d)
		return
	}
	if d.Source == nil || !rd.named() {
		return
	}
	sess, unrouted := rd.r.Client().Session, d.Ref
	unrouted.Routing = ""
	rd.w.Sessions.ReadPart(sess, unrouted, d.Revision)
	if d.Ref.Routing != "" { // which an alias may have given
		rd.w.Sessions.ReadPart(sess, d.Ref, d.Revision)
	}
}

// showOne notes that a read of one document shows it, or a part of it. If it may be all of it, nothing that the session knew is a base any
// more.
func (rd *Reading) showOne(d *Document) {
	note := rd.w.Sessions.ReadUnknown
	if q := rd.r.Op().Query; Partial(q) && !hidesRevision(q) {
		note = func(s session.Session, ref doc.Ref) { rd.w.Sessions.ReadPart(s, ref, doc.Revision{Numbers: d.Numbers}) }
	}
	ref, maybe := rd.homes(d)
	note(rd.client.Session, ref)
	if maybe != "" {
		ref.Routing = maybe
		note(rd.client.Session, ref)
	}
}
