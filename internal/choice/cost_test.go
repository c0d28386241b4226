package choice

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// deepAndWide is a document of so many bytes: half of them are the keys of objects in objects, the other half are members of the innermost.
func deepAndWide(size int) []byte {
	const depth = 100
	key := strings.Repeat("k", size/2/depth)
	var wide strings.Builder
	for i := 0; wide.Len() < size/2; i++ {
		fmt.Fprintf(&wide, `"%d":1,`, i)
	}
	return []byte(strings.Repeat(`{"`+key+`":`, depth) + "{" + strings.TrimSuffix(wide.String(), ",") + "}" + strings.Repeat("}", depth))
}

// allocated is how many bytes a call takes from the heap.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The path to each member was a text of its own: of a document with long keys, and many members below them, that was the product of the two.
func TestTwiceTheDocumentIsTwiceTheMemory(t *testing.T) {
	const size = 32 << 10
	took := func(size int) uint64 {
		sent, seen := deepAndWide(size), []byte(`{"a":1}`)
		return allocated(func() { Recent(&Request{Sent: sent}, [][]byte{seen}, "") })
	}
	small, large := took(size), took(2*size)
	t.Logf("%d bytes for %d, and %d for twice the size", small, size, large)
	if large > 3*small || large > 200*2*size {
		t.Errorf("%d bytes for a document of %d, and %d for twice the size", small, size, large)
	}
}
