package rank

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// Seats are known by row and seat together. Two clients book two seats of one row, each from revision 1.
func TestEntriesKnownByTwoMembers(t *testing.T) {
	for name, e := range map[string][3]string{
		"row and seat":  {`{"row":1,"seat":1,"free":%v},{"row":1,"seat":2,"free":%v}`, "true", "false"},
		"room and time": {`{"room":"Ada","at":"09:00","by":%v},{"room":"Ada","at":"10:00","by":%v}`, "null", `"eve"`},
	} {
		body := func(a, b string) string { return `{"list":[` + fmt.Sprintf(e[0], a, b) + `]}` }
		cs := []Candidate{{Revision: at(1, body(e[1], e[1]))}, {Revision: at(2, body(e[2], e[1]))}}
		c := Likeliest(cs, Sent{Body: []byte(body(e[1], e[2]))})
		if c.Best != 0 {
			t.Errorf("%s: the base is revision %d, ambiguous %v: the other client's change is undone", name, c.Best+1, c.Ambiguous)
		}
	}
}

// The digest of documents that differ must differ: otherwise a change looks like an unchanged save.
func TestDigestsOfDifferentDocumentsDiffer(t *testing.T) {
	for _, d := range [][2]string{
		{`{"l":[{"row":1,"seat":1,"free":true},{"row":1,"seat":2,"free":false}]}`, `{"l":[{"row":1,"seat":1,"free":false},{"row":1,"seat":2,"free":true}]}`},
		{`{"l":[{"room":"A","at":"09:00","by":"x"},{"room":"A","at":"10:00","by":null}]}`, `{"l":[{"room":"A","at":"09:00","by":null},{"room":"A","at":"10:00","by":"x"}]}`},
	} {
		if a, b := digestOf([]byte(d[0])), digestOf([]byte(d[1])); a.distance(b) == 0 {
			t.Errorf("no difference between\n%s\n%s", d[0], d[1])
		}
	}
}

// Revisions may have no known version: a search may not show it. In quiet, saving what isn't the newest has its price all the same.
func TestOldSaveOfRevisionsWithoutVersions(t *testing.T) {
	for _, versions := range []bool{true, false} {
		cs := []Candidate{{Revision: at(1, `{"state":"waiting for ada"}`)}, {Revision: at(2, `{"state":"done by ada now"}`)}}
		if !versions {
			cs[0].Version, cs[1].Version = 0, 0
		}
		if c := Likeliest(cs, Sent{Body: []byte(`{"state":"waiting for ada"}`), Quiet: true}); c.Best != 1 {
			t.Errorf("versions known: %v; the base is %d, ambiguous %v", versions, c.Best, c.Ambiguous)
		}
	}
}

// A card that moves from one column to another is a change, although both columns are lists without names.
func TestACardThatMovesBetweenListsIsAChange(t *testing.T) {
	const before, after = `{"columns":[["a","b"],["c"],[]]}`, `{"columns":[["a"],["c","b"],[]]}`
	if a, b := digestOf([]byte(before)), digestOf([]byte(after)); a.distance(b) == 0 {
		t.Error("no difference")
	}
}

// Entries that have one name share a place: that of the first one.
func TestEntriesOfOneNameShareAPlace(t *testing.T) {
	d, places := digestOf([]byte(oneName(100, 7))), map[uint64]int{}
	for i := range d.members {
		places[d.place(i)]++
		if at := d.find(len(d.members), d.items[i].key); at != i {
			t.Errorf("member %d is found at %d", i, at)
		}
	}
	var most []int
	for _, n := range places {
		most = append(most, n)
	}
	slices.Sort(most)
	if want := []int{1, 100, 100, 100}; !slices.Equal(most, want) { // the list; the entries, their names and their values
		t.Errorf("places of %d members, want %d", most, want)
	}
}

// What a digest takes counts into the memory of its session.
func TestADigestKnowsItsSize(t *testing.T) {
	d := digestOf([]byte(large(20)))
	size := func(n int, of reflect.Type) int64 { return int64(n) * int64(of.Size()) }
	want := size(cap(d.items), reflect.TypeFor[item]()) + size(cap(d.members), reflect.TypeFor[member]()) + size(cap(d.parts), reflect.TypeFor[part]()) + size(cap(d.numbers), reflect.TypeFor[number]()) +
		size(cap(d.lists), reflect.TypeFor[list]()) + size(cap(d.elements), reflect.TypeFor[element]()) + size(1, reflect.TypeFor[Digest]()) +
		size(1, reflect.TypeFor[delta]()) + size(mostKept, reflect.TypeFor[difference]())
	if got := d.Size(); got < want || got > want+64 {
		t.Errorf("%d bytes, want %d and a little", got, want)
	}
}

func digestOf(source []byte) *Digest { return NewDigest(source, "") }

// A rule that merges a list by a field says that the field tells its entries apart.
func TestKeysOfARuleIdentifyEntries(t *testing.T) {
	held := []Candidate{
		heldAt(1, `{"lines":[{"productId":"p1","qty":4},{"productId":"p2","qty":7}]}`), heldAt(2, `{"lines":[{"productId":"p1","qty":5},{"productId":"p2","qty":7}]}`),
	}
	sent := Sent{Body: []byte(`{"lines":[{"productId":"p1","qty":4},{"productId":"p2","qty":8}]}`), Keys: NewKeys([]string{"sku", "productId"})}
	if got := Likeliest(held, sent); got.Best != 0 {
		t.Errorf("%+v", got)
	}
	d := held[0].Digest
	if sent.Keys = NewKeys([]string{"productId", "sku", "sku"}); Likeliest(held, sent).Best != 0 || held[0].Digest != d {
		t.Error("the same keys in another order need another digest")
	}
	if sent.Keys = NewKeys(nil); Likeliest(held, sent).Best != 0 || held[0].Digest == d {
		t.Error("other keys need no other digest")
	}
	entries := 0
	for _, m := range d.members {
		if m.entry {
			entries++
		}
	}
	if entries != 2 {
		t.Errorf("%d entries have a place of their own", entries)
	}
}
