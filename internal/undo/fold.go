package undo

import (
	"bytes"
	"cmp"
	"slices"

	"optimist/internal/doc"
)

// written is one noted write, and what is known of it.
type written struct {
	note
	acked bool
	made  doc.Revision // the revision that the write made, without its source; zero: not known
}

// document is what the journal says of one document.
type document struct {
	tenantRef
	writes []*written // the oldest first; none: no write was applied
}

// tenantRef is where a document is: tenants may have documents of the same name.
type tenantRef struct {
	doc.Ref
	tenant string // Tenant.word
}

func (n *note) tenantRef() tenantRef {
	return tenantRef{doc.Ref{Index: n.Index, ID: n.ID, Routing: n.Routing}, n.Tenant.word()}
}

// tenantOf is the tenant of the document, and so of each of its writes.
func (d *document) tenantOf() *Tenant { return &d.writes[0].Tenant }

// in is the document with only those writes that may have gone to the index of that UUID. If uuid is empty, the index isn't known, and all
// writes may have. If the index was made anew since the writes, none is left.
func (d *document) in(uuid string) *document {
	if uuid == "" {
		return d
	}
	return &document{d.tenantRef, slices.DeleteFunc(slices.Clone(d.writes), func(w *written) bool { return w.UUID != "" && w.UUID != uuid })}
}

// goesBackBy reports whether the document becomes what it was before all its writes, if only some of them are undone. They have to be the
// last ones, and the first of them has to have found the document as it was before all.
func (d *document) goesBackBy(some *document) bool {
	first := some.writes[0]
	return d.writes[len(d.writes)-len(some.writes)] == first && same(first.Before, d.writes[0].Before)
}

// collect groups the notes by document. The document that was noted last comes first. collect leaves out writes that were never applied. It
// keeps their documents, even with no write: a plan names documents by their places in the list, and another process may not know which
// writes were never applied.
func collect(pages []*page) []*document {
	acks, failed := outcomes(pages)
	var docs []*document
	byRef := map[tenantRef]*document{}
	for i, p := range slices.Backward(pages) {
		for n := range slices.Backward(p.Notes) {
			w := &written{note: p.Notes[n]}
			d := byRef[w.tenantRef()]
			if d == nil {
				d = &document{tenantRef: w.tenantRef()}
				byRef[d.tenantRef], docs = d, append(docs, d)
			}
			at := Place{i + 1, n}
			if ack, acked := acks[at]; acked {
				w.acked, w.made = true, doc.Revision{Numbers: ack.Made, Version: ack.Version}
			}
			if !failed[at] {
				d.writes = append(d.writes, w)
			}
		}
	}
	for _, d := range docs {
		slices.Reverse(d.writes)
	}
	return docs
}

// outcomes are what pages say of the notes of earlier pages: which writes were applied, and which never will be.
func outcomes(pages []*page) (acks map[Place]acked, failed map[Place]bool) {
	acks, failed = map[Place]acked{}, map[Place]bool{}
	for _, p := range pages {
		for _, ack := range p.Acked {
			acks[ack.Place] = ack
		}
		for _, at := range p.Failed {
			failed[at] = true
		}
	}
	return acks, failed
}

// The reasons why something is left.
const (
	whyBoth     = "others have changed what the holder changed, too"
	whyCreated  = "the holder made the document, and others have changed it since"
	whyDeleted  = "the holder deleted the document, and others have made it anew since"
	whySame     = "others have written the document since, and left it as the holder had; they may have meant that"
	whyUnsure   = "others have changed the document, and it isn't known whether the holder's change is in it"
	whyGone     = "others have deleted the document since"
	whyAnew     = "the index was deleted since, or restored, and what has its name now is another one"
	whyNoSource = "the document can't be read whole"
)

// extra is what is known of a document beyond its notes.
type extra uint8

const (
	notesAlone    extra = iota // a write that isn't acknowledged may have been applied or not
	maybeRestored              // an earlier plan may have restored the document already, in part
	allApplied                 // every write was applied
)

// restored returns the document cur without the holder's writes. why is empty, or says what it couldn't undo.
func (d *document) restored(cur doc.Revision, merger func(rule string) Merger, known extra) (img image, why string) {
	if known == maybeRestored && d.isRestored(cur.Source, merger) {
		return cur.Source, ""
	}
	f := fold{merger, known}
	return f.without(d.writes, cur)
}

// fold takes the writes of a holder out of one document.
type fold struct {
	merger func(rule string) Merger
	known  extra
}

