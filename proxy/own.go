package proxy

import "optimist/internal/wire"

// AnswerOwn is Answer for an answer that doesn't come from the engine. It adds the field by which clients recognise their
// engine, if this engine sends it.
func (x *Exchange) AnswerOwn(status int, fields []wire.Field, body []byte) error {
	return x.Answer(status, x.withProduct(fields), body)
}

// LearnProduct remembers from an answer of the engine whether the engine names its product. The proxy's own answers name it, too, then: the
// engine's clients refuse answers without it. An answer that didn't go through the door counts as well, because the first answer that a
// client gets may be the proxy's own.
func (s *Server) LearnProduct(h *wire.Head) {
	if !s.product.Load() && string(h.Get(productField)) == productName {
		s.product.Store(true)
	}
}

// withProduct adds the field with the engine's product, if the engine sends it.
func (x *Exchange) withProduct(fields []wire.Field) []wire.Field {
	if !x.c.server.product.Load() {
		return fields
	}
	return append(fields[:len(fields):len(fields)], wire.Field{Name: []byte(productField), Value: []byte(productName)})
}
