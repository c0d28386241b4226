package embedded

import (
	"slices"
	"strings"

	"optimist/internal/uri"
	"optimist/rewrite/tree"
)

// settings are an index's settings as flat names with the prefix "index.", sorted.
type settings []uri.Pair

func (s settings) get(name string) (string, bool) { return params(s).lookup(name) }

func (s *settings) set(name, value string) {
	i, found := slices.BinarySearchFunc(*s, name, func(p uri.Pair, n string) int { return strings.Compare(p.Name, n) })
	if found {
		(*s)[i].Value = value
		return
	}
	*s = slices.Insert(*s, i, uri.Pair{Name: name, Value: value})
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
			*s = slices.DeleteFunc(*s, func(p uri.Pair) bool { return p.Name == name })
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
		path := strings.Split(p.Name, ".")
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
		dst = appendString(appendName(dst, path[len(path)-1]), p.Value)
	}
	for range open {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (s settings) appendFlat(dst []byte) []byte {
	dst = append(dst, '{')
	for _, p := range s {
		dst = appendString(appendName(dst, p.Name), p.Value)
	}
	return append(dst, '}')
}
