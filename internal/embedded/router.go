package embedded

import (
	"slices"
	"strings"
)

// route is one row of the table of requests that are understood.
type route struct {
	methods string // space-separated
	pattern string // parts in braces are variables: {index}, {id}, {name}
	handle  func(*call) *Error
	params  []string // names of the parameters besides those of every request
}

// handlers are the routes of one path.
type handlers struct {
	methods []string // in the order in which the engine names them
	routes  []*route // beside them
}

func (h *handlers) byMethod(m string) *route {
	if i := slices.Index(h.methods, m); i >= 0 {
		return h.routes[i]
	}
	return nil
}

// methodOrder is the order of methods in Allow.
const methodOrder = "GET POST PUT DELETE HEAD"

func (h *handlers) add(method string, r *route) {
	order := func(m string) int { return strings.Index(methodOrder, m) }
	at := 0
	for at < len(h.methods) && order(h.methods[at]) < order(method) {
		at++
	}
	h.methods, h.routes = slices.Insert(h.methods, at, method), slices.Insert(h.routes, at, r)
}

// router finds the routes of a path: a part that is spelt out wins over a variable.
type router struct{ root *branch }

type branch struct {
	here   *handlers
	parts  map[string]*branch
	any    *branch
	anyVar string
}

func newRouter(table []route) router {
	root := &branch{}
	for i := range table {
		b := root
		for _, part := range strings.Split(strings.Trim(table[i].pattern, "/"), "/") {
			b = b.step(part)
		}
		if b.here == nil {
			b.here = &handlers{}
		}
		for _, m := range strings.Fields(table[i].methods) {
			b.here.add(m, &table[i])
		}
	}
	return router{root}
}

func (b *branch) step(part string) *branch {
	if strings.HasPrefix(part, "{") {
		if b.any == nil {
			b.any, b.anyVar = &branch{}, strings.Trim(part, "{}")
		}
		return b.any
	}
	if b.parts == nil {
		b.parts = make(map[string]*branch)
	}
	if b.parts[part] == nil {
		b.parts[part] = &branch{}
	}
	return b.parts[part]
}

// find returns the handlers of a path and fills in its variables, or returns nil.
func (r router) find(segments []string, v *vars) *handlers { return r.root.find(segments, v) }

func (b *branch) find(segments []string, v *vars) *handlers {
	if len(segments) == 0 {
		return b.here
	}
	if next := b.parts[segments[0]]; next != nil {
		if h := next.find(segments[1:], v); h != nil {
			return h
		}
	}
	if b.any == nil || segments[0] == "" {
		return nil
	}
	h := b.any.find(segments[1:], v)
	if h != nil {
		switch b.anyVar {
		case "index":
			v.index = segments[0]
		case "id":
			v.id = segments[0]
		default:
			v.name = segments[0]
		}
	}
	return h
}
