package quota

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOneOwnerTakesNothingFromAnother(t *testing.T) {
	m := NewMap[string, int, bool](100)
	for i := range 30 {
		m.Add("few", i, true)
	}
	for i := 1000; i < 11_000; i++ {
		m.Add("many", i, true)
	}
	for i := range 30 {
		if !m.Contains(i) {
			t.Errorf("%d is gone, of an owner with less than its half", i)
		}
	}
	if m.Len() != 98 {
		t.Errorf("%d values in a room of 100, which two of the owners take", m.Len())
	}
	if !m.Contains(10_999) {
		t.Error("the newest isn't there")
	}
}

func TestManyOwnersTakeNoMoreRoom(t *testing.T) {
	m := NewMap[int, int, bool](100)
	for i := range 10_000 {
		m.Add(i, i, true)
		if !m.Contains(i) {
			t.Fatal("the newest isn't there")
		}
	}
	if m.Len() != 50 {
		t.Errorf("%d values, with as many owners", m.Len())
	}
}

func TestWhatIsUsedStays(t *testing.T) {
	m := NewMap[string, int, int](4)
	for i := range 3 {
		m.Add("a", i, 10*i)
	}
	if v, ok := m.Get(0); v != 0 || !ok {
		t.Errorf("%d, %v", v, ok)
	}
	m.Add("a", 3, 30)
	if _, ok := m.Get(1); ok || !m.Contains(0) || !m.Contains(2) {
		t.Error("another one has left than the one that wasn't used")
	}
	if _, ok := m.Get(7); ok {
		t.Error("a value that nobody added")
	}
	m.Remove(7)
}

// TestAMapKeepsItsAccounts compares it with the lists of its owners.
func TestAMapKeepsItsAccounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.IntRange(0, 20).Draw(t, "bound")
		m := NewMap[int, int, int](bound)
		for n := range rapid.IntRange(1, 80).Draw(t, "steps") {
			k := rapid.IntRange(0, 30).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 4:
				was := m.Len()
				v, ok := m.Peek(k)
				if ok != m.Contains(k) || ok != m.Set(k, n) || m.Len() != was || v > n {
					t.Fatal(v, ok)
				}
			case 5:
				if held := slices.Collect(m.Keys()); len(held) != m.Len() || slices.Contains(held, k) != m.Contains(k) {
					t.Fatal(held)
				}
				if rapid.IntRange(0, 9).Draw(t, "clear") == 0 {
					m.Clear()
				}
			case 0:
				m.Remove(k)
				if m.Contains(k) {
					t.Fatal("it is there")
				}
			case 1:
				if v, ok := m.Get(k); ok != m.Contains(k) || v > n {
					t.Fatal(v, ok)
				}
			default:
				m.Add(rapid.IntRange(0, 5).Draw(t, "owner"), k, n)
				if v, ok := m.Get(k); !ok || v != n {
					t.Fatal("what was added isn't there")
				}
			}
			m.audit(t)
		}
	})
}

func (m *Map[O, K, V]) audit(t *rapid.T) {
	items := 0
	for i, o := range m.bySize.All() {
		held := 0
		for it := o.Newest; it != nil; it = it.Older {
			if held++; it.owner != o || m.items[it.key] != it {
				t.Fatal("a value that is nobody's")
			}
		}
		if items += held; int64(held) != o.Size() || held == 0 || o.place != i || m.owners[o.name] != o {
			t.Fatalf("%d values of an owner, counts %d", held, o.Size())
		}
		if i > 0 && o.Size() > m.bySize.All()[(i-1)/2].Size() {
			t.Fatal("the largest isn't the first")
		}
	}
	if items != len(m.items) || m.bySize.Len() != len(m.owners) || items > 1 && items+len(m.owners) > max(m.bound, 2) {
		t.Fatalf("%d values of %d owners in a room of %d", len(m.items), len(m.owners), m.bound)
	}
}
