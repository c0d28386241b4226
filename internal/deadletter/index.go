package deadletter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/internal/jsontext"
)

// Index keeps letters in an index of the engine, which it makes with the first one. Its requests have optimist's own credentials. For a
// decision it reads a letter by its id; for a list it searches.
//
// The configured name is an alias of the index, and every write requires the alias: so if the index is deleted, the engine doesn't create
// it again without our mapping.
type Index struct {
	o     IndexOptions
	alias string // as a segment of a path

	mu    sync.Mutex // one goroutine makes the index
	ready atomic.Bool
}

// IndexOptions are what an Index needs. Upstream and Name are required.
type IndexOptions struct {
	Upstream es.Doer
	Name     string
	// Timeout bounds one request. Default 5s.
	Timeout time.Duration
}

// NewIndex makes one. Nothing is asked of the engine before its first use.
func NewIndex(o IndexOptions) *Index {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	return &Index{o: o, alias: es.Segment(o.Name)}
}

// generation is the ending of the index's own name.
const generation = "-1"

// settings are the index's. Only what is searched is mapped; the rest is there as it was stored.
const settings = `{"settings":{"index":{"number_of_shards":1,"auto_expand_replicas":"0-1","hidden":true}},` +
	`"aliases":{"%s":{"is_hidden":true}},` +
	`"mappings":{"dynamic":false,"_meta":{"optimist":{"format":%d}},"properties":{"id":{"type":"keyword"},"at":{"type":"date"},` +
	`"rule":{"type":"keyword"},"reason":{"type":"keyword"},"index":{"type":"keyword"},"document":{"type":"keyword"},` +
	`"state":{"type":"keyword"}}}}`

// prepare makes the index, if it isn't there. After the first success it costs nothing.
func (x *Index) prepare(ctx context.Context) error {
	if x.ready.Load() {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ready.Load() {
		return nil
	}
	for range 2 { // again if another proxy has made the index in between
		a, err := x.ask(ctx, esapi.IndicesGetMappingRequest{Index: []string{x.alias}}, true)
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusOK:
			if _, err := es.OwnMeta(a.Body, "an index of dead letters", format); err != nil {
				return fmt.Errorf("%w: %s %w", ErrStore, x.o.Name, err)
			}
			x.ready.Store(true)
			return nil
		case !a.IsMissing():
			return failure(a)
		}
		body := fmt.Sprintf(settings, x.o.Name, format)
		a, err = x.ask(ctx, esapi.IndicesCreateRequest{Index: es.Segment(x.o.Name + generation), Body: strings.NewReader(body)}, false)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrAway, err) // no letter was sent
		case a.Status != http.StatusOK && gjson.GetBytes(a.Body, "error.type").Str != "resource_already_exists_exception":
			return failure(a)
		}
	}
	return fmt.Errorf("%w: the index %s%s is there, and isn't %s", ErrStore, x.o.Name, generation, x.o.Name)
}

// ask makes one request with optimist's own credentials. What isn't answered is ErrAway for a read and for what wasn't sent, and
// ErrUnsure for a change.
func (x *Index) ask(ctx context.Context, req esapi.Request, reads bool) (es.Answer, error) {
	a, err := es.Ask(ctx, x.o.Upstream, req, es.Way{Caller: es.Caller{Own: true}, Reads: reads, Timeout: x.o.Timeout})
	switch {
	case err == nil:
		return a, nil
	case reads, es.IsUnsent(err):
		return a, fmt.Errorf("%w: %w", ErrAway, err)
	}
	return a, fmt.Errorf("%w: %w", ErrUnsure, err)
}

// failure is an answer to a request which says that nothing was done, but for one above 499: that may come after the primary has
// written.
func failure(a es.Answer) error {
	text := fmt.Sprintf("the engine answered %d: %.300s", a.Status, a.Body)
	switch {
	case a.Status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", ErrAway, text)
	case a.Status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s", ErrUnsure, text)
	case a.RefusesCredentials():
		return fmt.Errorf("%w: the credentials of upstream.auth need all rights to its index: %s", ErrStore, text)
	}
	return fmt.Errorf("%w: %s", ErrStore, text)
}

// onIndex does what needs the index, which it makes; once more where it turns out that somebody has deleted that.
func (x *Index) onIndex(ctx context.Context, do func() (es.Answer, error)) (a es.Answer, err error) {
	for range 2 {
		if err := x.prepare(ctx); err != nil {
			return a, err
		}
		a, err = do()
		if err != nil || !a.IsNoIndex() {
			return a, err
		}
		x.ready.Store(false)
	}
	return a, err
}

