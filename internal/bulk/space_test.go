package bulk

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// Whatever one goroutine appends, no other sees it: texts that are longer than was thought take other memory.
func TestTextsOfASpaceDontOverlap(t *testing.T) {
	var s space
	var all sync.WaitGroup
	for of := range 4 {
		all.Go(func() {
			var texts [][]byte
			for n := range 600 {
				texts = append(texts, append(s.take(n), strings.Repeat(string(rune('a'+of)), n+n%3)...))
			}
			for n, text := range texts {
				if len(text) != n+n%3 || bytes.Count(text, []byte{byte('a' + of)}) != len(text) {
					t.Errorf("text %d of %c is %s", n, 'a'+of, text)
				}
			}
		})
	}
	all.Wait()
	if large := s.take(largestPiece); cap(large) != largestPiece || len(large) != 0 {
		t.Errorf("%d of %d bytes", len(large), cap(large))
	}
}

// Short texts take few pieces, however many they are.
func TestASpaceTakesFewPieces(t *testing.T) {
	var s space
	taken := testing.AllocsPerRun(1, func() {
		s = space{}
		for range 1000 {
			s.take(100)
		}
	})
	if taken > 20 {
		t.Errorf("1,000 texts of 100 bytes take %v pieces of memory", taken)
	}
}
