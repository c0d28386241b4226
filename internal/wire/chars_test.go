package wire

import (
	"bytes"
	"testing"
)

func TestControlBytesAreFoundAtEveryPlace(t *testing.T) {
	for length := range 40 {
		for at := range length {
			for c := range 256 {
				b := bytes.Repeat([]byte{0xff}, length)
				if at%2 == 0 {
					b = bytes.Repeat([]byte(" "), length)
				}
				b[at] = byte(c)
				want := length
				if c < ' ' && c != '\t' || c == 0x7f {
					want = at
				}
				if got := valueLen(b); got != want {
					t.Fatalf("%q: %d, want %d", b, got, want)
				}
			}
		}
	}
}
