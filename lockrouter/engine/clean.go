package engine

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/obs"
	"optimist/internal/timer"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

//go:embed clean.painless
var cleanScript string

// KeepAge is how long a lock's document is kept after its last token was given: by as much the clock may go back without a token that was
// given before.
const KeepAge = 24 * time.Hour

// CleanEvery removes idle documents until ctx ends, once in that time. Every proxy does; what one has removed the next doesn't find.
func (s *Store) CleanEvery(ctx context.Context, every time.Duration) {
	timer.Every(ctx, every, func(ctx context.Context) {
		if s.method.Load() == 0 {
			return // nobody has asked for a lock here: the index may not be there, and isn't made for this
		}
		switch n, err := s.Clean(ctx, KeepAge); {
		case err != nil && ctx.Err() == nil:
			s.o.Log.Warn("idle locks weren't cleaned up", obs.KeyError, err.Error())
		case n > 0:
			s.o.Log.Info("idle locks were cleaned up", obs.KeyCount, n)
		}
	})
}

// Clean removes documents of idle locks: nobody holds them or waits for them, and their last token is older than age. It returns how
// many. If a client takes one meanwhile, it stays: Clean checks each again when it removes it.
func (s *Store) Clean(ctx context.Context, age time.Duration) (removed int, err error) {
	method, err := s.prepare(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.sound(ctx); err != nil {
		return 0, err
	}
	before := time.Now().Add(s.o.Skew).UnixMilli() - age.Milliseconds()
	if err := s.lapse(ctx, before); err != nil {
		return 0, err
	}
	last := before * perMs
	for {
		idle, err := s.idle(ctx, last)
		if err != nil || len(idle) == 0 {
			return removed, err
		}
		n, err := s.remove(ctx, idle, method, age)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

// lapse takes away leases that have ended in documents that nobody has changed since before: whoever asks for a lock does that, and nobody
// may ever ask for that of a holder that has died. A call without operations is judged as any other is.
func (s *Store) lapse(ctx context.Context, before int64) error {
	type object = map[string]any
	for after := ""; ; {
		hits, err := s.search(ctx, object{"size": maxBulk, "sort": []object{{"lock": "asc"}}, "query": object{"bool": object{"filter": []object{
			{"exists": object{"field": "owners"}}, {"range": object{"seen": object{"lt": before}}}, {"range": object{"lock": object{"gt": after}}},
		}}}})
		if err != nil || len(hits) == 0 {
			return err
		}
		var calls []lockrouter.Change
		for _, hit := range hits {
			d, err := state.Parse([]byte(hit.Get("_source").Raw))
			if err != nil {
				return fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
			}
			after = d.Lock
			calls = append(calls, lockrouter.Change{ID: hit.Get("_id").Str, Call: d.Lapse()})
		}
		for _, done := range s.Do(ctx, calls) {
			if done.Err != nil {
				return done.Err
			}
		}
		if len(hits) < maxBulk {
			return nil
		}
	}
}

const perMs = 1024 // of tokens

// idle finds candidates. It may find what isn't idle any more.
func (s *Store) idle(ctx context.Context, last int64) ([]gjson.Result, error) {
	type object = map[string]any
	return s.search(ctx, object{"size": maxBulk, "seq_no_primary_term": true, "query": object{"bool": object{
		"filter":   object{"range": object{"last": object{"lt": last}}},
		"must_not": object{"exists": object{"field": "owners"}},
	}}})
}

// remove deletes what is still idle: by the script, or under the guard of the revision that was found.
func (s *Store) remove(ctx context.Context, idle []gjson.Result, method int32, age time.Duration) (removed int, err error) {
	var b bytes.Buffer
	sent := 0
	for _, hit := range idle {
		id := hit.Get("_id").Str
		if method == byScript {
			script, err := json.Marshal(map[string]any{"script": map[string]any{"lang": "painless", "source": cleanScript,
				"params": map[string]any{"age": age.Milliseconds()}}})
			if err != nil {
				return 0, err
			}
			action(&b, "update", id, "")
			b.Write(append(script, '\n'))
			sent++
			continue
		}
		d, err := state.Parse([]byte(hit.Get("_source").Raw))
		if err != nil || len(d.Holds) > 0 || len(d.Queue) > 0 {
			continue // an entry of the queue goes with the next call, or never matters
		}
		n := numbersOf(hit)
		action(&b, "delete", id, fmt.Sprintf(`,"if_seq_no":%d,"if_primary_term":%d`, n.seqNo, n.term))
		sent++
	}
	if sent == 0 {
		return 0, nil
	}
	items, err := s.bulk(ctx, b.Bytes(), sent)
	for _, item := range items {
		if item.Get("result").Str == "deleted" {
			s.known.forget(item.Get("_id").Str)
			removed++
		}
	}
	return removed, err
}
