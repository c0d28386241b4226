package rank

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"optimist/rewrite/tree"
)

// digester makes digests. Its last result is good until it reads the next document.
type digester struct {
	Digest
	tree   tree.Tree
	holder uint64 // the place of the list or text that the digester is reading

	// The content of the document, before it is cut into blocks.
	items   []item // first those of the members, by place, and then those of the parts, by hash
	members []member
	parts   []part
	numbers []number // of the members that are numbers, in the order of the members
	cuts    []block  // the blocks of this content
	pieces  []piece  // of its lists
	held    []*piece // the same, or equal ones of other digests

	// In the order of the document.
	foundMembers []foundMember
	foundParts   []foundPart
	foundNumbers []number
	foundLists   []foundList
	elements     []element // of all these lists
	sorter       sorter

	identities []uint64 // of the entries of the lists that the digester is reading
	names      []uint64 // those of one list that are names
	repeats    uint64   // the kind of a long list in which names have turned out to identify nothing; 0: there is none
	named      uint64   // the same, of a kind known for that, in which each entry has a name of its own after all
}

type foundMember struct {
	item
	member
}

type foundPart struct {
	hash uint64
	part
}

type foundList struct {
	place    uint64
	from, to int // where its elements are
}

var digesters = sync.Pool{New: func() any { return new(digester) }}

// release puts the digester back for reuse.
func (d *digester) release() {
	clear(d.blocks) // others may own them
	clear(d.held)
	if cap(d.items)+cap(d.foundMembers)+cap(d.foundParts)+cap(d.elements)+cap(d.identities) <= 2*maxIdle {
		digesters.Put(d)
	}
}

// read reads a document, which is then to be cut. It reports whether the document can be digested.
func (d *digester) read(source []byte, n naming) bool {
	d.naming, d.repeats, d.named = n, 0, 0
	d.items, d.members, d.parts, d.numbers = d.items[:0], d.members[:0], d.parts[:0], d.numbers[:0]
	d.foundMembers, d.foundParts, d.foundNumbers = d.foundMembers[:0], d.foundParts[:0], d.foundNumbers[:0]
	d.foundLists, d.elements, d.identities = d.foundLists[:0], d.elements[:0], d.identities[:0]
	defer d.tree.Release()
	if d.tree.ParseObject(source, tree.Limits{Values: maxValues}) != nil {
		return false
	}
	d.object(d.tree.Root(), spot{}, false)
	if len(d.foundParts) > maxValues {
		return false
	}
	d.sortMembers()
	d.sortParts()
	slices.SortFunc(d.foundLists, func(a, b foundList) int { return cmp.Compare(a.place, b.place) })
	return true
}

// sortMembers puts the members in the order of their places. If several entries of a list have one name, and so one place, each further
// entry gets the place after the one before it.
func (d *digester) sortMembers() {
	for i := range d.foundMembers {
		d.sorter.add(d.foundMembers[i].item.key)
	}
	for i, k := range d.sorter.sorted() {
		m := &d.foundMembers[k.from]
		d.items, d.members = append(d.items, m.item), append(d.members, m.member)
		if m.number != 0 {
			d.numbers = append(d.numbers, d.foundNumbers[m.number-1])
		}
		if i == 0 {
			continue
		}
		if last := d.items[i-1].key; d.items[i].key <= last {
			d.items[i].key = last + 1
		}
		if d.items[i].key == d.items[i-1].key+1 {
			d.members[i].before = d.members[i-1].before + 1
		}
	}
}

// sortParts puts the parts in the order of their hashes, and counts those that are there more than once.
func (d *digester) sortParts() {
	for i := range d.foundParts {
		d.sorter.add(d.foundParts[i].hash)
	}
	for _, k := range d.sorter.sorted() {
		p := &d.foundParts[k.from]
		if n := len(d.parts); n > 0 && d.items[len(d.items)-1].key == p.hash {
			d.items[len(d.items)-1].value++
			d.parts[n-1].weight = min(d.parts[n-1].weight, weightOfRepeated)
		} else {
			d.items, d.parts = append(d.items, item{p.hash, 1}), append(d.parts, p.part)
		}
	}
}

// place returns the place of the i-th member. Entries of a list that have one name share the place of the first one.
func (d *digester) place(i int) uint64 { return d.items[i].key - uint64(d.members[i].before) } //nolint:gosec // not negative

// numberOf returns the number of the i-th member; nil: it is none.
func (d *digester) numberOf(i int) *number { return d.numberLike(d, i) }

// spot is where a value is.
type spot struct {
	place, kind uint64
	listed      bool // in an entry of a list that something identifies
}

