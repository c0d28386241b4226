package es

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/obs"
	"optimist/internal/share"
	"optimist/internal/upstream"
)

// OwnIndex is an index in which optimist keeps records of its own. Its first user creates it. Its fields are set before its first use;
// then it is safe for concurrent use.
type OwnIndex struct {
	Upstream Doer
	Caller   Caller        // by whose credentials everything is asked
	Timeout  time.Duration // of one request
	Name     string        // as it is configured: of the index, or of an alias
	Made     string        // the name of the index that is made
	Settings string        // the body of the request that makes it
	Is       string        // what it is, as OwnMeta says that
	Format   int64         // the newest that this program knows
	Template bool          // for an index that the engine may create again by itself: see OwnTemplate
	Err      error         // every error of the methods is one
	Errors   OwnErrors

	mu    sync.Mutex // one goroutine makes the index
	there atomic.Bool
}

// IsThere reports whether the index is known to be there.
func (x *OwnIndex) IsThere() bool { return x.there.Load() }

// Forget has the next Prepare look for the index: somebody has deleted it.
func (x *OwnIndex) Forget() { x.there.Store(false) }

// Prepare makes the index, if it isn't there. After the first success it costs nothing.
func (x *OwnIndex) Prepare(ctx context.Context) error {
	if x.IsThere() {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.IsThere() {
		return nil
	}
	for range 2 { // again if another proxy has made the index in between
		a, err := x.Ask(ctx, esapi.IndicesGetMappingRequest{Index: []string{Segment(x.Name)}}, true)
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusOK:
			if _, err := OwnMeta(a.Body, x.Is, x.Format); err != nil {
				return fmt.Errorf("%w: %s %w", x.Err, x.Name, err)
			}
			x.makeTemplate(ctx)
			x.there.Store(true)
			return nil
		case !a.IsMissing():
			return x.Failure(a)
		}
		a, err = x.Ask(ctx, esapi.IndicesCreateRequest{Index: Segment(x.Made), Body: strings.NewReader(x.Settings)}, false)
		switch {
		case IsLost(err): // it is looked for again
		case err != nil:
			return err
		case a.Status != http.StatusOK && gjson.GetBytes(a.Body, "error.type").Str != "resource_already_exists_exception":
			return x.Failure(a)
		}
	}
	return fmt.Errorf("%w: the index %s isn't there", x.Err, x.Name)
}

// makeTemplate makes the template. The index can be used without it, too.
func (x *OwnIndex) makeTemplate(ctx context.Context) {
	if !x.Template {
		return
	}
	a, err := x.Ask(ctx, OwnTemplate(x.Made, x.Settings), false)
	reason := Why(a)
	switch {
	case err != nil:
		reason = err.Error()
	case a.Status == http.StatusOK:
		return
	}
	x.Errors.Log.Warn("there is no index template for an index of optimist's own: before you delete the index, stop all proxies",
		obs.KeyIndex, x.Name, obs.KeyReason, reason)
}

// Ask makes one request of optimist's own. reads says that it changes nothing.
func (x *OwnIndex) Ask(ctx context.Context, req esapi.Request, reads bool) (Answer, error) {
	return x.AskFor(ctx, x.Caller.Client, req, reads)
}

// AskFor is Ask for a request that a client causes, and whose places it takes.
func (x *OwnIndex) AskFor(ctx context.Context, client share.Client, req esapi.Request, reads bool) (Answer, error) {
	by := x.Caller
	by.Client = client
	a, err := Ask(ctx, x.Upstream, req, Way{Caller: by, Reads: reads, Timeout: x.Timeout})
	if err != nil {
		return a, fmt.Errorf("%w: %w", x.Err, err)
	}
	return a, nil
}

// Failure is the error of an answer that isn't a success.
func (x *OwnIndex) Failure(a Answer) error { return x.FailureAt(x.Name, a) }

// FailureAt is Failure for a request about another index.
func (x *OwnIndex) FailureAt(index string, a Answer) error {
	return fmt.Errorf("%w: %s", x.Err, x.Errors.Note(index, a))
}

// ErrorOf is the error of a request with an unexpected answer.
func (x *OwnIndex) ErrorOf(a Answer, err error) error {
	if err != nil {
		return err
	}
	return x.Failure(a)
}

// IsLost reports whether a request was sent, and its answer didn't come.
func IsLost(err error) bool {
	var failed *upstream.Error
	return errors.As(err, &failed) && failed.Sent
}

// IsUnsent reports whether nothing of a request was sent.
func IsUnsent(err error) bool {
	var failed *upstream.Error
	return errors.Is(err, upstream.NotSent) || errors.As(err, &failed) && !failed.Sent
}
