// Package compat answers the requests for locks of Elasticsearch's Definitive Guide, a book, by real locks with leases.
//
// The book makes locks of plain documents: a global lock, one for each document, and a tree of shared and exclusive ones. Clients that are
// written after the book create and delete documents in one index. Here each document of that index stands for a lock with the same id.
//
// Compat recognises the requests by their shape. It refuses all other requests to the index. If it forwarded them, the engine would store
// a document that looks like a lock, and that locks nobody out.
package compat

import (
	"context"
	"slices"
	"strings"
	"time"

	"optimist/internal/api"
	"optimist/internal/uri"
	"optimist/lockrouter"
)

// Options are what a Compat needs. All but Refresh are required.
type Options struct {
	Locks *lockrouter.Router
	// Index is the index that clients find the documents in. It is recognised by this name only, not by an alias. Type is the documents'
	// mapping type in typed paths. Documents of the index with other types are the engine's.
	Index, Type string
	// TTL is how long a lock is held if nobody deletes it.
	TTL time.Duration
	// Refresh forwards a client's _refresh to the engine, which may have documents of other types in the index. Nil: it isn't forwarded.
	Refresh func(ctx context.Context, q *Request) (status int, body []byte, err error)
}

// Compat answers requests. It is safe for concurrent use; make it with New.
type Compat struct{ o Options }

// New makes a Compat.
func New(o Options) *Compat { return &Compat{o} }

// Request is a client's request.
type Request struct {
	Method string
	Op     *api.Op
	Body   []byte // without content coding
	// Session names the client's session, in printable characters without spaces and colons. The session owns the locks that it creates.
	Session string
	// Client is as in lockrouter.Request: the shared leases of a lock are divided among clients by it.
	Client string
	// Own is the caller's, for Refresh.
	Own any
}

// Concern says whether a request is for a Compat.
type Concern uint8

// The concerns.
const (
	Nothing    Concern = iota // it isn't for the Compat
	ByBody                    // its path has no index: only its body shows whether it is for the Compat
	Everything                // it is for the Compat
)

// Concerns finds out from a request's line whether the request is for the Compat.
func (c *Compat) Concerns(op *api.Op) Concern {
	if op.Kind == api.Bulk && !c.named(op.Index) || len(op.Path) >= len(scrolls) && string(op.Path[:len(scrolls)]) == scrolls {
		return ByBody
	}
	p, ok := c.place(op)
	if !ok || p.foreign() {
		return Nothing
	}
	return Everything
}

const scrolls = "/_search/scroll"

func (c *Compat) named(raw []byte) bool {
	var buf [256]byte
	name, err := uri.Unescape(buf[:0], raw)
	return err == nil && string(name) == c.o.Index
}

// place is what a path names within the index.
type place struct {
	typed    bool   // the path has the mapping type
	endpoint string // with an id _doc, _create, _update or _source; without an id any other, or empty for the index itself
	id       string
	other    bool // the path has another mapping type
}

// foreign reports whether the engine has to answer. That is so for the index itself, its mappings and settings, and for other types. There
// are no locks in these places.
func (p *place) foreign() bool {
	return p.other || p.id == "" && slices.Contains([]string{"", "_mapping", "_mappings", "_settings", "_alias", "_aliases", "_stats",
		"_segments", "_recovery", "_flush", "_open", "_close", "_cache", "_forcemerge"}, p.endpoint)
}

// place reads a path, and leaves out empty segments. If the engine leaves them out, too, a path with one must not get past the Compat:
// the engine would store a document that looks like a lock. ok is false if the path isn't in the index.
func (c *Compat) place(op *api.Op) (p place, ok bool) {
	var segs []string
	for raw := range strings.SplitSeq(string(op.Path), "/") {
		if raw == "" {
			continue
		}
		b, err := uri.Unescape(nil, []byte(raw))
		if err != nil {
			b = []byte(raw)
		}
		if segs = append(segs, string(b)); segs[0] != c.o.Index {
			return p, false
		}
	}
	if len(segs) == 0 {
		return p, false
	}
	segs = segs[1:]
	if len(segs) == 0 {
		return p, true
	}
	first := segs[0]
	switch {
	case first == c.o.Type || first == "_doc":
		p.typed = first != "_doc"
		return p.within(segs[1:]), true
	case !strings.HasPrefix(first, "_"):
		p.other = true
		return p, true
	}
	p.endpoint = first
	if len(segs) > 1 {
		p.id = strings.Join(segs[1:], "/")
	}
	return p, true
}

// within reads the segments behind the type: {id}, {id}/_create, or an endpoint of the type.
func (p place) within(segs []string) place {
	switch {
	case len(segs) == 0:
		p.endpoint = "_doc"
	case len(segs) == 1 && strings.HasPrefix(segs[0], "_") && p.typed:
		p.endpoint = segs[0]
	case len(segs) == 1:
		p.endpoint, p.id = "_doc", segs[0]
	case len(segs) == 2:
		p.endpoint, p.id = segs[1], segs[0]
	default:
		p.endpoint = strings.Join(segs, "/")
	}
	return p
}