// in is the spot of a member of the object at a spot.
func (s spot) in(key uint64) spot { return spot{step(s.place, key), step(s.kind, key), s.listed} }

func (d *digester) object(v tree.Value, at spot, inList bool) {
	holdsAlike := isMap(v)
	for m := v.First(); m.Exists(); m = m.Next() {
		in := at.in(m.KeyHash())
		if holdsAlike {
			in.kind = step(at.kind, elementKey)
		}
		d.value(m, in, at.place, inList)
	}
}

// isMap reports whether an object holds nothing but objects, and more than one: the bins of a warehouse, or the rights of each user. What a
// client does to one of them, another client does to another.
func isMap(v tree.Value) bool {
	n := 0
	for m := v.First(); m.Exists(); m = m.Next() {
		if m.Kind() != tree.Object {
			return false
		}
		n++
	}
	return n > 1
}

// elementKey is the step into a list, whatever the index.
const elementKey = 0x9e3779b97f4a7c15

// wholeKey is the step to an element as a whole.
const wholeKey = 0xc2b2ae3d27d4eb4f

func step(place, key uint64) uint64 {
	h := (place ^ key) * 0xff51afd7ed558ccd
	return h ^ h>>29
}

// value adds a value, which has a place of its own unless it is in a list.
func (d *digester) value(v tree.Value, at spot, parent uint64, inList bool) {
	kind := v.Kind()
	if !inList {
		d.holder = at.place
		d.member(v, at, parent)
	}
	switch {
	case kind == tree.Object:
		d.object(v, at, inList)
	case kind == tree.Array:
		d.entries(v, at, inList)
	case isLong(v):
		before := len(d.foundParts)
		if d.words(v, at.place); !inList {
			d.foundMembers[len(d.foundMembers)-1].words = uint16(min(len(d.foundParts)-before, math.MaxUint16)) //nolint:gosec // not above that
		}
	case inList:
		d.part(step(at.place, v.Hash()), weightOf(v))
	}
}

// entries adds the entries of the list at a spot.
func (d *digester) entries(v tree.Value, at spot, inList bool) {
	k, from := len(d.elements), len(d.identities)
	if !inList {
		d.inOrder(v, at.place)
	}
	d.identify(v, at.kind)
	for e, i := v.First(), from; e.Exists(); e, i = e.Next(), i+1 {
		if d.entry(e, at, d.identities[i], inList) {
			d.elements[k] &^= weightOfElement
		}
		k++
	}
	d.identities = d.identities[:from]
}

// identify appends what identifies each entry of a list of a kind; 0: nothing does. Where entries have the same few names again and again,
// names identify none: the code of an event says what has happened to a parcel, and not which event it is. Where few names repeat, they
// still identify entries: clients know all the others by their names.
func (d *digester) identify(list tree.Value, kind uint64) {
	from := len(d.identities)
	d.names = d.names[:0]
	repeats := d.naming.repeat(kind)
	for e := list.First(); e.Exists(); e = e.Next() {
		identity, isName := identityOf(e, d.naming.keys)
		if isName {
			d.names = append(d.names, identity)
		}
		if isName && repeats {
			identity = 0
		}
		d.identities = append(d.identities, identity)
	}
	slices.Sort(d.names)
	entries, names := len(d.identities)-from, len(slices.Compact(d.names))
	few := entriesPerName*(entries-len(d.names)+names) <= entries
	if few {
		clear(d.identities[from:])
	}
	switch long := entries >= minRepeated; {
	case long && few && !repeats:
		d.repeats = kind
	case long && repeats && names == entries:
		d.named = kind
	}
}

// entriesPerName is how many entries each name of a list has at least, on average, where names identify none of them. An entry without a
// name counts as one with a name of its own.
const entriesPerName = 3

// naming says how the entries of lists are told apart.
type naming struct {
	keys     Keys                // of the rule
	repeated [maxRepeated]uint64 // the kinds of lists in which names identify nothing; 0: none
}

const (
	// maxRepeated is how many kinds of lists with repeated names an index has at most.
	maxRepeated = 4
	// minRepeated is how many entries a list has at least, if it shows how names are used in all documents of the index. In shorter lists,
	// names may repeat by chance.
	minRepeated = 12
)

// repeat reports whether names identify nothing in lists of a kind.
func (n *naming) repeat(kind uint64) bool { return slices.Contains(n.repeated[:], kind) }

