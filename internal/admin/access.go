package admin

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"optimist/internal/obs"
)

var bearer = []byte("bearer ")

// trusts reports whether a request comes from an operator.
func (a *Access) trusts(ctx *fasthttp.RequestCtx) bool { return !a.asks() || a.vouches(ctx) }

// vouches reports whether a request has the token, or comes with a certificate.
func (a *Access) vouches(ctx *fasthttp.RequestCtx) bool {
	if a.Certificates {
		if state := ctx.TLSConnectionState(); state != nil && len(state.VerifiedChains) > 0 {
			return true
		}
	}
	field := ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)
	if a.Token == nil || len(field) < len(bearer) || !bytes.EqualFold(field[:len(bearer)], bearer) {
		return false
	}
	return a.Token.Matches(field[len(bearer):])
}

// refuse answers a request that nobody vouches for.
func (s *Server) refuse(ctx *fasthttp.RequestCtx) {
	if n, tell := s.refused.Count(); tell {
		s.o.Log.Warn("admin listener: request without token refused", obs.KeyCount, n, obs.KeyPath, string(ctx.Path()), obs.KeyClient,
			ctx.RemoteAddr().String())
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	fail(ctx, fasthttp.StatusUnauthorized, "unauthorized",
		"this needs the token of admin_token_file (Authorization: Bearer …; --admin-token-file), or a certificate of admin_tls.client_ca_file")
}
