package engine

import (
	"context"
	"fmt"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// A gate is a document beside those of the locks, with one field. It has neither owners nor a token, so that no search for locks finds it,
// and is never cleaned up: an index has one.

// gateID is the id of a gate's document.
func gateID(name string) string { return lockrouter.Identity("gate:" + name) }

// Look gives lock documents and gates as they are now.
func (s *Store) Look(ctx context.Context, ids, gates []string) ([]*state.Doc, []lockrouter.Gate, error) {
	all := make([]string, 0, len(ids)+len(gates))
	all = append(all, ids...)
	for _, name := range gates {
		all = append(all, gateID(name))
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	items, err := s.mget(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	docs, err := s.documents(ids, items[:len(ids)])
	if err != nil {
		return nil, nil, err
	}
	found := make([]lockrouter.Gate, len(gates))
	for i, item := range items[len(ids):] {
		if item.Get("found").Bool() {
			n := numbersOf(item)
			found[i] = lockrouter.Gate{State: lockrouter.GateState(item.Get("_source.gate").Str), SeqNo: n.seqNo, Term: n.term}
		}
	}
	return docs, found, nil
}

// Move gives a gate another state, under the guard of the revision that was seen.
func (s *Store) Move(ctx context.Context, name string, seen lockrouter.Gate, to lockrouter.GateState) (lockrouter.Gate, bool, error) {
	if _, err := s.prepare(ctx); err != nil {
		return seen, false, err
	}
	body := jsonBody(map[string]any{"gate": to})
	id := es.Segment(gateID(name))
	var req esapi.Request = esapi.CreateRequest{Index: s.index, DocumentID: id, Body: body}
	if seen.Term > 0 {
		seqNo, term := int(seen.SeqNo), int(seen.Term)
		req = esapi.IndexRequest{Index: s.index, DocumentID: id, IfSeqNo: &seqNo, IfPrimaryTerm: &term, Body: body}
	}
	a, err := s.send(ctx, req)
	switch {
	case err != nil:
		return seen, false, err
	case a.Status == http.StatusConflict:
		return seen, false, nil
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		return seen, false, s.failure(a)
	}
	n := numbersOf(gjson.ParseBytes(a.Body))
	return lockrouter.Gate{State: to, SeqNo: n.seqNo, Term: n.term}, true, nil
}

// Leased gives documents that hold leases, or have changed since that time.
func (s *Store) Leased(ctx context.Context, prefix string, since int64, most int) ([]*state.Doc, error) {
	type object = map[string]any
	hits, err := s.search(ctx, object{"size": most, "query": object{"bool": object{
		"filter":               object{"prefix": object{"lock": prefix}},
		"should":               []object{{"exists": object{"field": "owners"}}, {"range": object{"seen": object{"gte": since}}}},
		"minimum_should_match": 1,
	}}})
	if err != nil {
		return nil, err
	}
	docs := make([]*state.Doc, len(hits))
	for i, hit := range hits {
		if docs[i], err = state.Parse([]byte(hit.Get("_source").Raw)); err != nil {
			return nil, fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
		}
	}
	return docs, nil
}
