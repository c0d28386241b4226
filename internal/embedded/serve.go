package embedded

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"optimist/internal/coding"

	"github.com/valyala/fasthttp"
)

const (
	maxBody  = 100 << 20 // bytes of a request, the engines' http.max_content_length
	maxHead  = 32 << 10  // bytes of a request line and its header
	zipAbove = 1400      // bytes from which an answer is worth compressing
)

// door is the engine's listener side.
type door struct {
	mu        sync.Mutex
	server    *fasthttp.Server
	listeners []net.Listener
	silent    map[net.Conn]struct{} // connections on which no byte of a request has come yet
	closed    bool
}

// Serve answers requests on ln until Close. After Close it returns at once. It may be called for several listeners. The error is the
// listener's.
func (e *Engine) Serve(ln net.Listener) error {
	s := e.start()
	if !e.door.add(ln) {
		return ln.Close()
	}
	return s.Serve(listener{ln, &e.door})
}

// add reports whether the listener may be served.
func (d *door) add(ln net.Listener) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners, ln)
	return !d.closed
}

func (d *door) addresses() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	bound := make([]string, 0, len(d.listeners))
	for _, ln := range d.listeners {
		bound = append(bound, ln.Addr().String())
	}
	return bound
}

// close closes what the server's own Shutdown doesn't close: listeners on which Serve hasn't begun yet, and connections without a request.
// Shutdown would wait for these connections.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, ln := range d.listeners {
		_ = ln.Close()
	}
	for c := range d.silent {
		_ = c.Close()
	}
}

// listener accepts connections. The door knows each of them until the first byte of its first request comes.
type listener struct {
	net.Listener
	door *door
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.door.mu.Lock()
	defer l.door.mu.Unlock()
	if l.door.closed {
		_ = c.Close() // the server's next read finds it closed
	}
	l.door.silent[c] = struct{}{}
	return &conn{Conn: c, door: l.door}, nil
}

// conn is a client's connection. One goroutine at a time reads from it.
type conn struct {
	net.Conn
	door  *door
	heard bool // bytes of a request have come, or the client has gone
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.heard {
		c.heard = true
		c.door.mu.Lock()
		delete(c.door.silent, c.Conn)
		c.door.mu.Unlock()
	}
	return n, err
}

func (e *Engine) start() *fasthttp.Server {
	e.door.mu.Lock()
	defer e.door.mu.Unlock()
	if e.door.server == nil {
		e.door.silent = map[net.Conn]struct{}{}
		e.door.server = &fasthttp.Server{
			Handler:               e.handle,
			NoDefaultServerHeader: true,
			NoDefaultContentType:  true,
			NoDefaultDate:         true,
			MaxRequestBodySize:    maxBody,
			ReadBufferSize:        maxHead,
			IdleTimeout:           10 * time.Minute,
			CloseOnShutdown:       true,
			ErrorHandler:          refuseRequest,
			Logger:                noLog{}, // a client that sends nonsense gets an answer; there is nothing to log
		}
	}
	return e.door.server
}

// refuseRequest answers what can't be read as a request.
func refuseRequest(ctx *fasthttp.RequestCtx, err error) {
	e := &Error{Status: 400, Type: "illegal_argument_exception", Reason: err.Error()}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge), errors.Is(err, coding.ErrTooLarge):
		e = &Error{Status: 413, Type: "illegal_argument_exception", Reason: "request body is longer than " + strconv.Itoa(maxBody) + " bytes"}
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		e = &Error{Status: 431, Type: "too_long_http_header_exception", Reason: "request line and header are longer than " + strconv.Itoa(maxHead) + " bytes"}
	}
	ctx.SetStatusCode(e.Status)
	ctx.SetContentType("application/json")
	ctx.SetBody(e.appendJSON(nil))
}

// noLog is a logger that writes nothing.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

// Close ends every Serve, after the requests that are being answered.
func (e *Engine) Close() error {
	s := e.start()
	e.door.close()
	if err := s.Shutdown(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// handle answers one of fasthttp's requests. fasthttp uses the bytes of ctx again after that, and the engine may keep a body as a document.
// So the body is copied.
func (e *Engine) handle(ctx *fasthttp.RequestCtx) {
	body, err := coding.Decode(ctx.Request.Body(), ctx.Request.Header.ContentEncoding(), maxBody)
	if err != nil {
		refuseRequest(ctx, err)
		return
	}
	h := &ctx.Request.Header
	resp := e.Handle(&Request{
		Method:      string(h.Method()),
		Target:      string(h.RequestURI()),
		ContentType: string(h.ContentType()),
		Accept:      string(h.Peek("Accept")),
		IfMatch:     string(h.Peek("If-Match")),
		OpaqueID:    string(h.Peek("X-Opaque-Id")),
		Body:        append([]byte(nil), body...),
	})
	for _, f := range resp.Fields {
		ctx.Response.Header.Add(f.Name, f.Value)
	}
	ctx.SetStatusCode(resp.Status)
	ctx.SetContentType(resp.ContentType)
	if len(resp.Body) > zipAbove && coding.TakesGzip(h.Peek("Accept-Encoding")) {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		ctx.SetBody(fasthttp.AppendGzipBytesLevel(nil, resp.Body, fasthttp.CompressBestSpeed))
		return
	}
	ctx.Response.SetBodyRaw(resp.Body)
}
