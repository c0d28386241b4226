package es

import (
	"iter"

	"optimist/internal/jsontext"
)

// Member is the value that keys lead to from the top of the engine's JSON, nil where there is none. Nothing is copied.
func Member(body []byte, keys ...string) []byte {
	for _, want := range keys {
		var found []byte
		s := jsontext.Scan(body)
		for found == nil && s.IsObject() && s.Next() {
			if s.Named(want) {
				found = s.Text()
			}
		}
		body = found
	}
	return body
}

// Elements are those of the array that keys lead to, each as it stands there. It stops at the first byte that can't be.
func Elements(body []byte, keys ...string) iter.Seq[[]byte] {
	body = Member(body, keys...)
	return func(yield func([]byte) bool) {
		s := jsontext.Scan(body)
		for !s.IsObject() && s.Next() && yield(s.Text()) {
		}
	}
}
