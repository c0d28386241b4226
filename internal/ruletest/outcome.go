package ruletest

import (
	"net/url"
	"slices"
	"strings"
)

// outcome is an Optimist-Outcome field, taken apart.
type outcome struct {
	kind   string
	params map[string]string
}

func (o *outcome) param(name string) string { return o.params[name] }

// readOutcome reads a token with parameters, whose values are tokens, numbers or strings without escapes (RFC 8941).
func readOutcome(field string) outcome {
	o := outcome{params: map[string]string{}}
	o.kind, field, _ = strings.Cut(field, ";")
	for field != "" {
		var pair string
		if i := strings.Index(field, `="`); i >= 0 && !strings.Contains(field[:i], ";") {
			end := strings.IndexByte(field[i+2:], '"')
			if end < 0 {
				return o
			}
			end += i + 3
			pair, field = field[:end], strings.TrimPrefix(field[end:], ";")
		} else {
			pair, field, _ = strings.Cut(field, ";")
		}
		name, value, _ := strings.Cut(pair, "=")
		o.params[name] = strings.Trim(value, `"`)
	}
	return o
}

// overwrote are the paths that an outcome names, in order; what it leaves out stands at the end as its number (+3).
func overwrote(value string) []string {
	var paths []string
	for _, p := range strings.Fields(value) {
		if plain, err := url.PathUnescape(p); err == nil {
			p = plain
		}
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}
