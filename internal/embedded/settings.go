package embedded

import (
	"slices"
	"strings"

	"optimist/rewrite/tree"
)

// settings are an index's settings as flat names with the prefix "index.", sorted.
type settings []param

func (s settings) get(name string) (string, bool) { return params(s).lookup(name) }

func (s *settings) set(name, value string) {
	i, found := slices.BinarySearchFunc(*s, name, func(p param, n string) int { return strings.Compare(p.name, n) })
	if found {
		(*s)[i].value = value
		return
	}
	*s = slices.Insert(*s, i, param{name, value})
}

// read takes the settings of a request's body, nested or flat, with or without the prefix. null removes a setting.
func (s *settings) read(n *node, prefix string) {
	for _, kid := range n.kids {
		name := prefix + kid.name
		switch {
		case kid.kind == tree.Object:
			s.read(kid, name+".")
			continue
		case name != "index" && !strings.HasPrefix(name, "index."):
			name = "index." + name
		}
		if kid.kind == tree.Null {
			*s = slices.DeleteFunc(*s, func(p param) bool { return p.name == name })
			continue
		}
		s.set(name, strings.Join(kid.texts(), ","))
	}
}

// appendNested appends the settings as nested objects.
func (s settings) appendNested(dst []byte) []byte {
	dst = append(dst, '{')
	var open []string
	for _, p := range s {
		path := strings.Split(p.name, ".")
		parents := path[:len(path)-1]
		same := 0
		for same < len(open) && same < len(parents) && open[same] == parents[same] {
			same++
		}
		for range len(open) - same {
			dst = append(dst, '}')
		}
		for _, name := range parents[same:] {
			dst = append(appendName(dst, name), '{')
		}
		open = parents
		dst = appendString(appendName(dst, path[len(path)-1]), p.value)
	}
	for range open {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (s settings) appendFlat(dst []byte) []byte {
	dst = append(dst, '{')
	for _, p := range s {
		dst = appendString(appendName(dst, p.name), p.value)
	}
	return append(dst, '}')
}
