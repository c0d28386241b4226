package intercept

import (
	"errors"
	"net/http"
	"slices"

	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/undo"
	"optimist/internal/uri"
	"optimist/internal/write"
	"optimist/proxy"
)

// fail answers a write for which package write has an error: with the outcome, where there is one.
func fail(r *request, err error) {
	r.failed = err
	var f *outcome.Failure
	if errors.As(err, &f) {
		r.Fail(failure(err), outcomeField(&f.Outcome))
		return
	}
	r.Fail(failure(err))
}

// failure gives this package's meaning to the errors of a write. Other errors are the door's own.
func failure(err error) error {
	var f *outcome.Failure
	if errors.As(err, &f) {
		err = f.Err
	}
	switch {
	case errors.Is(err, write.ErrUnknownOutcome):
		return &proxy.Failure{Status: 504, Type: proxy.TypeUnknown, Reason: err.Error()}
	case errors.As(err, new(*undo.RefusedError)):
		return &proxy.Failure{Status: 400, Type: "illegal_argument_exception", Reason: err.Error()}
	case errors.Is(err, intake.ErrTimeout):
		return &proxy.Failure{Status: 503, Type: "timeout_exception", Reason: err.Error()}
	case errors.Is(err, write.ErrNotWritten):
		return unasked(err)
	case errors.Is(err, base.ErrPreconditionRequired):
		return &proxy.Failure{Status: 428, Type: "precondition_required", Reason: err.Error()}
	case errors.Is(err, base.ErrLost), errors.Is(err, base.ErrAmbiguous), errors.Is(err, base.ErrNoMatch):
		return &proxy.Failure{Status: 409, Type: "version_conflict_engine_exception", Reason: err.Error()}
	case errors.Is(err, etag.ErrBad), errors.Is(err, intake.ErrContradiction), errors.As(err, new(*uri.EscapeError)):
		return &proxy.Failure{Status: 400, Type: "illegal_argument_exception", Reason: err.Error()}
	}
	return err
}

// refusedReads are the statuses by which the engine refuses a read; of a closed index it is a 400. Any other one may be somebody else's,
// such as a gateway's login page, and a 200 would say that something was written.
var refusedReads = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
	http.StatusServiceUnavailable}

// unasked is the failure of a write that wasn't sent, because the engine couldn't be asked what had to be known before: what was
// lost is the answer to a read.
func unasked(err error) error {
	var refusal *es.StatusError
	switch {
	case errors.As(err, &refusal) && slices.Contains(refusedReads, refusal.Status):
		return &proxy.Failure{Status: refusal.Status, Type: proxy.TypeAnswer, Reason: err.Error(), Fields: refusal.Challenge}
	case errors.Is(err, catalog.ErrTooLong):
		return &proxy.Failure{Status: 400, Type: "invalid_index_name_exception", Reason: err.Error()}
	case errors.Is(err, base.ErrMoved):
		return &proxy.Failure{Status: 503, Type: "unavailable_shards_exception", Reason: err.Error()}
	case refusal != nil, errors.Is(err, es.ErrNoSource):
		return &proxy.Failure{Status: 502, Type: proxy.TypeAnswer, Reason: err.Error()}
	}
	if f := proxy.FailureOf(err, true); f != nil {
		return f
	}
	return err
}
