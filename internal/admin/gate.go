package admin

import (
	"crypto/tls"
	"io"
	"net"
	"sync"

	"optimist/internal/api"
	"optimist/internal/secure"
	"optimist/internal/wire"
)

// How many connections the listener serves at once, and how many of them may be of one address.
const (
	maxConns       = 1024
	maxConnsOfPeer = 256
)

// gatedListener puts a gate in front of each connection that it accepts. It closes those that are too many at once. fasthttp would answer
// them first, with TLS only after their handshakes: meanwhile it accepts nobody, and a handshake need never end.
type gatedListener struct {
	net.Listener
	mu   sync.Mutex
	open int
	of   map[string]int // by address
}

func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := c.RemoteAddr().String()
		if host, _, err := net.SplitHostPort(peer); err == nil {
			peer = host
		}
		if !l.take(peer) {
			_ = c.Close()
			continue
		}
		g := &gate{Conn: c, leave: sync.OnceFunc(func() { l.giveBack(peer) })}
		g.in.Reset(c)
		if t, ok := c.(*tls.Conn); ok {
			return &tlsGate{gate: g, tls: t}, nil
		}
		return g, nil
	}
}

// take reports whether there is a place for a connection of peer, and takes it.
func (l *gatedListener) take(peer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= maxConns || l.of[peer] >= maxConnsOfPeer {
		return false
	}
	l.open++
	l.of[peer]++
	return true
}

func (l *gatedListener) giveBack(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[peer]--; l.of[peer] == 0 {
		delete(l.of, peer)
	}
}

// gate is a connection that hands fasthttp only requests that the data port would take. It reads them with the parser of the data port,
// and hands them on in that parser's own spelling. It answers the first request that it refuses itself, as soon as its head or its
// chunk is there, and hands on nothing more: fasthttp takes some framings in another way than other parsers do, and waits for the bodies
// of others.
//
// A read never returns bytes of two requests. So fasthttp has sent all answers before the gate refuses a request.
type gate struct {
	net.Conn
	in      wire.Reader
	head    wire.Head
	body    wire.Body
	chunked bool   // the body of the current request is handed on in chunks
	buf     []byte // of ready
	ready   []byte // is to be handed on
	refused bool
	leave   func() // gives the connection's place back
}

// Close closes the connection, and gives its place back.
func (g *gate) Close() error {
	defer g.leave()
	return g.Conn.Close()
}

// tlsGate is a gate that tells fasthttp about TLS and the client's certificate.
type tlsGate struct {
	*gate
	tls *tls.Conn
}

// Handshake tells a client that speaks no TLS what is wrong.
func (g *tlsGate) Handshake() error {
	err := g.tls.Handshake()
	if plain := secure.PlainHTTP(err); plain != nil {
		writeError(plain, 400, secure.ErrPlain)
	}
	return err
}

func (g *tlsGate) ConnectionState() tls.ConnectionState { return g.tls.ConnectionState() }

// Read hands on the next bytes of a request. It returns io.EOF after a request that was refused.
func (g *gate) Read(p []byte) (int, error) {
	if g.refused {
		return 0, io.EOF
	}
	if len(g.ready) == 0 {
		if err := g.next(); err != nil {
			return 0, g.refuse(err)
		}
	}
	n := copy(p, g.ready)
	g.ready = g.ready[n:]
	return n, nil
}

// next makes the next piece of a request ready: its head, or a part of its body.
func (g *gate) next() error {
	if !g.chunked && g.body.Done() || g.head.Method == nil {
		if err := g.head.ReadRequest(&g.in, wire.DefaultMaxHead); err != nil {
			return err
		}
		g.body.Reset(&g.in, &g.head)
		g.chunked = g.head.Body == wire.Chunked
		g.buf = g.head.AppendRequest(g.buf[:0])
		g.ready = g.buf
		return nil
	}
	data, err := g.body.Next()
	switch {
	case err == io.EOF: // only a chunked body is read up to here
		g.chunked = false
		g.ready = append(g.buf[:0], wire.LastChunk...)
		return nil
	case err != nil:
		return err
	case g.chunked:
		g.buf = wire.AppendChunk(g.buf[:0], data)
		g.ready = g.buf
	default:
		g.ready = data
	}
	return nil
}

// refuse answers a request that two parsers may read differently. It returns the error for fasthttp: that of the connection if err is one.
func (g *gate) refuse(err error) error {
	status := wire.StatusOf(err)
	if status == 0 {
		return err
	}
	writeError(g.Conn, status, err)
	g.refused = true
	return io.EOF
}

// writeError answers a request that fasthttp doesn't get. The connection ends after it.
func writeError(conn net.Conn, status int, err error) {
	body := (&api.Error{Status: status, Type: "invalid_request", Reason: err.Error()}).Append(nil)
	h := wire.Head{Status: status, Body: wire.Length, Length: int64(len(body)), Close: true, Minor: 1,
		Fields: []wire.Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}}}
	_, _ = conn.Write(append(h.AppendResponse(nil), body...))
}

// Write drops what fasthttp has to say about a request that the gate has answered.
func (g *gate) Write(p []byte) (int, error) {
	if g.refused {
		return len(p), nil
	}
	return g.Conn.Write(p)
}
