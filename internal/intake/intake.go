// Package intake reads the request of a write: the document, the conditions, and the time limit.
//
// It does no I/O. It doesn't ask what the index is, or whether the conditions hold.
package intake

import (
	"bytes"
	"context"
	"errors"
	"time"

	"optimist/internal/api"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/jsontext"
	"optimist/internal/unit"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// ErrContradiction reports a write that is only to be done where there is no document, and only where there is one. Nothing was sent.
var ErrContradiction = errors.New("a create, or If-None-Match: *, asks that there be no document, and If-Match or a version asks for one")

// ErrTimeout reports that the time which the client gave ended before the write's turn came. Nothing was written.
var ErrTimeout = errors.New("the request's own timeout ended before it could be written")

// LeastPatience is the least time that a write waits for its turn, even with a shorter timeout: the engine, too, takes a timeout of 0
// only as "don't wait for shards", and writes.
const LeastPatience = time.Second

// Terms are what the request of a write says: which document, under which conditions, until when.
type Terms struct {
	Doc      es.Document // decoded
	Name     string      // the index as the client named it, decoded
	OnlyNew  bool        // only where there is no document, by If-None-Match
	Pipeline bool        // the request names an ingest pipeline
	Deadline time.Time   // when the client's own timeout ends; zero if it gave none
	JSON     bool        // the body is a JSON object, or there is none because it is a delete
	Plain    bool        // the answer is JSON with its numbers
	Late     bool        // the engine answers only after a refresh
}

// Read reads a request that began now into the Terms, which are zero but for the names of the document, if they are known. conditions says
// that If-Match and If-None-Match count. The error is the client's to mend.
func (w *Terms) Read(op *api.Op, fields []wire.Field, body []byte, conditions bool, now time.Time) error {
	if err := w.readPath(op); err != nil {
		return err
	}
	if conditions {
		if err := w.readOnlyNew(op, fields); err != nil {
			return err
		}
	}
	w.Plain = wire.AcceptsJSON(fields)
	w.JSON = op.Kind == api.Delete || wire.JSONBody(fields) && jsontext.LooksLikeObject(body)
	return w.readQuery(op.Query, now)
}

func (w *Terms) readPath(op *api.Op) error {
	if w.Doc.Index != "" {
		w.Name = w.Doc.Index
		return nil
	}
	var buf [256]byte
	for _, part := range [3]struct {
		raw  []byte
		into *string
	}{{op.Index, &w.Name}, {op.ID, &w.Doc.ID}, {op.Type, &w.Doc.Type}} {
		if part.into == &w.Doc.Type && !op.Typed {
			break
		}
		b, err := uri.Decode(buf[:0], part.raw)
		if err != nil {
			return err
		}
		*part.into = string(b)
	}
	w.Doc.Index = w.Name
	return nil
}

func (w *Terms) readQuery(q []byte, now time.Time) error {
	if len(q) == 0 {
		return nil
	}
	if v, ok := uri.Param(q, "routing"); ok {
		b, err := uri.DecodeValue(nil, v)
		if err != nil {
			return err
		}
		w.Doc.Routing = string(b)
	}
	if v, ok := uri.Param(q, "pipeline"); ok && string(v) != "_none" {
		w.Pipeline = true
	}
	if v, ok := uri.Param(q, "refresh"); ok && string(v) != "false" {
		w.Late = true
	}
	if v, ok := uri.Param(q, "timeout"); ok {
		// -1 is no bound; what else can't be read, the engine refuses.
		if d, err := unit.ParseDuration(string(v)); err == nil {
			w.Deadline = now.Add(d.Std())
		}
	}
	for _, name := range [2]string{"filter_path", "format"} {
		if _, ok := uri.Param(q, name); ok {
			w.Plain = false
		}
	}
	return nil
}

// readOnlyNew finds out whether the write asks for no document, by If-None-Match: * (RFC 9110, section 13.1.2). A PUT becomes a create. A
// PATCH or an _update makes the document where it may (upsert), by a create, too, so that nobody can come in between; a DELETE finds
// nothing that it could delete. Where there is a document, all of them are the engine's 409 of a create.
//
// Other values of If-None-Match aren't looked at: the engine doesn't either. Together with a guard that asks for a document it can't be
// met; the engine itself says that of a PUT. Neither can a create be with If-Match.
func (w *Terms) readOnlyNew(op *api.Op, fields []wire.Field) error {
	switch op.Kind {
	case api.Index, api.Update, api.Patch, api.Delete:
	default:
		if _, matches, _ := etag.ReadMatch(fields); matches {
			return ErrContradiction
		}
		return nil
	}
	if string(bytes.Trim(wire.Value(fields, "if-none-match"), " \t")) != "*" {
		return nil
	}
	w.OnlyNew = true
	_, guarded, _ := etag.ReadMatch(fields)
	if !guarded && op.Kind != api.Index {
		_, guarded = api.OwnGuard(op.Query)
	}
	if guarded {
		return ErrContradiction
	}
	return nil
}

// DemandsAlias reports whether the request is for an alias only. The engine refuses such a request for an index. But if the request changes
// nothing, optimist doesn't send it.
func DemandsAlias(op *api.Op) bool {
	v, given := uri.Param(op.Query, "require_alias")
	return given && (len(v) == 0 || string(v) == "true")
}

// Within bounds what the write waits for by the client's own timeout. The cause is ErrTimeout then.
func (w *Terms) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.Deadline.IsZero() {
		return ctx, func() {}
	}
	end := w.Deadline
	if least := time.Now().Add(LeastPatience); end.Before(least) {
		end = least
	}
	return context.WithDeadlineCause(ctx, end, ErrTimeout)
}

// Outlive is ctx without its client: the leader's may leave, and the others' changes are still to be written. The time that the
// client gives stays, because changes that share a write have the same.
func Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	stay := wire.WithoutPeer(context.WithoutCancel(ctx))
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadlineCause(stay, end, ErrTimeout)
	}
	return stay, func() {}
}
