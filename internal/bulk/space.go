package bulk

import "sync/atomic"

// space is memory for many short texts, in few pieces. A piece lives as long as any of its texts. The zero value has no piece yet. Many
// goroutines may use a space at the same time.
type space struct{ last atomic.Pointer[piece] }

type piece struct {
	text []byte
	used atomic.Int64
}

// The sizes of pieces, in bytes: each is at least twice as large as the one before it.
const (
	firstPiece   = 1 << 10
	largestPiece = 64 << 10
)

// take returns an empty slice with room for n bytes. If the caller appends more, Go moves the slice to other memory.
func (s *space) take(n int) []byte {
	for {
		p, size := s.last.Load(), firstPiece
		if p != nil {
			if end := int(p.used.Add(int64(n))); end <= len(p.text) {
				return p.text[end-n : end-n : end]
			}
			size = min(2*len(p.text), largestPiece)
		}
		if size = max(size, 4*n); size > largestPiece { // the rest of the piece would be wasted
			return make([]byte, 0, n)
		}
		s.last.CompareAndSwap(p, &piece{text: make([]byte, size)})
	}
}