// without returns the document cur without some writes, of which the newest is the last. Revisions show where others wrote: equal bytes
// don't. Between two writes of the holder, and after the last one, others may have changed the document and changed it back. cur has no
// numbers if it isn't a revision of the document, but was folded already.
//
// What others have done since a write is judged by all older writes at once: they are folded first, into the document that the write
// replaced. Otherwise, a value to which others have set the document would be taken for the holder's, if an older write had left the same.
func (f *fold) without(writes []*written, cur doc.Revision) (image, string) {
	if len(writes) == 0 {
		return cur.Source, ""
	}
	older, w := writes[:len(writes)-1], writes[len(writes)-1]
	switch {
	case cur.Known() && cur.Numbers == w.Guard: // w wasn't applied. It never will be: its guard fails as soon as the rollback has written
		return f.without(older, cur)
	case w.untouched(cur):
		return f.without(older, w.replaced())
	case f.known == allApplied || f.known == notesAlone && w.acked:
		was, before := f.without(older, w.replaced())
		img, why := f.change(w, was, cur.Source)
		return img, cmp.Or(why, before)
	}
	next, why := f.guess(w, cur)
	if !same(next, cur.Source) {
		cur = doc.Revision{Source: next}
	}
	img, before := f.without(older, cur)
	return img, cmp.Or(why, before)
}

// untouched reports whether nobody has changed the document since the write, as far as its current revision shows. The current bytes are
// then those that the write left. One further write of the same bytes changes nothing: a lock with `fence: touch` writes so. Two or more
// may have changed the document and changed it back.
func (w *written) untouched(cur doc.Revision) bool {
	return same(cur.Source, w.After) &&
		(!w.made.Known() || !cur.Known() || cur.Numbers == w.made.Numbers || cur.Version == w.made.Version+1)
}

// replaced is the revision in whose place the write was made.
func (w *written) replaced() doc.Revision {
	return doc.Revision{Numbers: w.Guard, Version: max(w.made.Version-1, 0), Source: w.Before}
}

// isRestored reports whether everything that the holder changed has its old value again. Other clients may have changed other parts.
func (d *document) isRestored(img image, merger func(rule string) Merger) bool {
	last := d.writes[len(d.writes)-1]
	if img == nil || last.After == nil {
		return false
	}
	was, why := d.restored(doc.Revision{Source: last.After}, merger, allApplied)
	if was == nil || why != "" {
		return false
	}
	ok, err := merger(last.Rule).Repeatable(was, last.After, img)
	return ok && err == nil
}

// change undoes an applied write in a document that others have written since. was is the document without the write, and img is the
// current one. The change from what the write left to was is merged into img.
func (f *fold) change(w *written, was, img image) (image, string) {
	switch {
	case same(was, w.After):
		return img, "" // there is nothing to undo
	case was == nil && img == nil:
		return nil, ""
	case was == nil:
		return img, whyCreated
	case w.After == nil:
		return img, whyDeleted
	case img == nil:
		return nil, whyGone
	}
	m := f.merger(w.Rule)
	r, err := m.Merge(w.After, was, img)
	switch {
	case err != nil || len(r.Overwritten) > 0:
		return img, whyBoth
	case w.made.Known() && r.Changed && isAgain(m, w.After, was, img):
		return img, whySame
	}
	return r.Doc, ""
}

// isAgain reports whether others have written a document and left it equal to after, as the holder had left it: they may have meant that.
// Values that add up are an exception: of them only the sum counts, so the report is false.
func isAgain(m Merger, after, was, img image) bool {
	others, err := m.Merge(after, img, after)
	if err != nil || others.Changed {
		return false
	}
	twice, err := m.Merge(after, was, was)
	return err != nil || !twice.Changed
}

// guess undoes a write of which nobody knows whether it was applied. It removes the write's change from the document cur only if it finds
// out that the change is in there.
func (f *fold) guess(w *written, cur doc.Revision) (image, string) {
	img := cur.Source
	switch {
	case same(img, w.Before) && (w.After == nil || !cur.Known() || f.known == maybeRestored):
		return img, "" // the write wasn't applied, or is undone already
	case w.Before == nil:
		return img, whyCreated
	case w.After == nil:
		return img, whyDeleted
	case img == nil:
		return nil, whyGone
	}
	// A sum that was never applied must not be undone, and a sum that was applied must be.
	m := f.merger(w.Rule)
	there, err := m.Repeatable(w.After, w.Before, img)
	if err == nil && !there {
		if there, err = m.Repeatable(w.Before, w.After, img); there && err == nil {
			return img, ""
		}
		there = false
	}
	if err != nil || !there {
		return img, whyUnsure
	}
	r, err := m.Merge(w.After, w.Before, img)
	if err != nil || len(r.Overwritten) > 0 {
		return img, whyBoth
	}
	return r.Doc, ""
}

// same reports whether two images are equal: both are no document, or have the same bytes.
func same(a, b image) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// mayAppear reports whether a late write of the holder may still create the document. A rollback can't prevent that by a guard, because the
// document isn't there.
func (d *document) mayAppear() bool {
	return slices.ContainsFunc(d.writes, func(w *written) bool { return w.Before == nil && w.After != nil && !w.acked })
}

// isLateCreate reports whether an image is what a late write of the holder creates.
func (d *document) isLateCreate(img image) bool {
	return slices.ContainsFunc(d.writes, func(w *written) bool { return w.Before == nil && !w.acked && same(img, w.After) })
}
