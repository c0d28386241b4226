package client

import (
	"bytes"
	"errors"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/catalog"
	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// Request is a request with its client and its document. A connection has one Request for all its requests. These come one after the
// other, mostly from the same client and for the same index: what is the same isn't read again. A Request is for one goroutine, and its
// results may not be used after the request.
type Request struct {
	*proxy.Exchange
	identity *Identity
	recent   recent
	client   Client
	current  bool // client is the one of this request
	fields   []wire.Field
	rawIndex []byte
	index    string
}

// Begin makes r the request of an exchange.
func (r *Request) Begin(id *Identity, x *proxy.Exchange) {
	r.Exchange, r.identity, r.current = x, id, false
	r.fields = r.fields[:0]
}

// Name is the request's session in a word that can be shown and kept: see Identity.Name.
func (r *Request) Name() string {
	return r.identity.Name(r.Head().Fields, r.Op().Query, r.Exchange.Client(), r.Subject())
}

// Client is who sent the request.
func (r *Request) Client() *Client {
	if !r.current {
		r.client, r.current = r.recent.of(r.identity, r.Head().Fields, r.Op().Query, r.Exchange.Client(), r.Subject()), true
	}
	return &r.client
}

// Caller is on whose behalf the request's client has the engine asked.
func (r *Request) Caller() es.Caller {
	return es.Caller{Fields: r.Fields(), Params: r.Client().Params, Client: r.Place()}
}

// Asker is the request's client, for the catalog.
func (r *Request) Asker() catalog.Asker {
	c := r.Client()
	return catalog.Asker{Realm: c.Realm, Credentials: c.Session.Credentials(), Caller: r.Caller()}
}

// Rewritable reports whether anything of the request may be changed: not where the client signs it.
func (r *Request) Rewritable() bool {
	c := r.Client()
	return !c.Signed && !c.Bound && !signedQuery(r.Op().Query)
}

// SignedQuery reports whether the request is signed by its query.
func (r *Request) SignedQuery() bool { return signedQuery(r.Op().Query) }

// Fields are the request's end-to-end fields.
func (r *Request) Fields() []wire.Field {
	if len(r.fields) == 0 {
		r.fields = r.Head().EndToEnd(r.fields)
	}
	return r.fields
}

// Unlisted appends to dst the fields of which nobody knows whether a gateway chooses the tenant by them: neither the configuration nor
// optimist's own lists name them. They point into the request.
func (r *Request) Unlisted(dst []wire.Field) []wire.Field {
	for _, f := range r.Head().Fields {
		if role := r.identity.roleOf(f.Name) &^ sessions; role == address || role == otherwise {
			dst = append(dst, f)
		}
	}
	return dst
}

// Index is the index that the request names in its path, decoded, or "" if that can't be read.
func (r *Request) Index() string {
	if raw := r.Op().Index; r.rawIndex == nil || !bytes.Equal(r.rawIndex, raw) {
		r.rawIndex, r.index = append(r.rawIndex[:0], raw...), api.Name(raw)
	}
	return r.index
}

// Ref names the document of the request. ok is false where it can't be read.
func (r *Request) Ref() (ref doc.Ref, ok bool) {
	ref.Index = r.Index()
	var buf [256]byte
	id, err := uri.Decode(buf[:0], r.Op().ID)
	if err != nil {
		return ref, false
	}
	ref.ID = string(id)
	ref.Routing, ok = r.Routing()
	return ref, ok && ref.Index != ""
}

// Routing is the request's routing, for documents that don't name their own. ok is false where it can't be read.
func (r *Request) Routing() (routing string, ok bool) {
	raw, given := uri.Param(r.Op().Query, "routing")
	if !given {
		return "", true
	}
	value, err := uri.DecodeValue(nil, raw)
	return string(value), err == nil
}

// Plain is the request's body without a gzip coding, and the end-to-end fields that go with it. Over limit bytes it is
// proxy.ErrTooLarge, and without memory for it package budget's error. Other codings stay. Errors are to be given to Fail.
func (r *Request) Plain(limit int64) (body []byte, fields []wire.Field, err error) {
	body, err = r.Body(limit)
	if err != nil {
		return nil, nil, err
	}
	if !r.Gzipped() {
		return body, r.Fields(), nil
	}
	switch body, err = coding.GunzipIn(budget.Of(r.Context()), body, limit); {
	case errors.Is(err, budget.ErrOverloaded), errors.Is(err, budget.ErrTooMuch):
		return nil, nil, err
	case errors.Is(err, coding.ErrTooLarge):
		return nil, nil, proxy.ErrTooLarge
	case err != nil:
		return nil, nil, &proxy.Failure{Status: 400, Type: "parse_exception", Reason: err.Error()}
	}
	return body, wire.Without(r.Fields(), "content-encoding"), nil
}

// Gzipped reports whether the request's body is compressed so.
func (r *Request) Gzipped() bool { return coding.IsGzip(r.Head().Get("content-encoding")) }

// Forward is the exchange's. An answer that is copied comes in a coding that can be read here, if the request may be changed.
func (r *Request) Forward(o proxy.ForwardOptions) error {
	o.Readable = o.Copy != nil && r.Rewritable()
	return r.Exchange.Forward(o)
}

// Pass forwards the request and reports whether the client was answered: if not, it has been told why.
func (r *Request) Pass(o proxy.ForwardOptions) bool {
	err := r.Forward(o)
	if err != nil {
		r.Fail(err)
	}
	return err == nil
}
