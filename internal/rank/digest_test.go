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
	d, places := digesterOf([]byte(oneName(100, 7))), map[uint64]int{}
	for i := range d.members {
		places[d.place(i)]++
		if m, it := d.find(d.items[i].key).member(); it != d.items[i] || *m != d.members[i] {
			t.Errorf("member %d is found as %+v", i, m)
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
	want := size(1, reflect.TypeFor[Digest]()) + size(1, reflect.TypeFor[delta]()) + size(mostKept, reflect.TypeFor[difference]()) +
		size(len(d.lists), reflect.TypeFor[list]())
	for _, l := range d.lists {
		for _, p := range l.pieces {
			want += size(1, reflect.TypeFor[*piece]()) + size(1, reflect.TypeFor[piece]()) + size(cap(p.elements), reflect.TypeFor[element]())
		}
	}
	for _, b := range d.blocks {
		want += size(1, reflect.TypeFor[*block]()) + size(1, reflect.TypeFor[block]()) + size(cap(b.places)+cap(b.hashes), reflect.TypeFor[item]()) +
			size(cap(b.members), reflect.TypeFor[member]()) + size(cap(b.parts), reflect.TypeFor[part]()) + size(cap(b.numbers), reflect.TypeFor[number]())
	}
	if got := Size(d); len(d.blocks) < 2 || got < want || got > want+64 {
		t.Errorf("%d blocks, %d bytes, want %d and a little", len(d.blocks), got, want)
	}
}

func digestOf(source []byte) *Digest { return newDigest(source, naming{}) }

func digesterOf(source []byte) *digester {
	d := new(digester)
	d.read(source, naming{})
	d.cut()
	return d
}

// Of entries with one name, the second is compared with the second, also if other content stands before them in one of the documents only.
func TestEntriesOfOneNameAreComparedInTheirOrder(t *testing.T) {
	const list = `"list":[{"sku":"a","qty":1},{"sku":"b","qty":2},{"sku":"a","qty":3},{"sku":"a","qty":4}]`
	more := `{"more":{"n":0`
	for i := range 100 {
		more += fmt.Sprintf(`,"k%d":0`, i)
	}
	d, mine, numbers := digestOf([]byte(more+`},`+list+`}`)), digesterOf([]byte(`{`+list+`}`)), 0
	for i := range mine.members {
		if mine.members[i].number != 0 {
			if sent, n := mine.numbers[numbers], d.numberLike(mine, i); *n != sent {
				t.Errorf("%v is compared with %v", sent.whole, n.whole)
			}
			numbers++
		}
	}
	if numbers != 4 {
		t.Errorf("%d numbers", numbers)
	}
}

// Entries of one name have places one after the other. They may stand in two blocks.
func TestEntriesOfOneNameMayStandInTwoBlocks(t *testing.T) {
	const boundary = 1 << 63
	d := new(digester)
	for i := range 2 * perBlock {
		key := uint64(i+1) << 40
		if i >= perBlock {
			key = boundary - 3 + uint64(i-perBlock)
			d.members = append(d.members, member{number: 1, before: int32(i - perBlock)})
			d.numbers = append(d.numbers, number{whole: int64(i), exact: true})
		} else {
			d.members = append(d.members, member{})
		}
		d.items = append(d.items, item{key: key})
	}
	d.cut()
	for i := perBlock; i < 2*perBlock; i++ {
		if n := d.numberOf(i); n == nil || n.whole != int64(i) || d.place(i) != boundary-3 {
			t.Errorf("entry %d is found as %+v", i, n)
		}
	}
	if blocks := len(d.blocks); blocks < 2 || len(d.blocks[blocks/2].numbers) == 0 || len(d.blocks[blocks/2-1].numbers) != 3 {
		t.Errorf("%d blocks, and all entries are in one", blocks)
	}
}

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
	if n := entriesWithPlace(d); n != 2 {
		t.Errorf("%d entries have a place of their own", n)
	}
}

// entriesWithPlace returns how many entries of lists have a place of their own.
func entriesWithPlace(d *Digest) (n int) {
	for _, b := range d.blocks {
		for _, m := range b.members {
			if m.entry {
				n++
			}
		}
	}
	return n
}

// Each of these names identifies entries, without a rule.
func TestNamesThatIdentifyEntries(t *testing.T) {
	for _, name := range []string{"id", "_id", "uuid", "guid", "uid", "key", "sku"} {
		d := newDigest(fmt.Appendf(nil, `{"lines":[{%q:"p1","qty":4},{%q:"p2","qty":7}]}`, name, name), naming{}, nil)
		if n := entriesWithPlace(d); n != 2 {
			t.Errorf("%s: %d entries have a place of their own, want 2", name, n)
		}
	}
}
