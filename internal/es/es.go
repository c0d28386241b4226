// Package es asks the engine optimist's own questions: the current revision of a document, what an index is, and whether a
// client's view of it is whole.
//
// It never writes a client's document and never tries anything twice; every call is one exchange on the caller's behalf.
package es

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

var (
	// ErrForbidden reports that the caller may not do this: 401, or a 403 that isn't the block of an index.
	ErrForbidden = errors.New("the engine refused the credentials")

	// ErrNoIndex reports that there is no such index: the engine says so. A 404 alone may be a gateway's. Nothing is known of the index.
	ErrNoIndex = errors.New("no such index")

	// ErrNoSource reports a document whose _source the engine doesn't give whole: it can't be merged.
	ErrNoSource = errors.New("the document has no _source")

	// ErrAnothers reports an answer that is about another document than the request: something between optimist and the engine mixes up the
	// answers.
	ErrAnothers = errors.New("the answer is about another document")

	// ErrElsewhere reports that the document's name stands for another index than the one that the document is of.
	ErrElsewhere = errors.New("the name stands for another index")
)

// StatusError reports an answer of the engine that isn't what was asked for.
type StatusError struct {
	Status    int
	Body      []byte
	Challenge []wire.Field // of a 401: how the caller can say who it is
}

// Error names the status and the start of the body.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the engine answered %d: %.200s", e.Status, e.Body)
}

// Doer sends one request to the engine and gives its whole answer, or says how far it came.
type Doer interface {
	Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error)
}

// Caller is on whose behalf a call is made. A gateway in front of the engine may choose the tenant, or the cluster, by any field of a
// request: so a call carries all of the client's, but for those that are about the client's own message (wire.IsOwn).
type Caller struct {
	Fields []wire.Field // the end-to-end fields of the client's request
	Params []byte       // the query parameters by which it says who asks, or for whom, as they stand there
	Client share.Client // whose places it takes
	Own    bool         // with optimist's own credentials in place of the client's
}

// appendFields appends the fields that a call carries.
func (caller *Caller) appendFields(dst []wire.Field) []wire.Field {
	for _, f := range caller.Fields {
		if !wire.IsOwn(f.Name) && !wire.IsForOptimist(f.Name) && !(caller.Own && wire.IsCredential(f.Name)) {
			dst = append(dst, f)
		}
	}
	return dst
}

// target is the call's target, with the client's parameters. Credentials among these go only where the client's own fields go.
func (caller *Caller) target(path string) []byte {
	params := caller.Params
	if caller.Own {
		params = withoutSecrets(params)
	}
	return uri.WithParams([]byte(path), params)
}

// withoutSecrets are parameters without those that are credentials.
func withoutSecrets(params []byte) []byte {
	return uri.Select(params, func(name []byte) bool { return !wire.IsSecretParameter(name) })
}

// patience bounds one call, whatever else bounds its context. The engine itself gives up after a minute.
const patience = 2 * time.Minute

// Client makes the calls. It is safe for concurrent use.
type Client struct {
	Upstream Doer
	// StreamAliases reports whether anybody needs the aliases of data streams, which cost another request. Nil: nobody does.
	StreamAliases func() bool

	typed   atomic.Bool
	untyped atomic.Bool // it was seen that there are no types
}

// Typed reports whether the engine's answers name a document's mapping type, as far as is known: those of Elasticsearch 6 and 7 do.
func (c *Client) Typed() bool { return c.typed.Load() }

// Untyped reports whether the engine is known to have no mapping types.
func (c *Client) Untyped() bool { return c.untyped.Load() && !c.Typed() }

// LearnTypes learns from the engine's answer to GET / whether it has mapping types.
func (c *Client) LearnTypes(root []byte) {
	v := gjson.GetManyBytes(root, "version.number", "version.distribution")
	major, _, _ := strings.Cut(v[0].String(), ".")
	n, err := strconv.Atoi(major)
	if err == nil {
		c.learnTypes(v[1].String() == "opensearch" && n < 2 || v[1].String() == "" && n < 8)
	}
}

