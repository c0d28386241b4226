package write

import (
	"context"
	"time"

	"optimist/internal/es"
	"optimist/internal/session"
)

// Resolve tells which index a name (decoded) stands for in a write, and the data stream that it backs, if any, as far as the caller may
// know; else the name itself. It asks the engine where that isn't known. The error says that the engine couldn't be asked.
func (s *Service) Resolve(ctx context.Context, sess session.Session, who es.Caller, name string) (concrete, stream string, err error) {
	if concrete, stream, ok := s.Known(sess, name); ok {
		return concrete, stream, nil
	}
	ix, _, err := s.gates.describe(ctx, &Request{Session: sess, Caller: who}, name)
	return ix.Name, ix.DataStream, err
}

// Known is Resolve as far as it can be told without asking anybody, or waiting for somebody who asks.
func (s *Service) Known(sess session.Session, name string) (concrete, stream string, ok bool) {
	x, found := s.gates.names.Get(gateKey{name, sess.Credentials()})
	if !found {
		return "", "", false
	}
	m := x.name.Load()
	if !m.believed(time.Now()) {
		return "", "", false
	}
	return m.index.Name, m.index.DataStream, true
}
