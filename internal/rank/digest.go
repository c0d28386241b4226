package rank

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"optimist/rewrite/tree"
)

// Digest is a document's content in a form that is quick to compare: its scalars by their places, and the parts of its lists and long texts
// without their order. It is immutable, apart from the differences that it keeps of its last comparison.
type Digest struct {
	id       uint64   // no other digest has it; 0: the digest belongs to a digester
	keys     Keys     // the keys by which entries of lists were told apart
	items    []item   // first those of the members, by place, and then those of the parts, by hash
	members  []member // what the members have besides their items, in the same order
	parts    []part   // what the parts have besides their items, in the same order
	numbers  []number
	lists    []list                // the lists that aren't in other lists, by place
	elements []element             // the elements of all these lists, in their order
	kept     atomic.Pointer[delta] // the differences from the digest that it was compared with last; nil: none are kept
}

// newestID is the id of the newest digest.
var newestID atomic.Uint64

// list is where the elements of a list are.
type list struct {
	place    uint64
	from, to int32
}

// element is an element of a list, as a whole.
type element struct {
	hash   uint64
	weight uint8 // 0: it has a place of its own
	deep   bool  // it holds lists or objects
}

// elementsOf are the elements of one of d's lists.
func (d *Digest) elementsOf(l *list) []element { return d.elements[l.from:l.to] }

// list returns the list at a place; nil: there is none, or more than one, because several entries of a list have one name. It looks at the
// i-th list first.
func (d *Digest) list(i int, place uint64) *list {
	if i >= len(d.lists) || d.lists[i].place != place {
		i = slices.IndexFunc(d.lists, func(l list) bool { return l.place == place })
	}
	if i < 0 || i > 0 && d.lists[i-1].place == place || i+1 < len(d.lists) && d.lists[i+1].place == place {
		return nil
	}
	return &d.lists[i]
}

// item is the part of a member, or of a part, that is compared with other documents.
type item struct {
	key   uint64 // of a member: its place. Of a part: a hash of its content and its place. No two items of a kind have the same key
	value uint64 // a hash of the member's value; or how often the part is there
}

// member is a value that has a place of its own. That is every value outside of lists. In lists it is the entries that something
// identifies, and the values in such entries.
type member struct {
	parent      uint64 // the place of the object or list that holds it; 0: the document
	kind        uint64 // its place, without what identifies entries of lists
	number      int32  // 1 + its place among the numbers; 0: it is none
	before      int32  // how many members before it have its name, one right after the other
	words       uint16 // how many pairs of words it has, if it is a long text
	key, weight uint8
	container   bool // an object or a list
	entry       bool // an entry of a list
	listed      bool // an entry of a list, or a value in one
	time        bool // the exact time of something
}

// part is an element, a value in an element, or a pair of words, at some place in a list or text.
type part struct {
	place  uint64 // the place of the list or text
	weight uint8
	text   bool // of an entry of a list that is a long text
}

// A weight says how unlikely it is that two clients put the same content into a document independently. More content has more weight. Small
// numbers and flags have little: two clients often count alike, or turn the same switch.
const (
	weightOfFlag      = 1
	weightOfWords     = 1
	weightOfContainer = 5 // of an object or a list that is taken out, without what is in it
	maxWeightOfNumber = 8 // in a list
	maxWeight         = 12
	// weightOfRepeated is the weight of a value that occurs several times in its list, such as a free seat.
	weightOfRepeated = 2
	// weightOfGroup is the weight of an inner list in addition to the weights of its entries: it says that they belong together.
	weightOfGroup = 2
	// longText is the length in bytes from which a text is compared by its words.
	longText = 32
	// firstOfUndivided is the first letter of the scripts of East Asia.
	firstOfUndivided = 0x2e80
)

// NewDigest digests a document, under a rule with these keys; nil means that there is no document. It returns nil if the bytes are no JSON
// object, or too large.
func NewDigest(source []byte, keys Keys) *Digest {
	d := digesters.Get().(*digester)
	defer d.release()
	if !d.read(source, keys) {
		return nil
	}
	return &Digest{
		id: newestID.Add(1), keys: keys, items: slices.Clone(d.items), members: slices.Clone(d.members), parts: slices.Clone(d.parts),
		numbers: slices.Clone(d.numbers), lists: slices.Clone(d.lists), elements: slices.Clone(d.elements),
	}
}

