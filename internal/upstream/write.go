package upstream

import (
	"net"

	"optimist/internal/wire"
)

const (
	// maxCopied is the size in bytes up to which a body is copied behind its head, for one write of one buffer.
	maxCopied = 16 << 10
	// maxInline is the size up to which a body is written before the answer is read. With a larger body, an engine that answers
	// without reading could block both sides for ever.
	maxInline = 32 << 10
)

// write sends the request's head and, if all of it is here and small, the body. Anything larger is written by another goroutine.
func (x *Exchange) write(c *conn, r *Request) error {
	x.compose(c.node, r)
	if r.Stream != nil || len(r.Body) > maxInline {
		x.w = newWriter(c, x.out, r, &x.req)
		go x.w.run()
		return nil
	}
	var n int64
	var err error
	if chunked := x.req.Body == wire.Chunked; chunked || len(r.Body) <= maxCopied {
		if chunked {
			x.out = append(wire.AppendChunk(x.out, r.Body), wire.LastChunk...)
		} else {
			x.out = append(x.out, r.Body...)
		}
		var k int
		k, err = c.nc.Write(x.out)
		n = int64(k)
	} else {
		bufs := net.Buffers{x.out, r.Body}
		n, err = bufs.WriteTo(c.nc)
	}
	x.sent = n
	return err
}

// compose builds the request's head in x.out.
func (x *Exchange) compose(n *node, r *Request) {
	q := &x.req
	x.method = append(x.method[:0], r.Method...)
	q.Method, q.Target, q.Body, q.Length, q.Expect100 = x.method, r.Target, wire.None, -1, r.Expect
	if len(n.prefix) > 0 && len(r.Target) > 0 && r.Target[0] == '/' {
		x.target = append(append(x.target[:0], n.prefix...), r.Target...)
		q.Target = x.target
	}
	switch {
	case r.Length < 0:
		q.Body = wire.Chunked
	case r.Stream != nil:
		q.Body, q.Length = wire.Length, r.Length
	case r.Body != nil:
		q.Body, q.Length = wire.Length, int64(len(r.Body))
	}
	q.Fields = q.Fields[:0]
	host, own := false, r.Own && x.set.cfg.Authorization != ""
	for _, f := range r.Fields {
		switch {
		case len(f.Name) == 4 && wire.EqualFold(f.Name, "Host"):
			host = true
		case len(f.Name) == 13 && own && wire.EqualFold(f.Name, "Authorization"):
			continue
		case len(f.Name) == 14 && q.Body == wire.None && wire.EqualFold(f.Name, "Content-Length"):
			q.Body, q.Length = wire.Length, 0
		}
		q.Fields = append(q.Fields, f)
	}
	if !host {
		q.Fields = append(q.Fields, wire.Field{Name: []byte("Host"), Value: n.host})
	}
	if own {
		q.Fields = append(q.Fields, wire.Field{Name: []byte("Authorization"), Value: []byte(x.set.cfg.Authorization)})
	}
	x.out = q.AppendRequest(x.out[:0])
}