// entry adds an entry of the list at a spot. If something identifies it, it has a place of its own, like a member of an object: a state in
// one entry isn't the same content as an equal state in another entry. entry reports whether it has one.
func (d *digester) entry(e tree.Value, list spot, identity uint64, inList bool) (placed bool) {
	if isTuple(e) {
		d.part(step(list.place, e.Hash()), maxWeight)
		return false
	}
	at := spot{step(step(list.place, elementKey), identity), step(list.kind, elementKey), true}
	if identity != 0 && !inList {
		k := len(d.foundMembers)
		d.value(e, at, list.place, false)
		d.foundMembers[k].entry = true
		d.holder = list.place
		return true
	}
	before := len(d.foundParts)
	d.value(e, at, list.place, true)
	switch {
	case isLong(e), !inList && e.Kind() == tree.Object:
		d.element(e, step(list.place, elementKey), before)
	case e.Kind() == tree.Array:
		d.part(step(list.place, step(e.Hash(), wholeKey)), weightOfGroup)
	}
	if isLong(e) {
		for i := before; i < len(d.foundParts); i++ {
			d.foundParts[i].text = true
		}
	}
	return false
}

// isDeep reports whether an entry of a list holds lists or objects.
func isDeep(v tree.Value) bool {
	if !v.Kind().IsContainer() {
		return false
	}
	for m := v.First(); m.Exists(); m = m.Next() {
		if m.Kind().IsContainer() {
			return true
		}
	}
	return false
}

// isTuple reports whether an entry of a list is a list of values, such as a point, a row of a table, or a time with a measured value. One
// value of a tuple says nothing without the others. A list that has only texts isn't a tuple: each text says something by itself.
func isTuple(v tree.Value) bool {
	if v.Kind() != tree.Array {
		return false
	}
	tuple := false
	for e := v.First(); e.Exists(); e = e.Next() {
		if e.Kind().IsContainer() || isLong(e) {
			return false
		}
		tuple = tuple || e.Kind() != tree.String
	}
	return tuple
}

// inOrder adds the elements of a list in their order.
func (d *digester) inOrder(v tree.Value, place uint64) {
	from := len(d.elements)
	for e := v.First(); e.Exists(); e = e.Next() {
		weight := weightOf(e)
		if e.Kind().IsContainer() {
			weight = maxWeight
		}
		d.elements = append(d.elements, newElement(e.Hash(), weight, isDeep(e)))
	}
	d.foundLists = append(d.foundLists, foundList{place, from, len(d.elements)})
}

// identityOf returns a hash of the values that identify an entry of a list; 0: nothing identifies it. A member such as an id identifies the
// entry by itself. Without such a member, all identifying members together do: the row and the seat, or the room and the hour. The keys of
// the rule come before all other names. isName says that a member which the rule doesn't name identifies the entry by itself.
func identityOf(e tree.Value, keys Keys) (identity uint64, isName bool) {
	if e.Kind() != tree.Object {
		return 0, false
	}
	name, best, others := uint64(0), 0, uint64(0)
	for m := e.First(); m.Exists(); m = m.Next() {
		switch good := keys.good(m.KeyHash()); {
		case good == 0 || m.Kind() != tree.String && m.Kind() != tree.Number:
		case good == identityOfTime && !isSlot(m):
		case good <= identityWithOthers:
			others += step(m.KeyHash(), m.Hash())
		case good > best:
			name, best = m.Hash(), good
		}
	}
	if best > 0 {
		return name, best < identityByRule
	}
	return others, false
}

// How well a member identifies an entry. More is better.
const (
	identityOfTime = 1 + iota // a slot of a calendar
	identityWithOthers
	identityAlone // and more

	identityByRule = 1 << 10
)

// isSlot reports whether a value may be the time of a slot. A longer one is the exact time at which something was written. That identifies
// nothing: it changes with each write.
func isSlot(v tree.Value) bool {
	const asText, asNumber = len(`"2006-01-02 15"`), len(`20060102`)
	return len(v.Raw()) <= asNumber || v.Kind() == tree.String && len(v.Raw()) <= asText
}

// isTime reports whether a value looks like an exact time, as documents have it for when something was written: a date with a time of day,
// or the seconds, milli-, micro- or nanoseconds since 1970, with a fraction or without. These are from 2014 to 2033.
func isTime(v tree.Value) bool {
	const date = `"2006-01-02`
	raw := v.Raw()
	switch v.Kind() {
	case tree.Number:
		whole, fraction, _ := bytes.Cut(raw, []byte("."))
		thousandths := len(whole) - len("1700000000") // digits behind the seconds
		isUnit := thousandths >= 0 && thousandths <= 9 && thousandths%3 == 0
		return isUnit && raw[0] == '1' && raw[1] >= '4' && allDigits(whole) && allDigits(fraction)
	case tree.String:
		return !isSlot(v) && raw[5] == '-' && raw[8] == '-' && allDigits(raw[1:5]) && allDigits(raw[6:8]) && allDigits(raw[9:len(date)])
	default:
		return false
	}
}

