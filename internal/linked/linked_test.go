package linked

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type element struct {
	Links[*element]
	n int
}

func TestAListIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l List[*element]
		var want []*element
		for n := range 50 {
			some := func() (*element, int) {
				i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
				return want[i], i
			}
			switch do := rapid.IntRange(0, 3).Draw(t, "do"); {
			case do < 2 || len(want) == 0:
				e := &element{n: n}
				l.Push(e)
				want = append(want, e)
			case do == 2:
				e, i := some()
				l.Cut(e)
				if want = slices.Delete(want, i, i+1); e.Older != nil || e.Newer != nil {
					t.Fatal("it still has neighbours")
				}
			default:
				e, i := some()
				l.Renew(e)
				want = append(slices.Delete(want, i, i+1), e)
			}
			var up, down []*element
			for e := l.Oldest; e != nil; e = e.Newer {
				up = append(up, e)
			}
			for e := l.Newest; e != nil; e = e.Older {
				down = append(down, e)
			}
			if slices.Reverse(down); !slices.Equal(up, want) || !slices.Equal(down, want) {
				t.Fatalf("%v and %v, want %v", up, down, want)
			}
		}
	})
}
