package intercept

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/idempotency"
	"optimist/internal/journal"
	"optimist/internal/mark"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/stamp"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// The types of the errors that requests with an Idempotency-Key get.
const (
	typeKeyReused  = "idempotency_key_reused"        // 422: another request has it
	typeKeyInUse   = "idempotency_key_in_use"        // 409: the first request is under way
	typeKeyStore   = "idempotency_store_unavailable" // 503: no record can be made; nothing was done
	typeKeyTooLong = "idempotency_answer_not_kept"   // 409: the request was carried out, and its answer is too large to be kept
)

// keyed is what a request with an Idempotency-Key needs on its way.
type keyed struct {
	claim  *idempotency.Claim // nil: the request has no key
	mark   stamp.ID           // of the marks that it leaves
	failed error              // what the client was told instead of an answer of a write
}

// once carries out a request with an Idempotency-Key, unless it was carried out before: then its client gets the same answer. It reports
// false for requests without a key.
//
//	record made → the request is carried out, and leaves its mark → record completed → the client's answer
//
// A process may end between any two of these. A repeat that finds an incomplete record looks for the mark in the document. Before all that,
// the engine is asked whether it knows the client: for others optimist makes no record.
func (i *Interceptor) once(r *request) bool {
	r.keyed = keyed{}
	op := r.Op()
	if i.Keys == nil || !op.Kind.Write() && op.Kind != api.IndexAuto && op.Kind != api.Bulk || i.Rules.Mode() != rule.Guard {
		return false
	}
	name, found, err := idempotency.ReadKey(r.Head().Fields)
	if !found {
		return false
	}
	if err == nil && (!r.Rewritable() || op.Fragment) {
		err = illegal("a request that is signed, or whose target has a number sign, can't have an Idempotency-Key")
	}
	h := r.Head()
	h.Fields = wire.Without(h.Fields, "accept-encoding") // who repeats the request may ask for another one
	var body []byte
	if err == nil {
		body, _, err = r.Plain(i.MaxBody)
	}
	if err != nil {
		r.Fail(failure(err))
		return true
	}
	i.carryOutOnce(r, i.keyOf(r, name, body).Under(r.tokens).At(r.Place()))
	return true
}

// keyOf is the key with the client, and with all of the request that decides what it does.
func (i *Interceptor) keyOf(r *request, name string, body []byte) idempotency.Key {
	credentials, h := r.Client().Session.Credentials(), r.Head()
	way := r.Way()
	return idempotency.NewKey(credentials[:], name, h.Method, h.Target, h.Get("content-type"), h.Get("if-match"), h.Get("if-none-match"),
		body).By(way[:])
}

func (i *Interceptor) carryOutOnce(r *request, key idempotency.Key) {
	switch refused, err := i.refusal(r.Context(), r); {
	case err != nil:
		i.failKey(r, fmt.Errorf("%w: %w", idempotency.ErrStore, err))
		return
	case refused != nil:
		defer refused.Release()
		i.Metrics.Keys.Inc("refused")
		_ = r.Answer(refused.Status, refused.Fields, refused.Body)
		return
	}
	ctx := wire.WithoutPeer(context.WithoutCancel(r.Context())) // else the record would be unknown
	claim, a, pending, err := i.Keys.Begin(ctx, key)
	switch {
	case err != nil:
		i.failKey(r, err)
		return
	case a != nil:
		i.Metrics.Keys.Inc("repeated")
		_ = r.Answer(a.Status, append(a.Fields, wire.Field{Name: []byte("Optimist-Idempotency"), Value: []byte("repeated")}), a.Body)
		return
	}
	if r.Op().Kind == api.IndexAuto {
		r.nameDocument(claim.DocumentID())
	}
	r.keyed = keyed{claim: claim, mark: mark.IDOf(claim.Use())}
	r.OnAnswer = func(status int, fields []wire.Field, body []byte) (int, []wire.Field, []byte) {
		return i.record(ctx, claim, idempotency.Answer{Status: status, Fields: fields, Body: body})
	}
	if pending {
		i.find(r)
		return
	}
	defer claim.Leave() // whatever happens
	i.Metrics.Keys.Inc("first")
	if !i.dispatch(r) {
		i.forward(r, &substitute{}, nil, nil)
	}
	if r.OnAnswer != nil && r.failed != nil && !errors.Is(r.failed, write.ErrUnknownOutcome) {
		_ = claim.Forget(ctx) // the client left before anything was sent. Else the record stays, and says that nobody knows
	}
}

