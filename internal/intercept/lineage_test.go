package intercept

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"optimist/internal/doc"
)

func TestLostUpdatesAreCountedOnce(t *testing.T) {
	ref := doc.Ref{Index: "shop", ID: "1"}
	for name, c := range map[string]struct {
		bases []int64 // of the versions 2, 3, …
		want  int64
	}{
		"one after the other":        {[]int64{1, 2, 3}, 0},
		"two from one":               {[]int64{1, 1}, 1},
		"many from one":              {[]int64{1, 1, 1, 1}, 3},
		"round after round":          {[]int64{1, 1, 3, 3}, 2},
		"what comes back":            {[]int64{1, 1, 2}, 1},
		"and goes again":             {[]int64{1, 1, 2, 3}, 2},
		"others, past the proxy":     {[]int64{1, 0, 0, 2}, 2},
		"from something long before": {[]int64{1, 2, 3, 4, 1}, 4},
	} {
		l, sum := newLineages(), int64(0)
		for i, base := range c.bases {
			if base > 0 {
				l.begin(1, ref)
				sum += l.end(ref, edge{base, int64(i) + 2})
			}
		}
		if sum != c.want {
			t.Errorf("%s: %d, want %d", name, sum, c.want)
		}
	}
}

// Many write at once, each from a version of a moment ago: what is counted is what is missing in the end, but for a few that came back.
func TestWhatIsCountedIsWhatIsMissing(t *testing.T) {
	const writes = 1000
	ref := doc.Ref{Index: "shop", ID: "1"}
	l, counted := newLineages(), int64(0)
	var late []edge
	alive := map[int64]map[int64]bool{1: {}}
	for version := int64(2); version < writes; version++ {
		base := max(version-1-rand.Int64N(16), 1)
		l.begin(1, ref)
		if base%3 == 0 { // and some answers come late
			late = append(late, edge{base, version})
		} else {
			counted += l.end(ref, edge{base, version})
		}
		for len(late) > 8 {
			counted += l.end(ref, late[0])
			late = late[1:]
		}
		alive[version] = map[int64]bool{version: true}
		for v := range alive[base] {
			alive[version][v] = true
		}
	}
	for _, e := range late {
		counted += l.end(ref, e)
	}
	lost := writes - 2 - int64(len(alive[writes-1]))
	if d := counted - lost; d < 0 || d > lost/20 {
		t.Errorf("%d are missing, %d are counted", lost, counted)
	}
}

// Whoever writes made-up documents has none of another address forgotten, nor fills the memory with long names.
func TestManyDocumentsOfOneAddressHaveNoneOfAnotherForgotten(t *testing.T) {
	ref, l := doc.Ref{Index: "shop", ID: "1"}, newLineages()
	l.begin(1, ref)
	for i := range 2 * maxDocuments {
		l.begin(2, doc.Ref{Index: "shop", ID: strconv.Itoa(i + 2)})
	}
	l.begin(2, doc.Ref{Index: "shop", ID: strings.Repeat("x", maxRef)})
	if !l.documents.Contains(ref) || l.documents.Len() > maxDocuments || l.documents.Contains(doc.Ref{Index: "shop", ID: strings.Repeat("x", maxRef)}) {
		t.Errorf("%d documents are known; the first: %v", l.documents.Len(), l.documents.Contains(ref))
	}
}