const (
	// maxValues bounds the values of a document, and the parts of its lists and texts. A larger document isn't digested.
	maxValues = 1 << 16
	// maxIdle bounds the memory of a digester that is kept for reuse, in values, and of a weighing, in changes.
	maxIdle = 1 << 14
)

// place returns the place of the i-th member. Entries of a list that have one name share the place of the first one.
func (d *Digest) place(i int) uint64 { return d.items[i].key - uint64(d.members[i].before) } //nolint:gosec // not negative

// near is how many members around the likeliest index find looks at first.
const near = 8

// find returns the index of the member at a place, or -1. It looks at the i-th member first.
func (d *Digest) find(i int, place uint64) int {
	if i < len(d.members) && d.place(i) == place {
		return i
	}
	n := len(d.members)
	about, _ := bits.Mul64(place, uint64(n))                     // places are spread evenly, but for entries of one name
	from, to := max(0, int(about)-near), min(n, int(about)+near) //nolint:gosec // below n
	if from < to && d.items[from].key > place {
		from = 0
	}
	if to < n && d.items[to].key <= place {
		to = n
	}
	for from < to {
		if middle := (from + to) / 2; d.items[middle].key < place {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == n || d.items[from].key != place {
		return -1
	}
	return from
}

// number returns the number at a place; nil: there is none. It looks at the i-th member first.
func (d *Digest) number(i int, place uint64) *number {
	if d == nil {
		return nil
	}
	if i = d.find(i, place); i < 0 || d.members[i].number == 0 {
		return nil
	}
	return &d.numbers[d.members[i].number-1]
}

// distance is how many items only one of the two digests has. An item with another value counts twice.
func (d *Digest) distance(o *Digest) int {
	n, sets := d.differences(o, math.MaxInt)
	return n + sets
}

// differences counts the items that only one of the two digests has, or that have another value in each. sets is the number of the latter.
// It stops once it has counted more than most.
func (d *Digest) differences(o *Digest, most int) (n, sets int) {
	m, k := len(d.members), len(o.members)
	n, sets = differences(d.items[:m], o.items[:k], most)
	more, moreSets := differences(d.items[m:], o.items[k:], most-n)
	return n + more, sets + moreSets
}

func differences(a, b []item, most int) (n, sets int) {
	for n <= most {
		same := alike(a, b)
		a, b = a[same:], b[same:]
		switch {
		case len(a) == 0 || len(b) == 0:
			return n + len(a) + len(b), sets
		case a[0].key < b[0].key:
			a = a[1:]
		case b[0].key < a[0].key:
			b = b[1:]
		default:
			sets++
			a, b = a[1:], b[1:]
		}
		n++
	}
	return n, sets
}

// alike returns how many items at the beginning of two lists are the same. Two revisions mostly have many such items.
func alike(a, b []item) (n int) {
	both := min(len(a), len(b))
	a, b = a[:both], b[:both]
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// Size is how many bytes the digest takes. d may be nil.
func (d *Digest) Size() int64 {
	if d == nil {
		return 0
	}
	const itself = 216 + 16*mostKept // with what it keeps
	return int64(16*cap(d.items) + 32*cap(d.members) + 16*cap(d.parts) + 24*cap(d.numbers) + 16*cap(d.lists) + 16*cap(d.elements) + itself)
}

// Keys are the members by which a rule tells entries of lists apart: the hashes of their names, in order.
type Keys string

// NewKeys returns the keys with these names.
func NewKeys(names []string) Keys {
	names = slices.Clone(names)
	slices.Sort(names)
	hashes := []byte(nil)
	for _, name := range slices.Compact(names) {
		hashes = binary.BigEndian.AppendUint64(hashes, tree.HashString(name))
	}
	return Keys(hashes)
}

// good says how well a member identifies an entry; 0: not at all. name is the hash of its name.
func (k Keys) good(name uint64) int {
	for rest := k; rest != ""; rest = rest[8:] {
		if binary.BigEndian.Uint64([]byte(rest[:8])) == name {
			return identityByRule
		}
	}
	return identifying[name]
}

// number is the value of a number: near is about the value. If exact is set, whole is exactly the value.
type number struct {
	whole int64 // below 10^18
	exact bool
	near  float64
}

// step is the difference between two numbers.
func (n *number) step(from *number) float64 {
	if n.exact && from.exact {
		return float64(n.whole - from.whole)
	}
	return n.near - from.near
}
