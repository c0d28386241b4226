// Package admin is the listener for operators: health, readiness, metrics, the mode, the configuration in force, profiles.
//
// On a loopback address it asks for no credentials, unless there is a token or an authority of clients' certificates: see Access.
// A web page that an operator has open can't change anything through it. It shows the names of indices, fields and documents that
// clients of the data port sent, but no values, with two exceptions: a dead letter is shown whole, and documents of a journal on
// demand.
package admin

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"optimist/internal/obs"
)

// New makes a server that listens nowhere yet.
func New(o Options) *Server {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{
		o:        o,
		profiles: fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index),
		started:  time.Now(),
		hosts:    map[string]bool{},
	}
	for _, h := range o.Hosts {
		s.hosts[strings.ToLower(h)] = true
	}
	s.paths = s.endpoints()
	s.http = &fasthttp.Server{
		Handler:               s.handle,
		NoDefaultServerHeader: true,
		ReadTimeout:           10 * time.Second,
		IdleTimeout:           2 * time.Minute,
		MaxRequestBodySize:    64 << 10,
		Concurrency:           2 * maxConns, // the gate keeps to maxConns
		CloseOnShutdown:       true,
		Logger:                quiet{o.Log},
		SecureErrorLogMessage: true, // else errors quote heads, with the tokens in them
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			fail(ctx, fasthttp.StatusBadRequest, "invalid_request", err.Error())
		},
	}
	return s
}

// quiet is fasthttp's logger: what it says is about single clients, and worth no more than debug.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("admin listener: "+format, "args", args)
}

// Serve serves the listener until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	return s.http.Serve(&gatedListener{Listener: l, of: map[string]int{}})
}

// Shutdown closes the listener and waits for requests under way, until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }

var pprofPrefix = []byte("/debug/pprof")

func (s *Server) endpoints() map[string]endpoint {
	return map[string]endpoint{
		"/":                      {handle: s.index},
		"/_optimist":             {handle: s.index},
		"/_optimist/health":      {handle: s.health, open: true},
		"/_optimist/ready":       {handle: s.ready, open: true},
		"/_optimist/version":     {handle: s.version},
		"/_optimist/mode":        {handle: s.mode, put: s.setMode, change: fasthttp.MethodPut},
		"/_optimist/config":      {handle: s.config, guarded: true},
		"/_optimist/hot":         {handle: s.hot, guarded: true},
		"/_optimist/suggestions": {handle: s.suggestions, guarded: true},
		"/metrics":               {handle: fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{}))},
	}
}

func (s *Server) endpoint(path []byte) (endpoint, bool) {
	if e, ok := s.paths[string(path)]; ok {
		return e, true
	}
	if rest, ok := bytes.CutPrefix(path, pprofPrefix); ok && (len(rest) == 0 || rest[0] == '/') {
		return endpoint{handle: s.profile, guarded: true}, true
	}
	if e, ok := s.letterEndpoint(path); ok {
		return e, true
	}
	if e, ok := s.undoEndpoint(path); ok {
		return e, true
	}
	return s.lockEndpoint(path)
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	e, ok := s.endpoint(ctx.Path())
	if !e.open && !s.o.Access.trusts(ctx) {
		s.refuse(ctx)
		return
	}
	if !ok {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "there is nothing here; GET / lists what there is")
		return
	}
	read := ctx.IsGet() || ctx.IsHead()
	if read && e.handle == nil || !read && string(ctx.Method()) != e.change {
		allow := e.change
		if e.handle != nil {
			allow = strings.TrimSuffix("GET, HEAD, "+e.change, ", ")
		}
		ctx.Response.Header.Set("Allow", allow)
		fail(ctx, fasthttp.StatusMethodNotAllowed, "method_not_allowed", "allowed here: "+allow)
		return
	}
	if !read || e.guarded {
		if reason := s.foreign(ctx, !read); reason != "" {
			if n, tell := s.strange.Count(); tell {
				s.o.Log.Warn("admin listener: request of another site refused", obs.KeyCount, n, obs.KeyPath, string(ctx.Path()),
					obs.KeyReason, reason, obs.KeyClient, ctx.RemoteAddr().String())
			}
			fail(ctx, fasthttp.StatusForbidden, "foreign_request", reason)
			return
		}
	}
	ctx.Response.Header.Set("Cache-Control", "no-store")
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	if read {
		e.handle(ctx)
	} else {
		e.put(ctx)
	}
}

// profile serves /debug/pprof. The index links relatively, so its address must end in a slash, which the handler of the rest
// doesn't know.
func (s *Server) profile(ctx *fasthttp.RequestCtx) {
	if !s.o.Access.asks() {
		fail(ctx, fasthttp.StatusForbidden, "profiles_off", "profiles are served only with admin_token_file or admin_tls.client_ca_file")
		return
	}
	switch string(ctx.Path()) {
	case "/debug/pprof":
		ctx.Response.Header.Set("Location", "/debug/pprof/")
		ctx.SetStatusCode(fasthttp.StatusMovedPermanently)
	case "/debug/pprof/":
		s.profiles(ctx)
	default:
		pprofhandler.PprofHandler(ctx)
	}
}
