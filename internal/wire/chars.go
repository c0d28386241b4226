package wire

import "encoding/binary"

// isToken has the bytes of a token (RFC 9110 §5.6.2). It is a table for speed and never changes.
var isToken = [256]bool{
	'!': true, '#': true, '$': true, '%': true, '&': true, '\'': true, '*': true, '+': true, '-': true, '.': true, '^': true,
	'_': true, '`': true, '|': true, '~': true,
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'A': true, 'B': true, 'C': true, 'D': true, 'E': true, 'F': true, 'G': true, 'H': true, 'I': true, 'J': true, 'K': true,
	'L': true, 'M': true, 'N': true, 'O': true, 'P': true, 'Q': true, 'R': true, 'S': true, 'T': true, 'U': true, 'V': true,
	'W': true, 'X': true, 'Y': true, 'Z': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true, 'g': true, 'h': true, 'i': true, 'j': true, 'k': true,
	'l': true, 'm': true, 'n': true, 'o': true, 'p': true, 'q': true, 'r': true, 's': true, 't': true, 'u': true, 'v': true,
	'w': true, 'x': true, 'y': true, 'z': true,
}

// token reports whether every byte is one of a token.
func token(b []byte) bool {
	for _, c := range b {
		if !isToken[c] {
			return false
		}
	}
	return true
}

// visible reports whether there is neither a space nor a control byte: what a request target may have. Bytes above 127
// aren't of the URI grammar, but clients send them and engines take them.
func visible(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// value reports whether the bytes may stand in a field value: no controls but the tab (RFC 9110 §5.5).
func value(b []byte) bool { return valueLen(b) == len(b) }

// tokenLen returns how many bytes at the beginning are those of a token.
func tokenLen(b []byte) int {
	for i, c := range b {
		if !isToken[c] {
			return i
		}
	}
	return len(b)
}

// valueLen returns how many bytes at the beginning may stand in a field value.
func valueLen(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for {
		// Eight at a time: the high bit of a byte gets set where it is below 0x20, or 0x7f. A borrow may set it in a byte
		// above one that is a control: then the slow loop looks, which is always right.
		for ; i+8 <= len(b); i += 8 {
			x := binary.LittleEndian.Uint64(b[i:])
			del := x ^ 0x7f*ones
			if ((x-0x20*ones)&^x|(del-ones)&^del)&highs != 0 {
				break
			}
		}
		for stop := min(i+8, len(b)); i < stop; i++ {
			if c := b[i]; c < ' ' && c != '\t' || c == 0x7f {
				return i
			}
		}
		if i == len(b) {
			return i
		}
	}
}
