package write

import (
	"context"

	"optimist/internal/es"
	"optimist/internal/session"
)

// Describe tells which index a name (decoded) stands for in a write, as far as the caller may know and it has been asked within the last
// minute. ok is false where it can't be told which index that is: an index that isn't there, credentials that may not ask, an engine that
// doesn't answer.
func (s *Service) Describe(ctx context.Context, sess session.Session, who es.Caller, name string) (ix es.Index, ok bool) {
	ix, reason, err := s.gates.describe(ctx, &Request{Session: sess, Caller: who}, name)
	return ix, err == nil && reason == "" && ix.UUID != ""
}
