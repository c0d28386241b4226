package undo

import (
	"bytes"
	"slices"

	"optimist/internal/doc"
)

// written is one noted write, and what is known of it.
type written struct {
	note
	acked bool
}

// document is what the journal says of one document: its writes, the oldest first.
type document struct {
	place
	writes []*written
}

// place is where a document is: tenants may have documents of the same name.
type place struct {
	doc.Ref
	tenant string // Tenant.word
}

func (n *note) place() place {
	return place{doc.Ref{Index: n.Index, ID: n.ID, Routing: n.Routing}, n.Tenant.word()}
}

// tenantOf is the tenant in which the document is. All its writes are of this one.
func (d *document) tenantOf() *Tenant { return &d.writes[0].Tenant }

// collect groups the notes by document. The document that was written last comes first. Writes that were never applied are left out.
func collect(pages []*page) []*document {
	all := map[Place]*written{}
	failed := map[Place]bool{}
	var order []Place
	for i, p := range pages {
		for n := range p.Notes {
			at := Place{i + 1, n}
			all[at] = &written{note: p.Notes[n]}
			order = append(order, at)
		}
		for _, at := range p.Acked {
			if w := all[at]; w != nil {
				w.acked = true
			}
		}
		for _, at := range p.Failed {
			failed[at] = true
		}
	}
	var docs []*document
	byPlace := map[place]*document{}
	for i := len(order) - 1; i >= 0; i-- {
		w := all[order[i]]
		if failed[order[i]] {
			continue
		}
		at := w.place()
		d := byPlace[at]
		if d == nil {
			d = &document{place: at}
			byPlace[at], docs = d, append(docs, d)
		}
		d.writes = append(d.writes, w)
	}
	for _, d := range docs {
		slices.Reverse(d.writes)
	}
	return docs
}

// The reasons why something is left.
const (
	whyBoth     = "others have changed what the holder changed, too"
	whyCreated  = "the holder made the document, and others have changed it since"
	whyDeleted  = "the holder deleted the document, and others have made it anew since"
	whyUnsure   = "others have changed the document, and it isn't known whether the holder's change is in it"
	whyGone     = "others have deleted the document since"
	whyNoSource = "the document can't be read whole"
)

// doubt says what is known of a document beyond its notes.
type doubt uint8

const (
	noDoubt      doubt = iota // what isn't acknowledged may have been applied or not
	restoredOnce              // it may be restored already, in part
	applied                   // everything was applied
)

// restored returns the document cur without the holder's writes. It undoes the newest write first. why is empty, or says what it couldn't
// undo.
func (d *document) restored(cur doc.Revision, merger func(rule string) Merger, about doubt) (img image, why string) {
	img = image(cur.Source)
	if about == restoredOnce && d.isRestored(img, merger) {
		return img, ""
	}
	for i := len(d.writes) - 1; i >= 0; i-- {
		w := d.writes[i]
		if cur.Known() && cur.Numbers == w.Guard && i == len(d.writes)-1 {
			continue // the newest write wasn't applied, and its guard fails as soon as the result is written
		}
		next, problem := w.undo(img, merger, about == applied || about == noDoubt && w.acked)
		if img = next; problem != "" && why == "" {
			why = problem
		}
	}
	return img, why
}

// isRestored reports whether everything that the holder changed has its old value again. Other clients may have changed other parts.
func (d *document) isRestored(img image, merger func(rule string) Merger) bool {
	last := d.writes[len(d.writes)-1]
	if img == nil || last.After == nil {
		return false
	}
	was, why := d.restored(doc.Revision{Source: last.After}, merger, applied)
	if was == nil || why != "" {
		return false
	}
	ok, err := merger(last.Rule).Repeatable(was, last.After, img)
	return ok && err == nil
}

// undo removes the write's change from the document img. sure says that the write was applied. Otherwise undo first finds out whether the
// change is in the document.
func (w *written) undo(img image, merger func(rule string) Merger, sure bool) (image, string) {
	switch {
	case same(img, w.After):
		return w.Before, ""
	case same(img, w.Before):
		return img, "" // the write wasn't applied, or is undone already
	case w.Before == nil && img == nil:
		return nil, ""
	case w.Before == nil:
		return img, whyCreated
	case w.After == nil:
		return img, whyDeleted
	case img == nil:
		return nil, whyGone
	}
	m := merger(w.Rule)
	if !sure { // a sum that is undone though it was never applied is as wrong as one that isn't undone
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
	for _, w := range d.writes {
		if w.Before == nil && w.After != nil && !w.acked {
			return true
		}
	}
	return false
}

// made reports whether an image is that of a document that the holder has created.
func (d *document) made(img image) bool {
	for _, w := range d.writes {
		if w.Before == nil && same(img, w.After) {
			return true
		}
	}
	return false
}
