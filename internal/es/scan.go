package es

import "bytes"

// members calls visit with the key, without its quotes, and the value of each member at the top of a JSON object, until visit returns
// false. It neither copies nor allocates, and takes the engine's JSON to be well-formed: at the first byte that can't be, it stops, and it
// leaves out a last value that may go on behind b.
// Keys stay as they are written: one with an escape in it is like none that the engine uses.
func members(b []byte, visit func(key, value []byte) bool) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	for i++; ; i++ {
		start := skipSpace(b, i)
		end := stringEnd(b, start)
		if end < 0 {
			return
		}
		colon := skipSpace(b, end)
		if colon >= len(b) || b[colon] != ':' {
			return
		}
		from := skipSpace(b, colon+1)
		to := valueEnd(b, from)
		if to <= from || to >= len(b) || !visit(b[start+1:end-1], b[from:to]) {
			return
		}
		if i = skipSpace(b, to); i >= len(b) || b[i] != ',' {
			return
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is the index behind the string that begins at i, -1 where none does.
func stringEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' { // the quote that the string begins with ends this
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// valueEnd is the index behind the value that begins at i, -1 where it has no end.
func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return i
}
