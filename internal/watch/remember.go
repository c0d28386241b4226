package watch

import (
	"math/rand/v2"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/session"
)

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
	if rd.r.Op().Head {
		return
	}
	rd.lookAtName(d)
	if rd.lookAtIndex(d); rd.clientLeft() {
		return
	}
	ref := rd.home(d)
	rd.compare(d, &ref)
	switch {
	case d.absent:
		rd.w.Sessions.ReadWithTicket(rd.client.Session, ref, doc.Revision{}, rd.epochOf(ref.Index), rd.ticket)
	case d.whole && d.Numbered && rd.ticket == 0:
		rd.found(d, ref)
	case d.whole && d.Numbered:
		if rd.w.Sessions.ReadUnlessOlder(rd.client.Session, ref, d.Revision, rd.epochOf(ref.Index), rd.ticket) {
			rd.rememberOlder(d, ref)
		}
	default:
		rd.show(d)
	}
}

// found notes a read that may show an older revision than the stored one.
func (rd *Reading) found(d *Document, ref doc.Ref) {
	d.stale = rd.w.Sessions.Found(rd.session(), ref, d.Revision, rd.epochOf(ref.Index)) || d.stale
}

// rememberOlder is for a read that shows an older revision than a write had left that was acknowledged before. The index is another one, or
// the read is stale.
func (rd *Reading) rememberOlder(d *Document, ref doc.Ref) {
	switch same := rd.isSame(ref.Index); { // which may take long
	case rd.clientLeft():
	case same:
		rd.found(d, ref)
	default:
		rd.w.Sessions.ReadWithTicket(rd.client.Session, ref, d.Revision, rd.epochOf(ref.Index), rd.ticket)
	}
}

// lookAtName notes which index the read shows the name to stand for.
func (rd *Reading) lookAtName(d *Document) {
	if d.Index != nil && api.OneIndex(d.name) {
		rd.w.Catalog.Found(rd.r.Asker(), d.name, d.Ref.Index, !d.hit)
	}
}

// lookAtIndex notes what the read shows of the index. The engine may be asked for it, which may take long.
func (rd *Reading) lookAtIndex(d *Document) {
	switch missing := d.absent && d.noIndex; {
	case missing && (rd.ticket == 0 || rd.isSame(d.Ref.Index)):
	case missing:
		rd.w.Sessions.IndexMissing(rd.client.Session.Credentials(), d.Ref.Index, rd.ticket)
		rd.questions.isOfNow(d.Ref.Index, rd.w.Sessions.Epoch())
	case d.absent, d.whole && d.Numbered:
		rd.settle(d)
	}
}

// isSame has the engine asked, once for a read, whether the index is still the one that it was, although the read shows something else. A
// node that is cut off from the others answers reads by what it knew before. If the index is another one, the read counts as one of that.
func (rd *Reading) isSame(index string) bool {
	q := &rd.questions
	same, asked := q.same[index]
	if asked || !rd.w.Catalog.Knows(rd.r.Client().Realm, index) {
		return same
	}
	if same = rd.w.Catalog.IsSame(rd.r.Context(), rd.asker(), index); !same {
		q.isOfNow(index, rd.w.Sessions.Epoch())
	}
	if q.same == nil {
		q.same = make(map[string]bool)
	}
	q.same[index] = same
	return same
}

// epochOf is the epoch of which the read shows the index.
func (rd *Reading) epochOf(index string) session.Epoch {
	if at, later := rd.questions.epochs[index]; later {
		return at
	}
	return rd.epoch
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
