package fairqueue

import (
	"net/netip"
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

// Places of clients join in one order, and go in another. When b has gone for the first time, more join.
func TestClientsTakeTurns(t *testing.T) {
	clients := map[rune]netip.Addr{}
	for n, r := range "abc" {
		clients[r] = netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
	}
	for _, c := range []struct{ join, again, want string }{
		{"aaabc", "", "abcaa"},
		{"aaaa", "", "aaaa"},
		{"abab", "", "abab"},
		{"aabbc", "", "abcab"},
		{"bac", "aaaa", "bacaaaa"},
		{"aaab", "b", "abbaa"},   // its first turn is over, as is a's
		{"aaab", "bb", "abbaba"}, // the third waits for a's next one
		{"-ab-", "", "-ab-"},
	} {
		var l Line[rune]
		for _, r := range c.join {
			l.Join(&Place[rune]{Value: r, Client: clients[r]}, false)
		}
		var got []rune
		for p := l.Next(); p != nil; p = l.Next() {
			got = append(got, p.Value)
			if p.Value == 'b' && len(c.again) > 0 {
				for _, r := range c.again {
					l.Join(&Place[rune]{Value: r, Client: clients[r]}, false)
				}
				c.again = ""
			}
		}
		if string(got) != c.want {
			t.Errorf("%q went as %q, want %q", c.join, string(got), c.want)
		}
	}
}

// TestALineIsAsSimpleAsTwoSlices compares it with a model. Which client goes next is TestClientsTakeTurns's.
func TestALineIsAsSimpleAsTwoSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Line[int]
		var model [2][]*Place[int]
		gone := &Place[int]{Value: -1}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				client := netip.AddrFrom4([4]byte{rapid.Byte().Draw(t, "client") % 3})
				p, class := &Place[int]{Value: i, Client: client}, rapid.IntRange(0, 1).Draw(t, "class")
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
				if p == nil {
					break // Len tells
				}
				at := -1
				class := slices.IndexFunc(model[:], func(q []*Place[int]) bool {
					at = slices.IndexFunc(q, func(o *Place[int]) bool { return o.Client == p.Client })
					return at >= 0 && q[at] == p
				})
				if class < 0 {
					t.Fatalf("%+v isn't the first of its client", p)
				}
				model[class] = slices.Delete(model[class], at, at+1)
			}
			if f, b := l.Len(); f != len(model[0]) || b != len(model[1]) || l.Empty() != (f+b == 0) {
				t.Fatalf("%d and %d wait, want %d and %d", f, b, len(model[0]), len(model[1]))
			}
		}
	})
}
