package proxy

import "optimist/internal/wire"

// AnswerOwn is Answer for what the proxy says in the engine's place: it adds the field by which the engine's clients know their
// engine, if this one sends it.
func (x *Exchange) AnswerOwn(status int, fields []wire.Field, body []byte) error {
	return x.Answer(status, x.signed(fields), body)
}

// Learn takes note of who the engine says it is, from an answer that didn't go through the door: the first thing that a client is told may
// be the proxy's own.
func (s *Server) Learn(h *wire.Head) {
	if string(h.Get(productField)) == productName {
		s.product.Store(true)
	}
}

// signed adds the engine's product field, if it has one.
func (x *Exchange) signed(fields []wire.Field) []wire.Field {
	if !x.c.server.product.Load() {
		return fields
	}
	return append(fields[:len(fields):len(fields)], wire.Field{Name: []byte(productField), Value: []byte(productName)})
}
