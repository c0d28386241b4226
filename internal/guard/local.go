package guard

import (
	"bytes"
	"net/netip"
	"time"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// local is what the guard keeps of a connection from one request to the next: they come one after the other, mostly from the same client
// and for the same index. Nothing of it may be used after the request.
type local struct {
	seen   seen
	fields []wire.Field // of a write
	write  write.Request
	raw    []byte // an index as a request had it, and
	index  string // decoded
	read   reading
}

// of is the connection's local.
func of(x *proxy.Exchange) *local {
	l, ok := x.Local.(*local)
	if !ok {
		l = &local{}
		r := &l.read
		r.onHead, r.onHeadTagged, r.onBody, r.onLast, r.onWhole = r.tee.head, r.tee.withETag, r.tee.copy, r.tee.end, r.saw
		r.onHeadOpen = r.headOpen
		x.Local = l
	}
	return l
}

// decoded is the index that a request names, or "" if that can't be read.
func (l *local) decoded(raw []byte) string {
	if l.raw == nil || !bytes.Equal(l.raw, raw) {
		l.raw, l.index = append(l.raw[:0], raw...), decoded(raw)
	}
	return l.index
}

// who is the client that a request comes from.
func (g *Guard) who(x *proxy.Exchange) client {
	return of(x).seen.who(&g.identity, x.Head().Fields, x.Client())
}

// seen is who sent the connection's last request. Telling that takes two digests; comparing a few fields is cheaper.
type seen struct {
	marks  marks
	client client
	filled bool
}

// maxSeen bounds what is kept for it, in bytes: idle connections are many.
const maxSeen = 4 << 10

// who is Identity.who, from memory where the request says the same as the one before it. The connection, and so addr, is the same.
func (s *seen) who(id *Identity, fields []wire.Field, addr netip.AddrPort) client {
	m := id.gather(fields)
	if s.filled && s.same(&m) {
		return s.client
	}
	*s = seen{}
	size := 0
	for _, v := range m {
		size += len(v)
	}
	c := id.tell(&m, fields, addr)
	if size > maxSeen {
		return c
	}
	for i := range m {
		s.marks[i] = bytes.Clone(m[i])
	}
	for i, f := range c.caller.Fields {
		c.caller.Fields[i] = wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	s.client, s.filled = c, true
	return c
}

// same compares marks: one that is empty isn't one that is not there.
func (s *seen) same(m *marks) bool {
	for i := range m {
		if (m[i] == nil) != (s.marks[i] == nil) || !bytes.Equal(m[i], s.marks[i]) {
			return false
		}
	}
	return true
}

// reading is a document read that is watched.
type reading struct {
	g      *Guard
	x      *proxy.Exchange
	client client
	ref    doc.Ref
	epoch  session.Epoch
	asked  uint64
	began  time.Time
	tee    capture
	watch  watch // where it is open

	// The methods that the door calls, each made once.
	onHead, onHeadTagged, onHeadOpen func(h *wire.Head, first []byte) []wire.Field

	onBody          func(b []byte)
	onLast, onWhole func()
}

// begin makes the reading that of a request.
func (r *reading) begin(g *Guard, x *proxy.Exchange, c client, ref doc.Ref) {
	r.g, r.x, r.client, r.ref, r.epoch, r.asked = g, x, c, ref, g.sessions.Epoch(), g.sessions.Ask()
	r.began = time.Now()
	r.tee = capture{limit: watchLimit, buf: r.tee.buf}
}

// end gives up what an idle connection shouldn't hold.
func (r *reading) end() {
	r.watch, r.x = watch{}, nil
	if r.tee.buf = r.tee.buf[:0]; cap(r.tee.buf) > maxKept {
		r.tee.buf = nil
	}
}

// maxKept is the size in bytes above which a buffer isn't kept for the next request.
const maxKept = 16 << 10

// ref names the document of a request: the concrete index, as far as reads and writes have told it.
func (l *local) ref(op *api.Op) (doc.Ref, bool) {
	r := doc.Ref{Index: l.decoded(op.Index)}
	var buf [256]byte
	b, err := api.Decode(buf[:0], op.ID)
	if err != nil {
		return r, false
	}
	r.ID = string(b)
	if v, ok := api.Param(op.Query, "routing"); ok {
		if b, err = api.DecodeValue(b[:0], v); err != nil {
			return r, false
		}
		r.Routing = string(b)
	}
	return r, r.Index != ""
}
