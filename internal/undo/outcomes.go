package undo

import (
	"context"
	"errors"
	"sync"

	"optimist/internal/doc"
)

// The outcomes of noted writes. A journal's pages store them, because any process may have to roll the writes back.

// Applied records that a noted write was applied, and which revision it made (zero: not known). The journal's next page stores this, and
// Applied doesn't wait for that page. If no further write is noted, a sweep stores it.
func (j *Journal) Applied(at Place, made doc.Revision) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acked = append(j.acked, acked{at, made.Numbers, made.Version})
}

// Wrote records who has written a document, and the revision that the write made (zero: not known). Options.Undone gets both.
func (j *Journal) Wrote(by any, ref doc.Ref, n doc.Numbers) {
	if j.s.o.Undone == nil {
		return
	}
	w := writer{by, ref.Clone()}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.wrote == nil {
		j.wrote = map[writer]doc.Numbers{}
	}
	j.wrote[w] = n
}

// Failed records that a noted write was not applied, and never will be. Unlike Applied, it returns once this is stored. If it can't be
// stored, Failed returns the error, and the journal's next page stores it.
func (j *Journal) Failed(ctx context.Context, at Place) error { return j.store(ctx, at) }

// store stores that noted writes were not applied, and with that all other outcomes that aren't stored yet.
func (j *Journal) store(ctx context.Context, failed ...Place) error {
	e := &entry{empty: true, done: make(chan error, 1)}
	j.mu.Lock()
	if j.failed = append(j.failed, failed...); len(j.failed)+len(j.acked) == 0 {
		j.mu.Unlock()
		return nil
	}
	j.waiting = append(j.waiting, e)
	j.start(ctx)
	j.mu.Unlock()
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Flush stores the outcomes of writes that only this process knows. Call it before the process ends, when no write is under way any more.
// Otherwise another process's rollback has to infer from the documents which writes were applied.
func (s *Store) Flush(ctx context.Context) error {
	return s.flush(ctx, func(*Journal) bool { return true })
}

// flush is Flush for some journals.
func (s *Store) flush(ctx context.Context, which func(*Journal) bool) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for j := range s.distinct() {
		if !which(j) {
			continue
		}
		all.Go(func() {
			if err := j.store(ctx); err != nil && !errors.Is(err, ErrEnded) {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
