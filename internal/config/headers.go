package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Headers are names of request headers. A file may have a single name in place of the list. A single empty name is an empty list.
type Headers []string

// traceparent is the header of the W3C's Trace Context.
const traceparent = "traceparent"

// Names are the headers by which clients name their sessions.
func (h Headers) Names() (names []string) {
	for _, name := range h {
		if !strings.EqualFold(name, traceparent) {
			names = append(names, name)
		}
	}
	return names
}

// Traces reports whether traceparent is among them, so that traces count.
func (h Headers) Traces() bool { return len(h.Names()) < len(h) }

// decodeNode reads a list, or a single name.
func (h *Headers) decodeNode(d *decoder, n *yaml.Node, path string) {
	switch {
	case isNull(n):
	case n.Kind == yaml.SequenceNode:
		d.list(n, reflect.ValueOf(h).Elem(), path)
	default:
		if name, ok := d.str(n, path); ok {
			*h = Headers{}
			if name != "" {
				*h = Headers{name}
				d.mark(path+"[0]", n, n)
			}
		}
	}
}
