package engine

import (
	"context"
	"fmt"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/lockrouter"
)

// template makes an index template for the locks' index. Without it, an index that the engine has created again doesn't say how leases are
// judged, and its documents can't be found. Locks work without it, and Clean finds out such an index.
func (s *Store) template(ctx context.Context, clock string) error {
	if s.o.InMemory {
		return nil
	}
	a, err := s.send(ctx, es.OwnTemplate(s.o.Index, fmt.Sprintf(settings, format, clock)))
	switch {
	case err != nil:
		return err
	case a.Status == http.StatusOK:
		return nil
	case a.LacksTemplates():
		s.o.Log.Warn("there is no index template for the locks: before you delete their index, stop all proxies", "index", s.o.Index,
			obs.KeyReason, es.Why(a))
		return nil
	}
	return s.failure(a) // one of another clock may be there: the index must not be used before it is known that it isn't
}

// gone has the next call make the index again, where the engine doesn't by itself. Leases go on being judged as they were.
func (s *Store) gone() {
	s.known.purge()
	s.recent.purge()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.method.Swap(0); m != 0 {
		s.before = m
		s.o.Log.Warn("the index of the locks was deleted: it is created again, and all locks are free", "index", s.o.Index)
	}
}

// sound reports whether the index is still the one for locks: without a template an engine makes another one by itself.
func (s *Store) sound(ctx context.Context) error {
	a, err := s.read(ctx, esapi.IndicesGetMappingRequest{Index: []string{s.index}})
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return s.failure(a)
	}
	if _, err = s.meta(a.Body); err != nil {
		return fmt.Errorf("%w; it was deleted while proxies ran. Stop all of them, and delete it again: %w", lockrouter.ErrStore, err)
	}
	return nil
}