func (c *Client) learnTypes(typed bool) {
	switch {
	case typed && !c.typed.Load():
		c.typed.Store(true)
	case !typed && !c.untyped.Load():
		c.untyped.Store(true)
	}
}

// Document says where a document is: names decoded. Type is the mapping type of a typed path (Elasticsearch 6), else empty.
type Document struct {
	doc.Ref
	Type string
	// Name is the name by which the document is read, which must stand for Index. Empty: it is read by Index, or Index isn't known.
	Name string
}

// asked is the name by which the document is read.
func (d *Document) asked() string { return cmp.Or(d.Name, d.Index) }

// isElsewhere reports whether an answer is of another index than the document's.
func (d *Document) isElsewhere(it *Item) bool { return d.Name != "" && it.IsElsewhere(d.Index, "") }

// Fetch reads the document's current revision in real time, that is from the primary's or a replica's live version, not from the
// last refresh. The revision's source is the caller's own. Errors: doc.ErrMissing, ErrNoIndex, ErrElsewhere, ErrNoSource (with the
// numbers, if there are any), ErrForbidden, *StatusError, and those of the upstream.
func (c *Client) Fetch(ctx context.Context, caller Caller, d Document) (doc.Revision, error) {
	req := esapi.GetRequest{Index: Segment(d.asked()), DocumentID: Segment(d.ID), Routing: d.Routing, Source: []string{"true"}}
	a, err := c.do(ctx, caller, req)
	if err != nil {
		return doc.Revision{}, err
	}
	it := ParseItem(a.Body)
	switch {
	case it.IsElsewhere("", d.ID):
		return doc.Revision{}, ErrAnothers
	case d.isElsewhere(&it):
		return doc.Revision{}, ErrElsewhere
	case a.Status == http.StatusNotFound && it.Missing:
		return doc.Revision{}, doc.ErrMissing
	case a.Status != http.StatusOK:
		return doc.Revision{}, a.failure()
	}
	return c.found(&it)
}

// found is a document that the engine shows.
func (c *Client) found(it *Item) (doc.Revision, error) {
	c.learnTypes(it.typed)
	if !it.Numbered || it.Source == nil {
		return it.Revision, ErrNoSource
	}
	return it.Revision, nil
}

// do sends a request of the library's on the caller's behalf.
func (c *Client) do(ctx context.Context, caller Caller, req esapi.Request) (Answer, error) {
	return c.doAt(ctx, caller, "", req)
}

// doAt is do at the node, if it is alive; any node's if none is named.
func (c *Client) doAt(ctx context.Context, caller Caller, node string, req esapi.Request) (Answer, error) {
	return ask(ctx, c.Upstream, req, Way{Caller: caller, Node: node, Timeout: patience})
}

// IsAnswer reports whether an error of this package is the engine's answer to the question, rather than that it couldn't be asked
// now: it can't be reached, or is too busy, or has no master.
func IsAnswer(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && s.Status < 500 && s.Status != http.StatusTooManyRequests
}

// IsBlocked reports whether an error of this package says that the index is blocked or closed now: that tells nothing of the caller's
// credentials.
func IsBlocked(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && takesNoWrites(s.Body)
}

// IsPage reports whether an error of this package is an answer that isn't the engine's: a gateway's page, say, while its backend is away.
// The engine says of a 404 what it doesn't find, and answers a question with JSON.
func IsPage(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && !errors.Is(err, ErrNoIndex) && (s.Status == http.StatusNotFound || s.Status < 400)
}

// IsStranger reports whether an error of this package says that the engine doesn't know the caller's credentials.
func IsStranger(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && s.Status == http.StatusUnauthorized
}

// RefusesCredentials reports whether the engine refuses a request for who asks. A 403 may also be the block of an index.
func (a *Answer) RefusesCredentials() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden && !takesNoWrites(a.Body)
}

// failure is the answer as an error.
func (a *Answer) failure() error {
	err := &StatusError{a.Status, a.Body, a.Challenge}
	switch {
	case a.RefusesCredentials():
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case a.IsNoIndex():
		return fmt.Errorf("%w: %w", ErrNoIndex, err)
	}
	return err
}
