package admin

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// Under lettersPath are the dead letters: the list, each by its id, its replay, and what is done to all that a filter means.
const (
	lettersPath = "/_optimist/dead-letters"
	replay      = "/_replay"
	remove      = "/_delete"
)

// AuthorizationField has the credentials by which the writes of dead letters are made again: the value of the Authorization that the
// engine gets. The listener's own Authorization has its token.
const AuthorizationField = "Optimist-Authorization"

func (s *Server) letterEndpoint(path []byte) (endpoint, bool) {
	rest, ok := bytes.CutPrefix(path, []byte(lettersPath))
	if !ok || s.o.Letters == nil {
		return endpoint{}, false
	}
	switch id, do, deeper := bytes.Cut(bytes.TrimPrefix(rest, []byte("/")), []byte("/")); {
	case len(rest) == 0:
		return endpoint{handle: s.letters, guarded: true}, true
	case rest[0] != '/' || len(id) == 0:
		return endpoint{}, false
	case !deeper && (string(rest) == replay || string(rest) == remove):
		return endpoint{put: s.letters, change: fasthttp.MethodPost}, true
	case !deeper:
		return endpoint{handle: s.letters, put: s.letters, change: fasthttp.MethodDelete, guarded: true}, true
	case "/"+string(do) == replay:
		return endpoint{put: s.letters, change: fasthttp.MethodPost}, true
	}
	return endpoint{}, false
}

func (s *Server) letters(ctx *fasthttp.RequestCtx) {
	method := string(ctx.Method())
	if ctx.IsHead() {
		method = fasthttp.MethodGet
	}
	status, body := s.o.Letters(ctx, &LettersRequest{
		Method: method, Path: string(bytes.TrimPrefix(ctx.Path(), []byte(lettersPath))), Body: ctx.PostBody(),
		Query: parameters(ctx), Authorization: string(ctx.Request.Header.Peek(AuthorizationField)),
	})
	answer(ctx, status, body)
}
