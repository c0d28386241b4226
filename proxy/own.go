package proxy

import (
	"context"
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// AnswerOwn is Answer for an answer that doesn't come from the engine. It adds the field by which clients recognise their
// engine, if this engine sends it. An error is counted by its type, which must be one of a closed set.
func (x *Exchange) AnswerOwn(status int, fields []wire.Field, body []byte) error {
	if status >= http.StatusBadRequest && !x.hasAnswer {
		if t := gjson.GetBytes(body, "error.type"); t.Type == gjson.String {
			x.c.server.metrics.Failed(t.Str)
		}
	}
	return x.Answer(status, x.withProduct(fields), body)
}

// LearnProduct remembers from an answer of the engine whether the engine names its product. Optimist's own answers name it, too, then: the
// engine's clients refuse answers without it. An answer that didn't go through the door counts as well, because the first answer that a
// client gets may be optimist's own.
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

// Fail answers with the error's status in the engine's shape: see FailureOf. The extra fields stand behind the answer's own. A
// client that left gets no answer. An answer that had begun is broken off.
func (x *Exchange) Fail(err error, extra ...wire.Field) {
	if x.hasAnswer {
		x.broken = true
		return
	}
	f := FailureOf(err, x.isRead())
	if f == nil && errors.Is(context.Cause(x.c.ctx), ErrStopped) {
		f = FailureOf(stopped(err), x.isRead())
	}
	if f == nil {
		x.broken = true
		return
	}
	failure := *f
	allNodesDown(&failure, x.c.server.upstream.Nodes())
	fields := append([]wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}, extra...)
	fields = append(fields, failure.Fields...)
	if failure.Type == TypeOverloaded || failure.Type == TypeLimited {
		fields = append(fields, wire.Field{Name: []byte("Retry-After"), Value: []byte(retryAfter)})
	}
	_ = x.AnswerOwn(failure.Status, fields, failure.Append(nil))
}

// stopped is the error of a request whose context has ended because the Server was closed. Whoever only looked whether the context has
// ended takes that for a client that left, and this one waits for its answer.
func stopped(err error) error {
	var up *upstream.Error
	if !errors.As(err, &up) {
		return ErrStopped
	}
	e := *up
	e.Err = ErrStopped
	return &e
}

// The field by which Elasticsearch's own clients know it, and refuse answers without it.
const (
	productField = "X-elastic-product"
	productName  = "Elasticsearch"
)

// retryAfter is after how many seconds a client may find the memory, or the turn, that it didn't find: most requests take less than one.
const retryAfter = "1"
