package fairqueue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func places(from, n int) (all []*Place[int]) {
	for i := range n {
		all = append(all, &Place[int]{Value: from + i})
	}
	return all
}

func TestABackgroundPlaceIsPassedOverOnlyForSoLong(t *testing.T) {
	var l Line[int]
	for _, p := range places(100, 2) {
		l.Join(p, true)
	}
	for _, p := range places(1, 3*Patience) {
		l.Join(p, false)
	}
	var order []int
	for p := l.Next(); p != nil; p = l.Next() {
		order = append(order, p.Value)
	}
	if at := slices.Index(order, 100); at != Patience {
		t.Errorf("the first background place went after %d others: %v", at, order)
	}
	if at := slices.Index(order, 101); at != 2*Patience+1 {
		t.Errorf("the second background place went at %d: %v", at, order)
	}
}

func TestWhoGoesAlongKeepsTheOrder(t *testing.T) {
	var l Line[int]
	l.Join(&Place[int]{Value: 3}, true)
	for _, p := range places(1, 2) {
		l.Join(p, false)
	}
	even := func(n int) bool { return n%2 == 0 }
	if p := l.NextIf(even); p != nil {
		t.Errorf("%d went before the first of its class", p.Value)
	}
	all := func(int) bool { return true }
	for want := 1; want <= 3; want++ {
		if p := l.NextIf(all); p == nil || p.Value != want {
			t.Errorf("%+v, want %d", p, want)
		}
	}
	if p := l.NextIf(all); p != nil || !l.Empty() {
		t.Errorf("%+v of an empty line", p)
	}
}

// TestAClassThatMayNotGoPassesNobodyOver: patience is with who may go.
func TestAClassThatMayNotGoPassesNobodyOver(t *testing.T) {
	var turns Turns
	for range 3 * Patience {
		if b, ok := turns.Next(true, false, true); b || !ok {
			t.Fatal("a background place went that may not")
		}
	}
	for n := range Patience + 1 {
		if b, ok := turns.Next(true, true, true); b != (n == Patience) || !ok {
			t.Errorf("%d: the background goes: %v", n, b)
		}
	}
	if _, ok := turns.Next(false, false, true); ok {
		t.Error("somebody went though nobody may")
	}
}

// TestALineIsAsSimpleAsTwoSlices compares it with a model.
func TestALineIsAsSimpleAsTwoSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Line[int]
		var model [2][]*Place[int]
		gone := &Place[int]{Value: -1}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				p, class := &Place[int]{Value: i}, rapid.IntRange(0, 1).Draw(t, "class")
				l.Join(p, class == 1)
				model[class] = append(model[class], p)
			case 2:
				class := rapid.IntRange(0, 1).Draw(t, "class")
				if n := len(model[class]); n > 0 {
					at := rapid.IntRange(0, n-1).Draw(t, "place")
					gone = model[class][at]
					model[class] = slices.Delete(model[class], at, at+1)
					if !l.Leave(gone) {
						t.Fatal("it wasn't in the line")
					}
				}
				if l.Leave(gone) {
					t.Fatal("it left twice")
				}
			case 3:
				p := l.Next()
				class := slices.IndexFunc(model[:], func(q []*Place[int]) bool { return len(q) > 0 && q[0] == p })
				if (p == nil) != (len(model[0])+len(model[1]) == 0) || p != nil && class < 0 {
					t.Fatalf("%+v is nobody's turn", p)
				}
				if p != nil {
					model[class] = model[class][1:]
				}
			}
			if f, b := l.Len(); f != len(model[0]) || b != len(model[1]) || l.Empty() != (f+b == 0) {
				t.Fatalf("%d and %d wait, want %d and %d", f, b, len(model[0]), len(model[1]))
			}
		}
	})
}
