// Package compat answers the requests by which Elasticsearch: The Definitive Guide locks with plain documents: a global lock, one
// for each document, and a tree of shared and exclusive ones. It gives these locks leases: each document of that index is the
// lock of its id.
//
// It recognises the requests by their shape, and refuses all others: a lock that the engine would only store keeps nobody out
// here.
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
	// Index is where the documents seem to be, by this name only. Type is the mapping type that they have in typed paths; other types of
	// the index are the engine's.
	Index, Type string
	// TTL is how long a lock is held that nobody deletes.
	TTL time.Duration
	// Refresh asks the engine for the refresh that a client asks for: other types may be there. Nil: nobody is asked.
	Refresh func(ctx context.Context, q *Request) (status int, body []byte, err error)
}

// Compat answers requests. It is safe for concurrent use; make it with New.
type Compat struct{ o Options }

// New makes a Compat.
func New(o Options) *Compat { return &Compat{o} }

// Request is one of the client's.
type Request struct {
	Method string
	Op     *api.Op
	Body   []byte // without content coding
	// Session is who asks, in printable characters without spaces and colons. It owns the locks that it creates.
	Session string
	// Client is as in lockrouter.Request: by it the readers of a lock share its document.
	Client string
	// Own is passed on to Refresh.
	Own any
}

// Concern is whether a request is for a Compat.
type Concern uint8

// The concerns. Of requests for all indices the body tells.
const (
	Nothing Concern = iota
	ByBody
	Everything
)

// Concerns tells by a request's line whether it is for the index.
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

// place is where a path leads within the index.
type place struct {
	typed    bool
	endpoint string // _doc, _create, _update or _source with an id; else the endpoint; empty for the index itself
	id       string
	other    bool // it is of another type
}

// foreign reports whether what is there is the engine's: the index itself, what it is made of, and other types. No lock is there.
func (p *place) foreign() bool {
	return p.other || p.id == "" && slices.Contains([]string{"", "_mapping", "_mappings", "_settings", "_alias", "_aliases", "_stats",
		"_segments", "_recovery", "_flush", "_open", "_close", "_cache", "_forcemerge"}, p.endpoint)
}

// place reads a path. Empty segments don't count: whatever the engine makes of them, it must not make a lock that isn't one.
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

// within reads what comes behind the type: {id}, {id}/_create, or an endpoint of the type.
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
