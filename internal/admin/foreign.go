package admin

import (
	"fmt"
	"mime"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// foreign says why a request may come from a page of another site in somebody's browser, or "" if it can't. Such a page can
// send requests to addresses that only the operator reaches. If its site's name gets this listener's address (DNS rebinding), the requests
// look like those to its own site. But the page can't have the browser leave out Origin on a change, or send a Host that isn't its site's
// name. changes says that the request changes something.
//
// A request with the token, or a client's certificate, may come under any name: a service of a cluster, for example. A page can't add the
// token. It can't use the certificate under its own name, either: browsers refuse this listener's certificate for that name.
//
// Programs (curl, `optimist mode`) send no Origin. Without token and certificate, their Host is an address or localhost.
func (s *Server) foreign(ctx *fasthttp.RequestCtx, changes bool) string {
	if uri := ctx.Request.Header.RequestURI(); len(uri) == 0 || uri[0] != '/' {
		return "the request target must be a path" // a full URL has a host of its own, which isn't where the page comes from
	}
	host := string(ctx.Host())
	if !s.ownHost(host) && !s.o.Access.vouches(ctx) {
		return fmt.Sprintf("this listener doesn't know itself by the name %q; use an address or localhost, or set admin_token_file", hostOf(host))
	}
	switch site := string(ctx.Request.Header.Peek("Sec-Fetch-Site")); site {
	case "", "none", "same-origin":
	default:
		return "a page of another site sent this"
	}
	if origin := string(ctx.Request.Header.Peek("Origin")); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != host {
			return "a page of another site sent this"
		}
	}
	if !changes {
		return ""
	}
	// forms can only send three types, none of them this one
	kind, _, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType()))
	if err != nil || kind != "application/json" {
		return "a change needs Content-Type: application/json"
	}
	return ""
}

// ownHost reports whether a Host header is one that no other site's page can have: an address, localhost, or a configured
// name.
func (s *Server) ownHost(host string) bool {
	name := hostOf(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return strings.EqualFold(name, "localhost") || s.hosts[strings.ToLower(name)]
}

// hostOf is a Host header without port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
