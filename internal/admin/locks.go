package admin

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// Under locksPath are the locks: the list, each by its path on the data port (/_optimist/locks/_lock/global/nightly), and the release of
// all that an owner holds.
const (
	locksPath   = "/_optimist/locks"
	releasePath = locksPath + "/_release"
)

func (s *Server) lockEndpoint(path []byte) (endpoint, bool) {
	switch rest, ok := bytes.CutPrefix(path, []byte(locksPath)); {
	case !ok || s.o.Locks == nil:
		return endpoint{}, false
	case len(rest) == 0:
		return endpoint{handle: s.locks, guarded: true}, true
	case string(path) == releasePath:
		return endpoint{put: s.locks, change: fasthttp.MethodPost}, true
	case rest[0] == '/' && len(rest) > 1:
		return endpoint{handle: s.locks, put: s.locks, change: fasthttp.MethodDelete, guarded: true}, true
	}
	return endpoint{}, false
}

// locks has the locks' own code answer. The path is taken as it was sent: an encoded slash in a lock's name stays one.
func (s *Server) locks(ctx *fasthttp.RequestCtx) {
	path, query, _ := bytes.Cut(ctx.Request.Header.RequestURI(), []byte("?"))
	path, ok := bytes.CutPrefix(path, []byte(locksPath))
	if !ok { // it is written in another way, with dots or doubled slashes
		fail(ctx, fasthttp.StatusBadRequest, "invalid_request", "the path has to begin with "+locksPath)
		return
	}
	method := string(ctx.Method())
	if ctx.IsHead() {
		method = fasthttp.MethodGet
	}
	status, body, err := s.o.Locks(ctx, method, path, query, ctx.PostBody())
	if err != nil {
		fail(ctx, fasthttp.StatusServiceUnavailable, "unavailable", err.Error())
		return
	}
	raw(ctx, status, body)
}
