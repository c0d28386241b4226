// Package admin is the listener for those who run optimist: health, readiness, metrics, the mode, the configuration in force,
// profiles.
//
// It asks for no credentials: it is meant for a loopback address, or a network that only operators reach. What it promises
// is that a web page that an operator happens to have open can't change anything through it. It holds nothing that clients of
// the data port sent.
package admin

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"optimist/internal/hook"
	"optimist/internal/obs"
	"optimist/internal/rule"
)

// Switch is the mode of the whole; *rule.Switch is one.
type Switch interface {
	Mode() rule.Mode
	SetMode(rule.Mode) (before rule.Mode)
}

// Node is what is told of a node of the engine.
type Node struct {
	URL   string `json:"url"`
	Alive bool   `json:"alive"`
	Error string `json:"error,omitempty"` // why it isn't alive
}

// Locks answers a request for locks as the data port does, in the operator's name: it sees tokens, and may release what others
// hold.
type Locks func(ctx context.Context, method string, path, query, body []byte) (status int, answer []byte, err error)

// Options are what the listener tells and changes. All but Hosts, Log, Locks and Changed are required. Its functions are called
// from many goroutines.
type Options struct {
	Build   obs.Build
	Metrics prometheus.Gatherer
	Switch  Switch
	Config  func() ([]byte, error) // the configuration in force, as JSON, without secrets
	Nodes   func() []Node
	Ready   func() error          // nil if requests can be served; else why not
	Changed hook.Func1[rule.Mode] // called with a changed mode, after it is in force
	Locks   Locks                 // nil: there are none
	Hosts   []string              // names by which the listener may be reached, beyond addresses and localhost
	Log     *slog.Logger
}

// Server serves the admin listener. Make it with New.
type Server struct {
	o        Options
	http     *fasthttp.Server
	metrics  fasthttp.RequestHandler
	profiles fasthttp.RequestHandler
	started  time.Time
	hosts    map[string]bool
}

// New makes a server that listens nowhere yet.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		o:        o,
		metrics:  fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{})),
		profiles: fasthttpadaptor.NewFastHTTPHandlerFunc(pprof.Index),
		started:  time.Now(),
		hosts:    map[string]bool{},
	}
	for _, h := range o.Hosts {
		s.hosts[strings.ToLower(h)] = true
	}
	s.http = &fasthttp.Server{
		Handler:               s.handle,
		NoDefaultServerHeader: true,
		ReadTimeout:           10 * time.Second,
		IdleTimeout:           2 * time.Minute,
		MaxRequestBodySize:    64 << 10,
		Concurrency:           1024,
		CloseOnShutdown:       true,
		Logger:                quiet{o.Log},
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
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// Shutdown closes the listener and waits for requests under way, until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }

var pprofPrefix = []byte("/debug/pprof")

// endpoint is one path: who answers it, and what it takes.
type endpoint struct {
	handle  fasthttp.RequestHandler
	put     fasthttp.RequestHandler // nil: it can't be changed
	method  string                  // of a change; empty: PUT
	guarded bool                    // not for pages of other sites, not even to read
}

// change is the method that put is for.
func (e *endpoint) change() string {
	switch {
	case e.put == nil:
		return ""
	case e.method == "":
		return fasthttp.MethodPut
	}
	return e.method
}

func (s *Server) endpoint(path []byte) (endpoint, bool) {
	switch string(path) {
	case "/", "/_optimist":
		return endpoint{handle: s.index}, true
	case "/_optimist/health":
		return endpoint{handle: s.health}, true
	case "/_optimist/ready":
		return endpoint{handle: s.ready}, true
	case "/_optimist/version":
		return endpoint{handle: s.version}, true
	case "/_optimist/mode":
		return endpoint{handle: s.mode, put: s.setMode}, true
	case "/_optimist/config":
		return endpoint{handle: s.config, guarded: true}, true
	case "/metrics":
		return endpoint{handle: s.metrics}, true
	}
	if e, ok := s.lockEndpoint(path); ok {
		return e, true
	}
	if rest, ok := bytes.CutPrefix(path, pprofPrefix); ok && (len(rest) == 0 || rest[0] == '/') {
		return endpoint{handle: s.profile, guarded: true}, true
	}
	return endpoint{}, false
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	e, ok := s.endpoint(ctx.Path())
	if !ok {
		fail(ctx, fasthttp.StatusNotFound, "not_found", "there is nothing here; GET / lists what there is")
		return
	}
	read := ctx.IsGet() || ctx.IsHead()
	change := e.change()
	if read && e.handle == nil || !read && string(ctx.Method()) != change {
		allow := change
		if e.handle != nil {
			allow = strings.TrimSuffix("GET, HEAD, "+change, ", ")
		}
		ctx.Response.Header.Set("Allow", allow)
		fail(ctx, fasthttp.StatusMethodNotAllowed, "method_not_allowed", "allowed here: "+allow)
		return
	}
	if !read || e.guarded {
		if reason := s.foreign(ctx, !read); reason != "" {
			s.o.Log.Warn("admin listener: request of another site refused", obs.KeyPath, string(ctx.Path()), obs.KeyReason, reason,
				obs.KeyClient, ctx.RemoteAddr().String())
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
