package intercept

import (
	"errors"
	"net/http"
	"slices"

	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/idempotency"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/undo"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// fail answers a write for which package write has an error: with the outcome, where there is one.
func fail(r *request, err error) {
	r.failed = err
	var more []wire.Field
	if f, ok := errors.AsType[*outcome.Failure](err); ok {
		more = append(more, outcomeField(&f.Outcome))
	}
	r.Fail(failure(err), more...)
}

// meanings are what errors of a write, and of its Idempotency-Key, mean to the client. The first one that fits counts.
var meanings = []struct {
	err    error
	status int
	kind   string
}{
	{idempotency.ErrBadKey, http.StatusBadRequest, typeIllegal},
	{idempotency.ErrOther, http.StatusUnprocessableEntity, typeKeyReused},
	{idempotency.ErrUnderWay, http.StatusConflict, typeKeyInUse},
	{idempotency.ErrTooLong, http.StatusConflict, typeKeyTooLong},
	{idempotency.ErrUnknown, http.StatusGatewayTimeout, proxy.TypeUnknown},
	{idempotency.ErrStore, http.StatusServiceUnavailable, typeKeyStore},
	{write.ErrUnknownOutcome, http.StatusGatewayTimeout, proxy.TypeUnknown},
	{intake.ErrTimeout, http.StatusServiceUnavailable, "timeout_exception"},
	{base.ErrPreconditionRequired, http.StatusPreconditionRequired, "precondition_required"},
	{base.ErrLost, http.StatusConflict, typeConflict},
	{base.ErrAmbiguous, http.StatusConflict, typeConflict},
	{base.ErrNoMatch, http.StatusConflict, typeConflict},
	{etag.ErrBad, http.StatusBadRequest, typeIllegal},
	{intake.ErrContradiction, http.StatusBadRequest, typeIllegal},
}

// The types of the engine's own errors.
const (
	typeIllegal  = "illegal_argument_exception"
	typeConflict = "version_conflict_engine_exception"
)

// failure gives this package's meaning to an error. Errors without one are the door's own.
func failure(err error) error {
	if f, ok := errors.AsType[*outcome.Failure](err); ok {
		err = f.Err
	}
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			return &proxy.Failure{Status: m.status, Type: m.kind, Reason: err.Error()}
		}
	}
	switch {
	case errors.As(err, new(*undo.RefusedError)), errors.As(err, new(*uri.EscapeError)):
		return illegal(err.Error())
	case errors.Is(err, doc.ErrNotWritten):
		return unasked(err)
	}
	return err
}

// illegal is the engine's error for a request that asks for something that can't be done.
func illegal(reason string) error {
	return &proxy.Failure{Status: http.StatusBadRequest, Type: typeIllegal, Reason: reason}
}

// refusedReads are the statuses by which the engine refuses a read; of a closed index it is a 400. Any other one may be somebody else's,
// such as a gateway's login page, and a 200 would say that something was written.
var refusedReads = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
	http.StatusServiceUnavailable}

// unasked is the failure of a write that wasn't sent, because the engine couldn't be asked what had to be known before: what was
// lost is the answer to a read.
func unasked(err error) error {
	refusal, refused := errors.AsType[*es.StatusError](err)
	switch {
	case refused && slices.Contains(refusedReads, refusal.Status):
		return &proxy.Failure{Status: refusal.Status, Type: proxy.TypeAnswer, Reason: err.Error(), Fields: refusal.Challenge}
	case errors.Is(err, catalog.ErrTooLong):
		return &proxy.Failure{Status: 400, Type: "invalid_index_name_exception", Reason: err.Error()}
	case errors.Is(err, base.ErrMoved):
		return &proxy.Failure{Status: 503, Type: "unavailable_shards_exception", Reason: err.Error()}
	case refused, errors.Is(err, es.ErrNoSource):
		return &proxy.Failure{Status: 502, Type: proxy.TypeAnswer, Reason: err.Error()}
	}
	if f := proxy.FailureOf(err, true); f != nil {
		return f
	}
	return err
}