// nameDocument gives the document that the request makes an id, so that it can't be made twice.
func (r *request) nameDocument(id string) {
	op, h := r.Op(), r.Head()
	query := api.CreateQuery(op.Query)
	h.Method = []byte(http.MethodPut)
	path := append(bytes.Clone(bytes.TrimRight(op.Path, "/")), '/')
	h.Target = append(append(path, id+"?"...), query...)
	api.Parse(h.Method, h.Target, op)
}

// record completes the record with an answer. If the answer says that nothing was done, record removes the record: the client may repeat.
// If the answer says that the outcome is unknown, the record stays as it is.
func (i *Interceptor) record(ctx context.Context, c *idempotency.Claim, a idempotency.Answer) (int, []wire.Field, []byte) {
	switch effectOf(&a) {
	case nothingDone:
		if c.Forget(ctx) != nil {
			i.Metrics.Keys.Inc("unrecorded")
		}
	case carriedOut:
		first, err := c.Complete(ctx, &a)
		if err != nil {
			i.Metrics.Keys.Inc("unrecorded")
		}
		return first.Status, first.Fields, first.Body
	case nobodyKnows:
		c.Leave()
	}
	return a.Status, a.Fields, a.Body
}

// refusedUnsent are the types of the errors by which locks, or the journal of one, refuse a write before it is sent. If an earlier try of
// the write may have been applied, its client gets another error.
var refusedUnsent = []string{"document_locked", "stale_token", "lock_store_unavailable", journal.TypeEnded, journal.TypeFull,
	journal.TypeStore}

// refusedForNow are the types of the errors, all below 500, by which the engine refuses a write, or a read that the write needs (see
// unasked), for what the index is now: closed, or not there.
var refusedForNow = []string{"index_closed_exception", "index_not_found_exception", proxy.TypeAnswer}

// effect is what an answer says of the request.
type effect uint8

const (
	carriedOut effect = iota
	nothingDone
	nobodyKnows
)

func effectOf(a *idempotency.Answer) effect {
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return nothingDone
	}
	if a.Status < http.StatusBadRequest {
		return carriedOut
	}
	errorType := gjson.GetBytes(a.Body, "error.type").Str
	if slices.Contains(refusedUnsent, errorType) {
		return nothingDone
	}
	if a.Status < http.StatusInternalServerError {
		if slices.Contains(refusedForNow, errorType) {
			return nothingDone
		}
		return carriedOut
	}
	kind, _, _ := bytes.Cut(wire.Value(a.Fields, "optimist-outcome"), []byte(";"))
	switch string(kind) {
	case "not_sent", "refused":
		return nothingDone
	case "unknown":
		return nobodyKnows
	}
	switch errorType {
	case proxy.TypeUnreachable, proxy.TypeNoNode, proxy.TypeBusy, proxy.TypeLimited, proxy.TypeTimeout, proxy.TypeOverloaded:
		return nothingDone
	}
	return nobodyKnows
}

// find answers a request that was begun before, and of which nobody has recorded the end: by the mark in its document.
func (i *Interceptor) find(r *request) {
	defer r.claim.Leave()
	defer r.endWrite()
	a, err := i.findMark(r)
	switch {
	case err == nil && a != nil:
		i.Metrics.Keys.Inc("found")
		_ = r.AnswerOwn(a.Status, a.Fields, a.Body)
	case err == nil:
		err = r.claim.Unsettled()
		fallthrough
	default:
		r.OnAnswer = nil // there is nothing to record
		i.failKey(r, err)
	}
}

// findMark is the answer to the request if its mark is in its document. It is nil where there is none, or no mark is left at all.
func (i *Interceptor) findMark(r *request) (*respond.Answer, error) {
	if !r.Op().Kind.Write() {
		return nil, nil
	}
	ru, err := i.taker(r)
	if err != nil || i.Rules.Effective(ru) != rule.Guard || ru.WriteID == "" {
		return nil, err
	}
	if reason, err := i.prepare(r, ru); err != nil || reason != "" {
		return nil, err
	}
	return i.Writes.Find(r.Context(), &r.write)
}

func (i *Interceptor) failKey(r *request, err error) {
	var more []wire.Field
	switch {
	case errors.Is(err, idempotency.ErrUnderWay):
		i.Metrics.Keys.Inc("under_way")
		more = []wire.Field{{Name: []byte("Retry-After"), Value: []byte("1")}}
	case errors.Is(err, idempotency.ErrUnknown):
		i.Metrics.Keys.Inc("unknown")
	case errors.Is(err, idempotency.ErrOther):
		i.Metrics.Keys.Inc("reused")
	case errors.Is(err, idempotency.ErrStore):
		i.Metrics.Keys.Inc("failed")
	}
	r.Fail(failure(err), more...)
}
