package base

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/outcome"
)

// incarnationAge is how old what is known of an index may be where it matters which of several indices of the same name it is. A stamp is
// held against it, which its client may have had for days. Or it is noted which index the write was made in, so that a rollback touches no
// other one.
const incarnationAge = time.Second

// Ref is the document that the write is of, whatever name and routing its client uses. Before Locate, it is as the client named it.
func (w *Search) Ref() doc.Ref {
	if w.Index.Name == "" {
		return w.Doc.Ref
	}
	return w.Index.Ref(w.Doc.Routing, w.Doc.ID)
}

// Target is the document as the engine names it in its answers. It has no index where that isn't known.
func (w *Search) Target() doc.Ref {
	ref := w.Doc.Ref
	if w.Index.UUID == "" {
		ref.Index = ""
	}
	return ref
}

// MayBeRewritten reports whether the engine may hold other bytes than are written.
func (w *Search) MayBeRewritten() bool {
	return w.Pipeline || w.Index.Pipeline || w.Index.Partial || w.Index.Unknown != "" || w.Index.UUID == ""
}

// Locate finds out which index the write's document is in, and with which routing the engine is asked for it. What was found before the
// write counts for the first call only: by the next one, the name may stand for another index. If the write has a stamp, or may have to be
// undone, what was found before doesn't count at all.
func (f *Finder) Locate(ctx context.Context, w *Search) (err error) {
	found, maxAge := w.Found, time.Duration(0)
	w.Found = nil
	if w.Stamp.Known() || w.Journalled {
		found, maxAge = nil, incarnationAge
	}
	if found != nil {
		w.Index = *found
	} else {
		w.Index, err = f.Catalog.Resolve(ctx, w.Asker(), w.Name, maxAge)
	}
	w.Doc.Index, w.Doc.Routing = w.Index.Name, cmp.Or(w.Doc.Routing, w.Index.Routing)
	return err
}

// LocateNew is Locate for a write that came before there was an index, and reports whether that was so. The write that made the index may
// have given it a pipeline, by a template, or a _source that isn't kept whole. An index that optimist can't ask about counts as one.
func (f *Finder) LocateNew(ctx context.Context, w *Search) bool {
	if w.Index.Name == "" || w.Index.UUID != "" || w.Index.Unknown != "" {
		return false
	}
	if err := f.Locate(ctx, w); err != nil {
		w.Index.Unknown = outcome.ReasonMetadata
	}
	return true
}

// Current reads the write's document as it is now, on its client's behalf. Errors are doc.ErrMissing, ErrNoIndex, which is one,
// ErrMoved, and intake.ErrTimeout and doc.ErrNotWritten, which say that nothing was written.
func (f *Finder) Current(ctx context.Context, w *Search) (doc.Revision, error) {
	rev, err := f.fetch(ctx, w)
	switch {
	case err == nil, errors.Is(err, doc.ErrMissing), errors.Is(err, ErrMoved):
		return rev, err
	case errors.Is(err, es.ErrNoIndex):
		f.Catalog.Missing(w.Asker(), w.Doc.Index)
		return doc.Revision{}, ErrNoIndex
	case errors.Is(context.Cause(ctx), intake.ErrTimeout):
		return doc.Revision{}, intake.ErrTimeout
	}
	return rev, fmt.Errorf("%w: %w", doc.ErrNotWritten, err)
}

// SeesWhole tells whether the client's view of the index's documents is unfiltered. The error says that the engine couldn't be
// asked.
func (f *Finder) SeesWhole(ctx context.Context, w *Search) (bool, error) {
	return f.Catalog.SeesWhole(ctx, w.Asker(), w.Name, w.Doc.Routing)
}