// Put implements Store.
func (x *Index) Put(ctx context.Context, l *Letter, in Revision) (Revision, error) {
	text, err := jsontext.Marshal(l)
	if err != nil {
		return Revision{}, fmt.Errorf("%w: %w", ErrStore, err)
	}
	a, err := x.onIndex(ctx, func() (es.Answer, error) {
		req := esapi.IndexRequest{Index: x.alias, DocumentID: l.ID, Body: bytes.NewReader(text), RequireAlias: new(true)}
		if in == (Revision{}) {
			req.OpType = "create"
		} else {
			req.IfSeqNo, req.IfPrimaryTerm = new(int(in.n)), new(int(in.term))
		}
		return x.ask(ctx, req, false)
	})
	switch {
	case err != nil:
		return Revision{}, err
	case a.Status == http.StatusConflict && in != Revision{}:
		return Revision{}, x.goneOrTaken(ctx, l.ID)
	case a.Status == http.StatusConflict:
		return Revision{}, ErrTaken
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		return Revision{}, failure(a)
	}
	return revisionOf(gjson.ParseBytes(a.Body)), nil
}

// goneOrTaken tells why a guarded write was a conflict.
func (x *Index) goneOrTaken(ctx context.Context, id string) error {
	if _, _, err := x.Get(ctx, id); errors.Is(err, ErrNoLetter) {
		return err
	}
	return ErrTaken
}

func revisionOf(doc gjson.Result) Revision {
	return Revision{n: doc.Get("_seq_no").Int(), term: doc.Get("_primary_term").Int()}
}

// Get implements Store.
func (x *Index) Get(ctx context.Context, id string) (*Letter, Revision, error) {
	a, err := x.ask(ctx, esapi.GetRequest{Index: x.alias, DocumentID: es.Segment(id)}, true)
	switch {
	case err != nil:
		return nil, Revision{}, err
	case a.IsMissing():
		return nil, Revision{}, ErrNoLetter
	case a.Status != http.StatusOK:
		return nil, Revision{}, readFailure(a)
	}
	doc := gjson.ParseBytes(a.Body)
	return decodeAs(id, []byte(doc.Get("_source").Raw)), revisionOf(doc), nil
}

// readFailure is an answer to a read that isn't the one that was asked for.
func readFailure(a es.Answer) error {
	if a.Status >= http.StatusInternalServerError {
		return fmt.Errorf("%w: the engine answered %d: %.300s", ErrAway, a.Status, a.Body)
	}
	return failure(a)
}

// List implements Store. Its result includes letters that were stored a moment ago.
func (x *Index) List(ctx context.Context, q *Query) ([]*Letter, error) {
	switch a, err := x.ask(ctx, esapi.IndicesRefreshRequest{Index: []string{x.alias}}, true); {
	case err != nil:
		return nil, err
	case a.IsMissing():
		return nil, nil
	case a.Status != http.StatusOK:
		return nil, readFailure(a)
	}
	body, err := json.Marshal(search(q))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	a, err := x.ask(ctx, esapi.SearchRequest{Index: []string{x.alias}, Body: bytes.NewReader(body)}, true)
	switch {
	case err != nil:
		return nil, err
	case a.Status != http.StatusOK:
		return nil, readFailure(a)
	}
	var found []*Letter
	for _, hit := range gjson.GetBytes(a.Body, "hits.hits").Array() {
		found = append(found, decodeAs(hit.Get("_id").Str, []byte(hit.Get("_source").Raw)))
	}
	return found, nil
}

// search is the search that a query means.
func search(q *Query) map[string]any {
	type object = map[string]any
	filter := []object{{"range": object{"id": object{"gt": q.from()}}}}
	for _, one := range [...][2]string{{"rule", q.Rule}, {"index", q.Index}, {"document", q.Document}, {"reason", q.Reason},
		{"state", string(q.State)}} {
		if one[1] != "" {
			filter = append(filter, object{"term": object{one[0]: one[1]}})
		}
	}
	if !q.Before.IsZero() {
		filter = append(filter, object{"range": object{"id": object{"lt": idAt(q.Before)}}})
	}
	return object{"size": q.size(), "query": object{"bool": object{"filter": filter}}, "sort": []object{{"id": "asc"}},
		"track_total_hits": false, "_source": object{"excludes": []string{"request.body", "base.view", "base.stored"}}}
}

// Delete implements Store.
func (x *Index) Delete(ctx context.Context, id string, at Revision) error {
	req := esapi.DeleteRequest{Index: x.alias, DocumentID: es.Segment(id), IfSeqNo: new(int(at.n)), IfPrimaryTerm: new(int(at.term))}
	a, err := x.ask(ctx, req, false)
	switch {
	case err != nil:
		return err
	case a.Status == http.StatusConflict:
		return x.goneOrTaken(ctx, id)
	case a.IsMissing():
		return ErrNoLetter
	case a.Status != http.StatusOK:
		return failure(a)
	}
	return nil
}
