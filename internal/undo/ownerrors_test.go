package undo_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// TestClientsDoNotSeeWhatTheEngineSaysToOptimist: the engine's reason names the user that optimist is, and the privileges that it lacks. It
// comes in answers, and in the items of answers.
func TestClientsDoNotSeeWhatTheEngineSaysToOptimist(t *testing.T) {
	const failed = `"error":{"type":"security_exception","reason":"no permissions for [User [name=proxy7]]"}`
	read, written := `{"docs":[{"_id":"x",`+failed+`}]}`, `{"errors":true,"items":[{"index":{"_id":"1","status":429,`+failed+`}}]}`
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Token: 7}
	open := func(ctx context.Context, s *undo.Store) error { return s.Open(ctx, []undo.Lock{lock}) }
	rollback := func(ctx context.Context, s *undo.Store) error { _, err := s.Rollback(ctx, 7); return err }
	for _, c := range []struct {
		name   string
		target string // the start of the request's target
		status int
		body   string
		of     func(context.Context, *undo.Store) error
		log    string
	}{
		{"a record that can't be read", "/undo/_mget", 200, read, open, "index=undo"},
		{"a record that can't be written", "/undo/_bulk", 200, written, open, "index=undo"},
		{"a document that can't be read", "/_mget", 200, read, rollback, "index=docs"},
		{"no document can be read", "/_mget", 403, `{` + failed + `}`, rollback, "index=docs"},
		{"an index that can't be asked for", "/docs?", 500, `{` + failed + `}`, rollback, "index=docs"},
		{"a document that can't be written now", "/_bulk", 200, written, rollback, "index=docs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, log, met := enginetest.New(), new(bytes.Buffer), false
			s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Grace: time.Millisecond,
				Log: slog.New(slog.NewTextHandler(log, nil))})
			if strings.HasPrefix(c.log, "index=docs") {
				noted(t, s, e)
				e.Put(t, "/docs/_doc/1", `{"n":9}`)
			}
			e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
				if strings.HasPrefix(string(r.Target), c.target) {
					met = true
					return enginetest.Response(c.status, c.body), nil
				}
				return nil, nil
			}
			err := c.of(t.Context(), s)
			if !met || !errors.Is(err, undo.ErrStore) || strings.Contains(err.Error(), "proxy7") ||
				!strings.HasSuffix(err.Error(), " security_exception") {
				t.Errorf("asked: %v; the client gets: %v", met, err)
			}
			if !strings.Contains(log.String(), "proxy7") || !strings.Contains(log.String(), c.log) {
				t.Errorf("the log has: %s", log)
			}
		})
	}
}
