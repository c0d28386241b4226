package es

import (
	"iter"

	"optimist/internal/doc"
)

// members calls visit with the key, without its quotes, and the value of each member at the top of a JSON object, until visit
// returns false. It neither copies nor allocates, and takes the engine's JSON to be well-formed: at the first byte that can't be,
// it stops, and it leaves out a last value that may go on behind b. Keys stay as they are written: one with an escape in it is
// like none that the engine uses.
func members(b []byte, visit func(key, value []byte) bool) {
	i := doc.SkipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	for i++; ; i++ {
		start := doc.SkipSpace(b, i)
		end := doc.StringEnd(b, start)
		if end < 0 {
			return
		}
		colon := doc.SkipSpace(b, end)
		if colon >= len(b) || b[colon] != ':' {
			return
		}
		from := doc.SkipSpace(b, colon+1)
		to := doc.ValueEnd(b, from)
		if to <= from || !visit(b[start+1:end-1], b[from:to]) {
			return
		}
		if i = doc.SkipSpace(b, to); i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// Member is the value that keys lead to from the top of the engine's JSON, nil where there is none. Nothing is copied.
func Member(body []byte, keys ...string) []byte {
	for _, want := range keys {
		var found []byte
		members(body, func(key, value []byte) bool {
			if string(key) == want {
				found = value
			}
			return found == nil
		})
		body = found
	}
	return body
}

// Elements are those of the array that keys lead to, each as it stands there. It stops at the first byte that can't be.
func Elements(body []byte, keys ...string) iter.Seq[[]byte] {
	body = Member(body, keys...)
	return func(yield func([]byte) bool) {
		i := doc.SkipSpace(body, 0)
		if i >= len(body) || body[i] != '[' {
			return
		}
		for i++; ; i++ {
			from := doc.SkipSpace(body, i)
			to := doc.ValueEnd(body, from)
			if to <= from || !yield(body[from:to]) {
				return
			}
			if i = doc.SkipSpace(body, to); i >= len(body) || body[i] != ',' {
				return
			}
		}
	}
}
