package embedded

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	maxBody  = 100 << 20 // bytes of a request, the engines' http.max_content_length
	maxHead  = 32 << 10  // bytes of a request line and its header
	zipAbove = 1400      // bytes from which an answer is worth compressing
)

// door is the engine's listener side.
type door struct {
	mu     sync.Mutex
	server *fasthttp.Server
	bound  []string
}

// Serve answers requests on ln until Close. It may be called for several listeners. The error is the listener's.
func (e *Engine) Serve(ln net.Listener) error {
	s := e.start()
	e.door.mu.Lock()
	e.door.bound = append(e.door.bound, ln.Addr().String())
	e.door.mu.Unlock()
	return s.Serve(ln)
}

func (d *door) addresses() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.bound)
}

func (e *Engine) start() *fasthttp.Server {
	e.door.mu.Lock()
	defer e.door.mu.Unlock()
	if e.door.server == nil {
		e.door.server = &fasthttp.Server{
			Handler:               e.handle,
			NoDefaultServerHeader: true,
			NoDefaultContentType:  true,
			MaxRequestBodySize:    maxBody,
			ReadBufferSize:        maxHead,
			IdleTimeout:           10 * time.Minute,
			CloseOnShutdown:       true,
		}
	}
	return e.door.server
}

// Close ends every Serve, after the requests that are being answered.
func (e *Engine) Close() error { return e.start().Shutdown() }

// handle turns fasthttp's request into ours. Bytes of ctx are reused after it returns, so that the body is copied: the
// engine keeps it.
func (e *Engine) handle(ctx *fasthttp.RequestCtx) {
	body, err := ctx.Request.BodyUncompressed()
	if err != nil {
		ctx.Error(`{"error":"request body cannot be decompressed","status":400}`, 400)
		ctx.SetContentType("application/json")
		return
	}
	h := &ctx.Request.Header
	resp := e.Handle(&Request{
		Method:      string(h.Method()),
		Target:      string(h.RequestURI()),
		ContentType: string(h.ContentType()),
		Accept:      string(h.Peek("Accept")),
		OpaqueID:    string(h.Peek("X-Opaque-Id")),
		Body:        append([]byte(nil), body...),
	})
	for _, f := range resp.Fields {
		ctx.Response.Header.Add(f.Name, f.Value)
	}
	ctx.SetStatusCode(resp.Status)
	ctx.SetContentType(resp.ContentType)
	if len(resp.Body) > zipAbove && strings.Contains(string(h.Peek("Accept-Encoding")), "gzip") {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		ctx.SetBody(fasthttp.AppendGzipBytesLevel(nil, resp.Body, fasthttp.CompressBestSpeed))
		return
	}
	ctx.Response.SetBodyRaw(resp.Body)
}
