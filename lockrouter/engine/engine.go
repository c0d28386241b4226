// Package engine keeps lock documents in an index of the engine: one document a lock, changed by one atomic step, a script where
// the engine has them, else a write under the guard of the revision that it was made from.
//
// It doesn't try again if an outcome is unknown, and keeps no order among calls: its caller does. Its promises end if the index
// is deleted, or if the engine's clock goes back by more than a lock document is kept.
package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/es"
	"optimist/lockrouter"
	"optimist/retry"
)

// Scripts says whether the engine's scripts are used.
type Scripts uint8

// The ways. Auto finds out by trying one.
const (
	Auto Scripts = iota
	Always
	Never
)

var (
	// ErrFormat reports an index that this program can't use: it has a newer format, it isn't a lock index, or its leases are judged in a
	// way that isn't possible here. It wraps lockrouter.ErrStore.
	ErrFormat = fmt.Errorf("%w: the index of the locks can't be used", lockrouter.ErrStore)

	errConflict = errors.New("too many others change the same lock document")
	errNoIndex  = fmt.Errorf("%w: the index of the locks isn't there", lockrouter.ErrStore)
)

// Options are what a Store needs; Upstream and Index are required.
type Options struct {
	Upstream es.Doer
	Index    string
	Scripts  Scripts
	// InMemory says that the engine is this process's own. It runs no scripts and has no templates, so the Store asks for neither. No
	// other proxy uses it.
	InMemory bool
	// Timeout bounds one request. Default 5s.
	Timeout time.Duration
	// Log is told how leases are judged, and what the engine answers instead of what was asked for. Nil: nobody.
	Log *slog.Logger
	// Skew is added to the clock that decides. It is for tests, which offset the clocks of proxies by it.
	Skew time.Duration
}

// Store is a lockrouter.Store. It is safe for concurrent use; make it with New.
type Store struct {
	o      Options
	index  string    // as a segment of a path
	epoch  time.Time // of monotonic time
	source string    // the script, as it is sent

	mu     sync.Mutex   // one goroutine makes the index
	method atomic.Int32 // found out by prepare
	before int32        // what it was when the index was deleted

	known  *revisions // where leases are judged by what was seen
	recent *recent    // where the engine's clock judges them
	failed es.OwnErrors
}

// How a call is carried out; 0 is not known yet.
const (
	byScript int32 = iota + 1
	byGuard
)

const defaultTimeout = 5 * time.Second

// New makes a Store. The index is made by the first call.
func New(o Options) *Store {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.InMemory && o.Scripts == Auto {
		o.Scripts = Never
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Store{o: o, index: es.Segment(o.Index), epoch: time.Now(), source: script(), known: newRevisions(), recent: newRecent(),
		failed: es.OwnErrors{Log: o.Log}}
}

// Timed reports whether the engine's clock judges leases. Before the engine was asked it is true.
func (s *Store) Timed() bool { return s.method.Load() != byGuard }

// monotonic is ms of this process's own clock.
func (s *Store) monotonic() int64 { return time.Since(s.epoch).Milliseconds() }

// send makes one request with optimist's own credentials. Every failure is an ErrStore.
func (s *Store) send(ctx context.Context, req esapi.Request) (es.Answer, error) {
	return s.ask(ctx, req, false)
}

// read is send for a request that changes nothing, whatever its method: after a lost answer it is sent once more.
func (s *Store) read(ctx context.Context, req esapi.Request) (es.Answer, error) {
	return s.ask(ctx, req, true)
}

func (s *Store) ask(ctx context.Context, req esapi.Request, reads bool) (es.Answer, error) {
	a, err := es.Ask(ctx, s.o.Upstream, req, es.Way{Caller: es.Caller{Own: true}, Reads: reads, Timeout: s.o.Timeout})
	if err != nil {
		err = fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
		if reads || es.IsUnsent(err) {
			err = lockrouter.NotDone(err)
		}
		return a, err
	}
	return a, nil
}

// jsonBody is the body of a request. What is passed always has a form in JSON: strings, numbers, and maps and lists of them.
func jsonBody(v any) io.Reader {
	body, _ := json.Marshal(v)
	return bytes.NewReader(body)
}

// failure is an answer that isn't the one that was asked for. An engine that refuses a request (4xx) has done nothing. A server before it
// that answers 408 may have sent the request on.
func (s *Store) failure(a es.Answer) error {
	if a.IsNoIndex() {
		return lockrouter.NotDone(errNoIndex)
	}
	err := fmt.Errorf("%w: %s", lockrouter.ErrStore, s.failed.Note(s.o.Index, a))
	if a.Status/100 == 4 && a.Status != http.StatusRequestTimeout {
		return lockrouter.NotDone(err)
	}
	return err
}

// contention bounds the attempts at a document that others change at the same time.
var contention = retry.Policy{MaxAttempts: 60, BaseInterval: 500 * time.Microsecond, MaxInterval: 20 * time.Millisecond}

// contend makes attempts until no other write has come in between. Every failure is an ErrStore.
func contend(ctx context.Context, attempt func(ctx context.Context, n int) error) error {
	err := retry.Do(ctx, contention, attempt)
	var exhausted *retry.ExhaustedError
	switch {
	case errors.As(err, &exhausted):
		return lockrouter.NotDone(fmt.Errorf("%w: %w", lockrouter.ErrStore, errConflict))
	case err == nil || errors.Is(err, lockrouter.ErrStore):
		return err
	}
	return fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
}