// precisionOf returns how fine a time is. That of a number is of no account: a number weighs little in any case.
func precisionOf(v tree.Value) precision {
	switch {
	case !isTime(v):
		return 0
	case len(v.PartOfSecond()) > tree.Milliseconds:
		return finer
	}
	return toMillisecond
}

func allDigits(s []byte) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// identifying are the members that identify entries in most lists, by the hashes of their names.
var identifying = func() map[uint64]int {
	all := map[uint64]int{}
	for _, name := range []string{"at", "time", "date", "day"} {
		all[tree.HashString(name)] = identityOfTime
	}
	for _, name := range []string{
		"slot", "seat", "room", "row", "path", "file", "url", "host", "email", "login", "username", "article", "product", "item", "ean", "isbn",
		"slug",
	} {
		all[tree.HashString(name)] = identityWithOthers
	}
	for i, name := range []string{
		"no", "number", "position", "pos", "label", "title", "player", "name", "code", "sku", "key", "uid", "guid", "uuid", "_id", "id",
	} {
		all[tree.HashString(name)] = identityAlone + i
	}
	return all
}()

// member adds a value that has a place of its own. Of a list or long text, only the kind counts here, because its parts are compared.
func (d *digester) member(v tree.Value, at spot, parent uint64) {
	value := uint64(v.Kind())
	m := member{kind: at.kind, parent: parent, key: weightOfText(v.KeyLen()), weight: weightOf(v), listed: at.listed}
	m.container, m.time = v.Kind().IsContainer(), precisionOf(v)
	if !m.container && !isLong(v) {
		value = v.Hash()
	}
	if whole, exact, near, ok := v.Estimate(); ok {
		d.foundNumbers = append(d.foundNumbers, number{whole, exact, near})
		m.number = int32(len(d.foundNumbers)) //nolint:gosec // bounded by maxValues
		if !at.listed {
			m.weight = weightOfFlag // however long it is, because other clients may have moved it in the same way
		}
	}
	d.foundMembers = append(d.foundMembers, foundMember{item{at.place, value}, m})
}

func (d *digester) part(hash uint64, weight uint8) {
	d.foundParts = append(d.foundParts, foundPart{hash, part{place: d.holder, weight: weight}})
}

// element adds an entry of a list as a whole, unless something identifies it. The parts alone don't tell entries apart: single values of
// objects are often the same, and the words of a long text tell only how similar two texts are. Clients change an entry that something
// identifies value by value, and two clients may well make the same change.
func (d *digester) element(v tree.Value, place uint64, before int) {
	sum := 0
	if v.Kind() == tree.Object {
		for _, p := range d.foundParts[before:] {
			sum += int(p.weight)
		}
	}
	if sum < maxWeight {
		d.part(step(place, step(v.Hash(), wholeKey)), uint8(maxWeight-sum))
	}
}

func weightOf(v tree.Value) uint8 {
	switch v.Kind() {
	case tree.String:
		return weightOfText(len(v.Raw()) - len(`""`))
	case tree.Number:
		return uint8(min(1+2*len(v.Raw()), maxWeightOfNumber)) // a digit has three bits, and the first digit is often 1
	case tree.Object, tree.Array:
		return weightOfContainer
	default:
		return weightOfFlag
	}
}

func weightOfText(length int) uint8 { return uint8(min(2+length/2, maxWeight)) } //nolint:gosec // small

func isLong(v tree.Value) bool { return v.Kind() == tree.String && len(v.Raw()) >= longText }

// words adds a long text as its pairs of words.
func (d *digester) words(v tree.Value, place uint64) {
	last := uint64(0)
	for text := v.Text(); text != "" && len(d.foundParts) <= maxValues; {
		size := wordOf(text)
		if size == 0 {
			_, size = utf8.DecodeRuneInString(text)
		} else {
			word := tree.HashString(text[:size])
			d.part(step(place, step(last, word)), weightOfWords)
			last = word
		}
		text = text[size:]
	}
}

// wordOf returns the length of the word with which a text begins; 0: it begins with none. In scripts without spaces, each letter is a word.
func wordOf(text string) int {
	for i, r := range text {
		switch {
		case r >= firstOfUndivided && i == 0:
			_, size := utf8.DecodeRuneInString(text)
			return size
		case r >= firstOfUndivided, r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r):
			return i
		}
	}
	return len(text)
}
