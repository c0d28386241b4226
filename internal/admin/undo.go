package admin

import (
	"bytes"
	"net/http"

	"github.com/valyala/fasthttp"
)

// Under undoPath are the journals of locks with undo: the list, and the writes of each lock by its path on the data port
// (/_optimist/undo/_lock/global/nightly).
const undoPath = "/_optimist/undo"

func (s *Server) undoEndpoint(path []byte) (endpoint, bool) {
	rest, ok := bytes.CutPrefix(path, []byte(undoPath))
	if !ok || s.o.Undo == nil || len(rest) > 0 && (rest[0] != '/' || len(rest) == 1) {
		return endpoint{}, false
	}
	return endpoint{handle: s.undo, guarded: true}, true
}

// undo has the journals' own code answer. The path is taken as it was sent: an encoded slash in a lock's name stays one.
func (s *Server) undo(ctx *fasthttp.RequestCtx) {
	path, _, _ := bytes.Cut(ctx.Request.Header.RequestURI(), []byte("?"))
	lock, ok := bytes.CutPrefix(path, []byte(undoPath))
	if !ok { // it is written in another way, with dots or doubled slashes
		fail(ctx, http.StatusBadRequest, "invalid_request", "the path has to begin with "+undoPath)
		return
	}
	status, body := s.o.Undo(ctx, &UndoRequest{Lock: lock, Query: parameters(ctx)})
	answer(ctx, status, body)
}

// parameters are those of the query, decoded. Of one that is there several times, the last counts.
func parameters(ctx *fasthttp.RequestCtx) map[string]string {
	all := map[string]string{}
	for name, value := range ctx.QueryArgs().All() {
		all[string(name)] = string(value)
	}
	return all
}
