// Package outbound makes the requests that carry a client's write to the engine: the client's own bytes, with a guard in them.
//
// It sends nothing.
package outbound

import (
	"bytes"
	"strconv"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// Template is a client's write as it goes to the engine. It makes one request at a time: the next one takes its place.
type Template struct {
	*Room          // of the request; nil: it takes new memory
	Op     *api.Op // as the client sent it
	Fields []wire.Field
	Client share.Client // whose places it takes

	Method, Media []byte // Media is the Content-Type in place of the client's; nil: the client's
	Path, Query   []byte // undecoded; the query without any guard
}

// Room is memory for a request, so that most of them allocate none. It is for one Template at a time.
type Room struct {
	request upstream.Request
	fields  [10]wire.Field
	text    [128]byte
}

// Parker keeps the first try of a write until its answer is there, so that no goroutine has to wait for it.
type Parker interface {
	// Park keeps what Guarded would return for w, of which it uses nothing after it returns. It reports false if it can't keep such a
	// request.
	Park(w *Template, body []byte, n doc.Numbers, create bool) bool
	// Waits is called before the write waits for something else.
	Waits()
	// Received is what came of the request, and what that says, if the Parker has read it; nil: it hasn't.
	Received() (*upstream.Response, *es.Item, error)
}

// Guarded is the request with a body, in place of the revision n alone; the zero value is no guard. With create it makes a document only
// where there is none. The fields that concern only optimist stay behind, and those that would keep the answer from being read.
func (w *Template) Guarded(body []byte, n doc.Numbers, create bool) *upstream.Request {
	r := w.start(w.Method, w.target(n, create), body)
	for _, f := range w.Fields {
		if !staysHere(f.Name) && (w.Media == nil || !wire.EqualFold(f.Name, "content-type")) {
			r.Fields = append(r.Fields, f)
		}
	}
	if w.Media != nil {
		r.Fields = append(r.Fields, wire.Field{Name: contentType, Value: w.Media})
	}
	return r
}

// AsSent is the client's own request, with a body. With create it makes a document only where there is none.
func (w *Template) AsSent(method, body []byte, create bool) *upstream.Request {
	target := w.Op.Path
	switch {
	case create:
		target = w.target(doc.Numbers{}, true)
	case len(w.Op.Query) > 0:
		target = append(append(append(w.room().text[:0], target...), '?'), w.Op.Query...)
	}
	r := w.start(method, target, body)
	for _, f := range w.Fields {
		if !staysHere(f.Name) {
			r.Fields = append(r.Fields, f)
		}
	}
	return r
}

// Retried is the request with a body and so many retries of the engine's own, which may be none.
func (w *Template) Retried(body []byte, retries int) *upstream.Request {
	r := w.Guarded(body, doc.Numbers{}, false)
	sep := byte('?')
	t := append(w.room().text[:0], w.Op.Path...)
	if len(w.Op.Query) > 0 {
		t, sep = append(append(t, '?'), w.Op.Query...), '&'
	}
	r.Target = t
	if retries == 0 {
		return r
	}
	r.Target = strconv.AppendInt(append(append(t, sep), "retry_on_conflict="...), int64(retries), 10)
	return r
}

// Update is an _update of the same document, with these parameters besides those that say which document it is.
func (w *Template) Update(body []byte, params ...[]byte) *upstream.Request {
	r := w.Guarded(body, doc.Numbers{}, false)
	op := w.Op
	path := [][]byte{nil, op.Index, []byte("_update"), op.ID}
	if op.Typed {
		path = [][]byte{nil, op.Index, op.Type, op.ID, []byte("_update")}
	}
	r.Method, r.Target = "POST", bytes.Join(path, []byte("/"))
	sep := byte('?')
	for _, p := range append([][]byte{uri.Only(nil, op.Query, "routing", "require_alias")}, params...) {
		if len(p) > 0 {
			r.Target = append(append(r.Target, sep), p...)
			sep = '&'
		}
	}
	return r
}

// AsDocument has the write go as a PUT of the whole document, with this Content-Type and without these parameters.
func (w *Template) AsDocument(media []byte, without ...string) {
	kind := []byte("_doc")
	if w.Op.Typed {
		kind = w.Op.Type
	}
	w.Method, w.Media, w.Query = []byte("PUT"), media, uri.Without(nil, w.Query, without...)
	w.Path = bytes.Join([][]byte{nil, w.Op.Index, kind, w.Op.ID}, []byte("/"))
}

// AppendGuard appends the parameters of a guard.
func AppendGuard(dst []byte, n doc.Numbers) []byte {
	dst = strconv.AppendInt(append(dst, "if_seq_no="...), n.SeqNo, 10)
	return strconv.AppendInt(append(dst, "&if_primary_term="...), n.PrimaryTerm, 10)
}

// ContentType is the media type of what is sent.
func (w *Template) ContentType() []byte {
	if w.Media != nil {
		return w.Media
	}
	return wire.Value(w.Fields, "content-type")
}

// Alike reports whether two writes differ in nothing but their bodies, as far as the engine's answer goes.
func Alike(a, b *Template) bool {
	return bytes.Equal(a.Query, b.Query) && bytes.Equal(a.Path, b.Path) && bytes.Equal(a.ContentType(), b.ContentType()) &&
		bytes.Equal(wire.Value(a.Fields, "accept"), wire.Value(b.Fields, "accept"))
}

func (w *Template) start(method, target, body []byte) *upstream.Request {
	room := w.room()
	room.request = upstream.Request{Method: wire.MethodString(method), Target: target, Body: body, Fields: room.fields[:0], Client: w.Client}
	return &room.request
}

func (w *Template) room() *Room {
	if w.Room == nil {
		w.Room = new(Room)
	}
	return w.Room
}

var contentType = []byte("Content-Type")

// target is the request target with the guard: the client's own bytes before it.
func (w *Template) target(n doc.Numbers, create bool) []byte {
	query := w.Query
	if create {
		query = api.CreateQuery(query)
	}
	t := append(w.room().text[:0], w.Path...)
	sep := byte('?')
	if len(query) > 0 {
		t = append(append(t, sep), query...)
		sep = '&'
	}
	if n.Known() && !create {
		t = AppendGuard(append(t, sep), n)
	}
	return t
}

// staysHere reports whether a field is for optimist alone, or must not reach the engine with a write whose answer is read here.
func staysHere(name []byte) bool {
	switch {
	case wire.EqualFold(name, "if-match"), wire.EqualFold(name, "accept-encoding"), wire.EqualFold(name, "content-length"),
		wire.EqualFold(name, "expect"):
		return true
	}
	return wire.IsForOptimist(name)
}
