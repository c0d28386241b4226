package write

import (
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
)

// filterPath is what the parameter filter_path keeps of an answer: patterns of dotted paths, in which `*` is any text of one name and `**`
// any number of names; one that begins with a minus sign takes out. What is taken out counts first.
type filterPath struct{ in, out [][]string }

func newFilterPath(value string) *filterPath {
	f := &filterPath{}
	for _, p := range strings.Split(value, ",") {
		p = strings.TrimSpace(p)
		if rest, out := strings.CutPrefix(p, "-"); out {
			f.out = append(f.out, strings.Split(rest, "."))
		} else if p != "" {
			f.in = append(f.in, strings.Split(p, "."))
		}
	}
	return f
}

// of is what is kept of an answer.
func (f *filterPath) of(body []byte) []byte {
	out := body
	if len(f.out) > 0 {
		out, _ = filtered(make([]byte, 0, len(out)), gjson.ParseBytes(out), f.out, true)
	}
	if len(f.in) > 0 {
		out, _ = filtered(make([]byte, 0, len(out)), gjson.ParseBytes(out), f.in, false)
	}
	return out
}

// filtered appends what the patterns leave of a container: with taken all but what they name, else only that.
func filtered(dst []byte, v gjson.Result, patterns [][]string, taken bool) (out []byte, empty bool) {
	object := v.IsObject()
	dst, empty = append(dst, "[{"[boolToInt(object)]), true
	v.ForEach(func(k, v gjson.Result) bool {
		next, named := patterns, false
		if object {
			next, named = below(patterns, k.String())
		}
		if named && taken {
			return true
		}
		mark := len(dst)
		if !empty {
			dst = append(dst, ',')
		}
		if object {
			dst = append(append(dst, k.Raw...), ':')
		}
		kept := named || taken
		switch container := v.IsObject() || v.IsArray(); {
		case !container && (kept), named, taken && len(next) == 0:
			dst, kept = append(dst, v.Raw...), true
		case container:
			var nothing bool
			dst, nothing = filtered(dst, v, next, taken)
			kept = !nothing
		}
		if !kept {
			dst = dst[:mark]
			return true
		}
		empty = false
		return true
	})
	return append(dst, "]}"[boolToInt(object)]), empty
}

// below are the patterns' rests behind a name; named says that one of them ends with it.
func below(patterns [][]string, name string) (next [][]string, named bool) {
	for _, p := range patterns {
		if p[0] == "**" {
			next = withRest(next, p)
			if len(p) == 1 {
				return next, true
			}
			p = p[1:]
		}
		if !api.Wildcard(p[0], name) {
			continue
		}
		if len(p) == 1 {
			return next, true
		}
		next = withRest(next, p[1:])
	}
	return next, false
}

// withRest appends the rest of a pattern, unless it is there: two stars are led to the same rest in many ways, twice as many at each level.
func withRest(rests [][]string, rest []string) [][]string {
	last := len(rest) - 1
	for i := len(rests) - 1; i >= 0; i-- {
		other := rests[i]
		if &other[len(other)-1] != &rest[last] {
			break // of another pattern: what is left of one stands together
		}
		if len(other) == len(rest) {
			return rests
		}
	}
	return append(rests, rest)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
