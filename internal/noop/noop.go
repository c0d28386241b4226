// Package noop asks the engine for its own answer to an update that changes nothing: the noop, in the form that a client asks
// for, or the error for a missing document.
//
// It changes no document. If the engine gives no such answer, the caller makes one.
package noop

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/outbound"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/uri"
)

// missing is the type of the engine's error for a document that isn't there.
const missing = "document_missing_exception"

// Asker asks the engine.
type Asker struct{ delivery.Sender }

// Case is the write whose client is to have the answer.
type Case struct {
	*base.Search
	Out   *outbound.Template
	Patch *patch.Request // nil: it is no patch
}

// Missing is the answer to a patch of a document that isn't there: the engine's own, to an _update of it, with an index's id
// and a shard's number that only the engine knows. Where the document is there by now, or the engine can't say, the answer is made here.
// noIndex says that the index isn't there, either.
func (a Asker) Missing(ctx context.Context, w *Case, noIndex bool) *respond.Answer {
	if noIndex && w.Op.Kind == api.Patch {
		return respond.NoSuchIndex(w.Name, "")
	}
	if res := a.update(ctx, w, nil, http.StatusNotFound); res != nil {
		if res.Status == http.StatusBadRequest || ack.Why(res.Fields, res.Body).Type == missing {
			return res
		}
		res.Release()
	}
	return respond.ErrorIn(w.Doc.Index, http.StatusNotFound, "document_missing_exception", "["+w.Doc.ID+"]: document missing")
}

// Reroutes reports whether the engine has refused the write under the guard n (zero: as a create) though its document is as the guard says:
// an ingest pipeline takes it elsewhere, and the guard is checked there. It asks by an update that changes nothing, under the same guard.
// No pipeline runs over that, and the shard's primary answers. It doesn't ask for a client that demands its guard.
//
// A document that has the numbers of the guard had them before, too. One that is missing may have been there at the time of the conflict,
// and have been deleted since. So the conflict must name another document: without a guard, the write would erase what comes next.
func (a Asker) Reroutes(ctx context.Context, w *Case, n doc.Numbers, conflict *respond.Answer) bool {
	demanded := w.Outcome.Base == outcome.BaseExplicit || w.Outcome.Base == outcome.BaseIfMatch
	if piped := w.Pipeline || w.Index.Pipeline || w.Index.Unknown != ""; !piped || demanded || w.Patch != nil || w.Op.Kind == api.Delete {
		return false
	}
	var guard []byte
	want := http.StatusNotFound
	if n.Known() {
		guard, want = outbound.AppendGuard(nil, n), http.StatusOK
	}
	res := a.update(ctx, w, guard, want)
	if res == nil {
		return false
	}
	defer res.Release()
	if n.Known() {
		return res.Status == want
	}
	none, met := ack.Why(res.Fields, res.Body), ack.Why(conflict.Fields, conflict.Body)
	elsewhere := met.Index != none.Index || met.Shard != none.Shard && met.Shard != "" ||
		!strings.HasPrefix(met.Reason, "["+w.Doc.ID+"]: ") // a reason begins with the document's id
	return none.Type == missing && met.Reason != "" && elsewhere
}

// Unchanged is the noop for a client that wants its answer in a special form (filter_path, pretty, another format than JSON), with the
// part of the document that a patch is to show, or whose request has a parameter that optimist doesn't know. It is the engine's answer to
// an update that changes nothing, under the guard of the revision n, or its refusal of the request (400). It is nil if the client wants
// the plain form, which the caller makes, or if the engine gives no such answer now: the plain form is then better than none.
func (a Asker) Unchanged(ctx context.Context, w *Case, n doc.Numbers) *respond.Answer {
	form := uri.Select(w.Out.Query, func(name []byte) bool {
		_, ofClient := uri.Param(w.Caller.Params, string(name))
		return !ofClient && !slices.Contains(understood, string(name))
	})
	if len(form) == 0 && w.Plain {
		return nil
	}
	params := append(outbound.AppendGuard(nil, n), '&')
	params = append(params, form...)
	if p := w.Patch; p != nil && p.Shows.Shows() {
		params = append(append(params, '&'), uri.Only(nil, w.Op.Query, respond.SourceParams...)...)
	}
	return a.update(ctx, w, params, http.StatusOK)
}

// understood are the parameters that change nothing of the plain form. The engine refuses a request with others that it doesn't know.
var understood = append([]string{"refresh", "timeout", "wait_for_active_shards", "routing", "require_alias", "require_data_stream",
	"op_type", "pipeline", "retry_on_conflict", "upsert", "doc_as_upsert", "if_seq_no", "if_primary_term", "version", "version_type"},
	respond.SourceParams...)

// update asks the engine for its answer to an update of the write's document that changes nothing. Nil is one of another status than want,
// unless the engine refuses the request (400).
func (a Asker) update(ctx context.Context, w *Case, params []byte, want int) *respond.Answer {
	body := []byte(`{"doc":{}}`)
	if p := w.Patch; p != nil && p.SourceInBody != nil {
		body = fmt.Appendf(nil, `{"doc":{},"_source":%s}`, p.SourceInBody)
	}
	r := w.Out.Update(body, w.Caller.Params, params)
	r.Repeatable = want == http.StatusOK
	res, err := a.Send(ctx, r)
	if err != nil {
		return nil
	}
	if res.Status != want && res.Status != http.StatusBadRequest {
		res.Release()
		return nil
	}
	return respond.FromEngine(res)
}
