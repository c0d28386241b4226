package base

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/session"
)

// The name of a write may be moved without optimist: an alias stands for another index then, an index has become an alias, or an index was
// deleted and made anew. The numbers of the index before are no guard in the one after, which may have the same numbers by chance.

// ErrMoved reports that the write's name stands for another index than when the write began. Nothing was written. The write begins again.
var ErrMoved = fmt.Errorf("%w: its name stands for another index than a moment ago", doc.ErrNotWritten)

// sharedAge is how old what is known of a name may be where a document is read by the index's own name, because the write's name finds
// several indices.
const sharedAge = time.Millisecond

// fetch reads the write's document by the name that the write goes by. So the write isn't made from a document of another index. The
// error is ErrMoved if the name has been moved.
func (f *Finder) fetch(ctx context.Context, w *Search) (doc.Revision, error) {
	engine, d := f.Engine, w.Doc
	if w.Way != nil {
		engine = w.Way
	}
	switch {
	case w.Index.UUID == "", w.Index.DataStream != "": // by whose name the engine changes no document
	case w.Index.Shared: // a read by the name finds several indices
		ix, err := f.Catalog.Resolve(ctx, w.Asker(), w.Name, sharedAge)
		if err != nil {
			return doc.Revision{}, err
		}
		if !sameIndex(&ix, &w.Index) {
			return doc.Revision{}, ErrMoved
		}
	default:
		d.Name = w.Name
	}
	began := time.Now()
	rev, err := engine.Fetch(ctx, w.Caller, d)
	if err != nil && d.Name != "" && f.isMoved(ctx, w, err, began) {
		return doc.Revision{}, ErrMoved
	}
	return rev, err
}

// isMoved reports whether the name has been moved, after a read by it, which began then, has failed.
func (f *Finder) isMoved(ctx context.Context, w *Search, err error, began time.Time) bool {
	var status *es.StatusError
	switch {
	case errors.Is(err, es.ErrElsewhere):
		f.Catalog.Void(w.Credentials(), w.Name)
		return true
	case errors.Is(err, doc.ErrMissing) && !errors.Is(err, es.ErrNoIndex):
		return w.Base.Numbers.Known() && f.isAnew(ctx, w, max(time.Since(began), 1))
	case w.Name == w.Index.Name:
		return false
	case errors.Is(err, es.ErrNoIndex), errors.As(err, &status) && status.Status == http.StatusBadRequest: // of several indices, say
		f.Catalog.Void(w.Credentials(), w.Name)
		ix, err := f.Catalog.Resolve(ctx, w.Asker(), w.Name, 0)
		return err == nil && !sameIndex(&ix, &w.Index)
	}
	return false
}

// isAnew reports whether the index was deleted and made anew without optimist. If so, a document that the write's client has seen wasn't
// deleted, and the client that fills the new index must not be told that it was. What other writes have learnt is maxAge old at most.
func (f *Finder) isAnew(ctx context.Context, w *Search, maxAge time.Duration) bool {
	ix, err := f.Catalog.Resolve(ctx, w.Asker(), w.Name, maxAge)
	return err == nil && ix.Exists() && !sameIndex(&ix, &w.Index)
}

// sameIndex reports whether a name stands for the same index as before, in the same way.
func sameIndex(a, b *catalog.Index) bool {
	return a.Name == b.Name && a.UUID == b.UUID && a.Shared == b.Shared
}

// Follow looks at the index that the answer to a write names. If the write's name stands for that index now, and stood for another one, the
// write is of that index from here on, with what its client has seen. Follow reports whether that is so. Otherwise an ingest pipeline may
// have taken the document elsewhere.
func (f *Finder) Follow(ctx context.Context, w *Search, index string) bool {
	before := w.Index
	if !before.Exists() || index == "" || index == before.Name {
		return false
	}
	if !w.Pipeline && !before.Pipeline { // which may take each document elsewhere
		f.Catalog.Void(w.Credentials(), w.Name)
	}
	if f.Locate(ctx, w) != nil || w.Index.Name != index {
		w.Index, w.Doc.Index = before, before.Name
		return false
	}
	former := w.Base
	w.Base = f.Sessions.Witness(w.Session, w.Ref())
	if former.Kind != session.KindNone {
		w.Base.Become(&former)
		w.judgeMoved(false)
	}
	former.Doubt() // a client has written from it, in the other index
	return true
}

// MayGoElsewhere reports whether the engine may store what the write sends in another document than the one that the write names: an ingest
// pipeline may take it there, or the failure store of a data stream. Of an index that the client may not ask about this isn't known. Nor is
// it known of one that isn't there although the engine has answered: its template may have a pipeline.
func (f *Finder) MayGoElsewhere(ctx context.Context, w *Search) bool {
	if w.Pipeline || mayGoElsewhere(&w.Index) {
		return true
	}
	f.Catalog.Void(w.Credentials(), w.Name) // the pipeline may be a new one
	ix, err := f.Catalog.Resolve(ctx, w.Asker(), w.Name, 0)
	return err == nil && (mayGoElsewhere(&ix) || !ix.Exists())
}

func mayGoElsewhere(ix *catalog.Index) bool {
	return ix.Pipeline || ix.DataStream != "" || ix.Unknown != ""
}

// carry has what the client has seen of the document, in the indices for which the name stood before, count in the index for which the name
// stands now. It reports whether anything is, or was, known of that.
func (f *Finder) carry(w *Search) (known bool) {
	ref := w.Ref()
	for _, former := range w.Index.Former(ref) {
		known = f.Sessions.Carry(w.Session, former, ref) || known
	}
	return known
}

// judgeMoved looks at a base that the client may have seen in an index before. Such a base is no guard: if it can't be merged, it is lost.
// known says that the client has seen the document there: if there is no base, it is lost.
func (w *Search) judgeMoved(known bool) {
	b := &w.Base
	w.Moved = b.Moved && b.View != nil && !b.OnlyGuards()
	if b.Moved && !w.Moved || known && (b.Kind == session.KindNone || w.isLostLongAgo()) {
		b.Kind, b.Reason = session.KindLost, session.ReasonIndex
	}
}

// isLostLongAgo reports whether the base is lost of which the session knows no more than that it is too old, or was perhaps seen before the
// start, or in an answer that nobody has read. What the session knows of the document in another index is better.
func (w *Search) isLostLongAgo() bool {
	switch w.Base.Reason {
	case session.ReasonRestart, session.ReasonAged, session.ReasonUnwatched:
		return w.Base.Kind == session.KindLost
	}
	return false
}
