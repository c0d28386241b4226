// Package embedded is an in-memory engine that speaks Elasticsearch's document API, for demonstrations and quick tests.
//
// It promises the engine's semantics of sequence numbers, versions, guards and error shapes, and keeps every document's bytes as
// they were sent. Its data ends with the process. It is no cluster: it has one node, one shard for each index, and one primary term, and
// searches see every write at once. It refuses features that it doesn't have, and never silently ignores a part of a request.
package embedded

import (
	"cmp"
	"strings"
	"sync"
	"time"
)

// Version is the release of Elasticsearch whose document API the engine follows. GET / names it.
const Version = "9.5.3"

// Request is one request as it came in.
type Request struct {
	Method string
	Target string // path and query as they were sent, undecoded
	// ContentType, Accept and IfMatch are the headers of those names; OpaqueID is X-Opaque-Id, given back with the answer.
	ContentType, Accept, IfMatch, OpaqueID string
	Body                                   []byte // the engine may keep it as a document: don't change it afterwards
}

// Response is an answer. The body of an answer to HEAD isn't sent: only its length is.
type Response struct {
	Status      int
	ContentType string // empty without a body
	Fields      []Field
	Body        []byte
}

// Field is one header field.
type Field struct{ Name, Value string }

// Engine holds indices in memory. Create it with New; its methods may be called concurrently.
type Engine struct {
	mu      sync.RWMutex // guards the maps; the indices in them have locks of their own
	indices map[string]*index
	aliases map[string]map[string]*alias // alias → index → its properties

	endpoints []*endpoint
	name      string
	uuid      string
	born      time.Time
	clock     func() time.Time
	ids       idSource
	door      door
}

// Options adjust an engine. The zero value is complete.
type Options struct {
	// Name is the node's name on GET / and in _nodes. Default "optimist-embedded".
	Name string
	// Now is the clock; default time.Now. Tests replace it.
	Now func() time.Time
}

// New returns an empty engine. Nothing runs until Serve is called.
func New(o Options) *Engine {
	o.Name = cmp.Or(o.Name, "optimist-embedded")
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{
		indices:   make(map[string]*index),
		aliases:   make(map[string]map[string]*alias),
		endpoints: newRouter(routes()),
		name:      o.Name,
		uuid:      newUUID(),
		born:      o.Now(),
		clock:     o.Now,
	}
}

// call is one request on its way to its answer.
type call struct {
	*Engine
	req    *Request
	path   string // decoded as a whole, for messages
	vars   vars
	params params
	bad    *Error // the mistake in the first wrong parameter
	resp   Response
	out    []byte // the answer's body
	// whole says that the answer is the document itself. With filter_path, the engine writes it again, but takes nothing out of it.
	whole bool
	// mediaType is the answer's Content-Type for JSON.
	mediaType string
}

// vars are the decoded parts of the path that the route names.
type vars struct{ index, id, name string }

// Handle answers one request.
func (e *Engine) Handle(r *Request) *Response {
	c := &call{Engine: e, req: r, mediaType: "application/json", resp: Response{Status: 200, ContentType: "application/json"}}
	err := c.serve()
	if err == nil {
		err = c.shape(false)
	}
	if err != nil {
		c.resp.Status, c.resp.ContentType = err.Status, "application/json"
		c.out = err.appendJSON(c.out[:0])
		_ = c.shape(true) // a wrong ?pretty is in the error already
	}
	if c.resp.ContentType == "application/json" {
		c.resp.ContentType = c.mediaType
	}
	if r.OpaqueID != "" {
		c.header("X-Opaque-Id", r.OpaqueID)
	}
	// Elastic's own clients refuse answers without this field. It names the API; GET / names the engine.
	c.header("X-Elastic-Product", "Elasticsearch")
	c.resp.Body = c.out
	return &c.resp
}

func (c *call) header(name, value string) {
	c.resp.Fields = append(c.resp.Fields, Field{name, value})
}

func (c *call) serve() *Error {
	path, query, _ := strings.Cut(c.req.Target, "?")
	path, _, _ = strings.Cut(path, "#")
	query, _, _ = strings.Cut(query, "#")
	p, err := parseQuery(query)
	if err != nil {
		return err
	}
	c.params = p
	if err := c.media(); err != nil {
		return err
	}
	segments := strings.Split(strings.TrimPrefix(strings.TrimRight(path, "/"), "/"), "/")
	for i := range segments {
		if segments[i], err = unescape(segments[i]); err != nil {
			return err
		}
	}
	if c.path, err = unescape(path); err != nil {
		return err
	}
	var found *endpoint
	found, c.vars = find(c.endpoints, segments)
	if c.req.Method == "OPTIONS" {
		return c.options(found)
	}
	if found == nil {
		return &Error{Status: 400, Plain: true, noStatus: true, Reason: "no handler found for uri [" + c.req.Target + "] and method [" + c.req.Method + "]"}
	}
	rt := found.byMethod(c.req.Method)
	if rt == nil {
		return c.wrongMethod(found)
	}
	if err := c.params.unknown(c.path, rt.params); err != nil {
		return err
	}
	return rt.handle(c)
}

func (c *call) options(found *endpoint) *Error {
	if found != nil {
		c.header("Allow", strings.Join(found.methods(), ","))
	}
	c.resp.ContentType = "text/plain; charset=UTF-8"
	return nil
}

func (c *call) wrongMethod(found *endpoint) *Error {
	c.header("Allow", strings.Join(found.methods(), ","))
	return &Error{Status: 405, Plain: true, Reason: "Incorrect HTTP method for uri [" + c.req.Target + "] and method [" + c.req.Method +
		"], allowed: [" + strings.Join(found.methods(), ", ") + "]"}
}
