package tenantheader

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/wire"
)

func fields(nameValue ...string) (list []wire.Field) {
	for i := 0; i+1 < len(nameValue); i += 2 {
		list = append(list, wire.Field{Name: []byte(nameValue[i]), Value: []byte(nameValue[i+1])})
	}
	return list
}

func at(seqNo int64) doc.Numbers { return doc.Numbers{SeqNo: seqNo, PrimaryTerm: 1} }

// finder is one whose finds are written down.
func finder() (f *Finder, found *[]string) {
	f, found = New(), new([]string)
	f.Found = func(name string) { *found = append(*found, name) }
	return f, found
}

// tenants has clients read documents that are others by a field. Every request has an id besides, and a version of its client's program.
func tenants(f *Finder, reads int, document func(tenant string, id, read int) doc.Numbers) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range reads {
		tenant, id := []string{"a", "b", "c"}[r.IntN(3)], r.IntN(1000)
		if r.IntN(2) == 0 {
			id %= 5
		}
		ref := doc.Ref{Index: "shop", ID: fmt.Sprint(id)}
		f.Saw([]byte("who"), &ref, document(tenant, id, n),
			fields("X-Shop", tenant, "x-id", fmt.Sprint(r.Uint64()), "X-Version", fmt.Sprint(r.IntN(2))))
	}
}

func TestAFieldByWhichDocumentsAreOthersIsToldOnce(t *testing.T) {
	for name, document := range map[string]func(tenant string, id, read int) doc.Numbers{
		"they stay as they are": func(tenant string, id, _ int) doc.Numbers { return at(int64(7*id + 3*int(tenant[0]))) },
		"they are written":      func(tenant string, id, n int) doc.Numbers { return at(int64(n/100 + 1000*int(tenant[0]))) },
		"one tenant has none": func(tenant string, id, _ int) (none doc.Numbers) {
			if tenant == "b" {
				return none
			}
			return at(int64(id))
		},
	} {
		f, found := finder()
		if tenants(f, 10_000, document); !slices.Equal(*found, []string{"x-shop"}) {
			t.Errorf("%s: %q", name, *found)
		}
	}
}

func TestFieldsThatTellNothingApartAreNotTold(t *testing.T) {
	lag := rand.New(rand.NewPCG(3, 4))
	for name, document := range map[string]func(tenant string, id, read int) doc.Numbers{
		"one tenant":      func(_ string, id, _ int) doc.Numbers { return at(int64(id)) },
		"writes":          func(_ string, id, n int) doc.Numbers { return at(int64(n / 3)) },
		"copies that lag": func(_ string, id, n int) doc.Numbers { return at(int64(n/300 - lag.IntN(2))) },
		"deletes": func(_ string, id, n int) doc.Numbers {
			return doc.Numbers{SeqNo: int64(n), PrimaryTerm: int64(n / 10 % 2)}
		},
		"an index anew": func(_ string, id, n int) doc.Numbers { return at(int64(n % 5000)) },
		"new primary terms": func(_ string, id, n int) doc.Numbers {
			return doc.Numbers{SeqNo: int64(n / 7), PrimaryTerm: int64(1 + n/1000)}
		},
	} {
		f, found := finder()
		if tenants(f, 15_000, document); len(*found) > 0 {
			t.Errorf("%s: %q", name, *found)
		}
	}
}

// Whoever sends fields of many names, or long ones, takes no memory by it, and hides nothing for long.
func TestWhatClientsSendIsBounded(t *testing.T) {
	f, found := finder()
	ref := doc.Ref{Index: "i", ID: "1"}
	alternate := func(times int, name string, long bool) {
		for n := range times {
			value := fmt.Sprint(n % 2)
			if long {
				value += strings.Repeat("x", longest)
			}
			f.Saw(nil, &ref, at(int64(n%2)), fields(name, value))
		}
	}
	for i := range 1000 {
		alternate(5, fmt.Sprint("junk-", i), false)
	}
	if len(f.suspects) > names || len(*found) > names {
		t.Errorf("%d are suspected, and %d were told", len(f.suspects), len(*found))
	}
	if alternate(100, "X-Shop", true); slices.Contains(*found, "x-shop") {
		t.Error("a long value is compared")
	}
	if alternate(100, "X-Shop", false); !slices.Contains(*found, "x-shop") {
		t.Errorf("%q", *found)
	}
	for i := range 100 {
		alternate(100, fmt.Sprint("more-", i), false)
	}
	if len(*found) != names {
		t.Errorf("%d were told", len(*found))
	}
}

func TestLookingAtAReadAllocatesNothing(t *testing.T) {
	f, _ := finder()
	ref, list := doc.Ref{Index: "i", ID: "1"}, fields("X-Shop", "a", "X-Id", "b")
	n := int64(0)
	if a := testing.AllocsPerRun(100, func() { n++; f.Saw([]byte("who"), &ref, at(n), list) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkSaw(b *testing.B) {
	f, _ := finder()
	ref, list := doc.Ref{Index: "orders", ID: "4711"}, fields("X-Forwarded-For", "192.0.2.1", "X-Id", "b")
	b.ReportAllocs()
	for b.Loop() {
		f.Saw([]byte("0123456789abcdef"), &ref, at(5), list)
	}
}
