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

// endpoint is a pattern with the routes of all its methods.
type endpoint struct {
	parts  []string
	routes []*route
}

// methodOrder is the order in which the engine names methods.
var methodOrder = []string{"GET", "POST", "PUT", "DELETE", "HEAD"}

// byMethod returns the route that takes a method, or nil.
func (p *endpoint) byMethod(method string) *route {
	for _, r := range p.routes {
		if slices.Contains(strings.Fields(r.methods), method) {
			return r
		}
	}
	return nil
}

// methods are those that the endpoint takes.
func (p *endpoint) methods() []string {
	return slices.DeleteFunc(slices.Clone(methodOrder), func(m string) bool { return p.byMethod(m) == nil })
}

// newRouter returns the endpoints of a table, in the order in which they are tried. A part that is spelt out comes before a variable,
// because a brace sorts behind all letters.
func newRouter(table []route) []*endpoint {
	byPattern := make(map[string]*endpoint)
	var endpoints []*endpoint
	for i := range table {
		pattern := strings.Trim(table[i].pattern, "/")
		p := byPattern[pattern]
		if p == nil {
			p = &endpoint{parts: strings.Split(pattern, "/")}
			byPattern[pattern], endpoints = p, append(endpoints, p)
		}
		p.routes = append(p.routes, &table[i])
	}
	slices.SortFunc(endpoints, func(a, b *endpoint) int { return slices.Compare(a.parts, b.parts) })
	return endpoints
}

// find returns the endpoint of a request and its variables, or nil.
func find(endpoints []*endpoint, segments []string) (*endpoint, vars) {
	for _, p := range endpoints {
		if v, ok := p.match(segments); ok {
			return p, v
		}
	}
	return nil, vars{}
}

func (p *endpoint) match(segments []string) (v vars, ok bool) {
	if len(segments) != len(p.parts) {
		return v, false
	}
	for i, s := range segments {
		switch part := p.parts[i]; {
		case part == s:
		case !strings.HasPrefix(part, "{") || s == "":
			return v, false
		case part == "{index}":
			v.index = s
		case part == "{id}":
			v.id = s
		default:
			v.name = s
		}
	}
	return v, true
}
