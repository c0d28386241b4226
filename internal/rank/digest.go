package rank

import (
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"

	"optimist/rewrite/tree"
)

// Digest is a document's content in a form that is quick to compare: its scalars by their places, and the parts of its lists and long texts
// without their order. It is immutable, apart from the differences that it keeps of its last comparison, and the numbers of keepers.
type Digest struct {
	id     uint64                // no other digest has it; 0: the digest belongs to a digester
	naming naming                // how entries of lists were told apart
	blocks []*block              // see block.go
	shift  uint                  // a key without its last shift bits is the index of its block
	size   int                   // how many items all blocks have
	lists  []list                // those that aren't in other lists, by place
	kept   atomic.Pointer[delta] // the differences from the digest that it was compared with last; nil: none are kept
}

// newestID is the id of the newest digest.
var newestID atomic.Uint64

// list is the elements of a list, in their order.
type list struct {
	place  uint64
	n      int      // how many elements there are
	pieces []*piece // of the elements, see block.go
}

// at returns the i-th element.
func (l *list) at(i int) element { return l.pieces[i/perPiece].elements[i%perPiece] }

// element is an element of a list, as a whole: a hash, its weight, and whether it is deep. If the weight is 0, the element has a place of
// its own. A deep one holds lists or objects.
type element uint64

const (
	weightOfElement   = 1<<4 - 1 // the bits for the weight
	deepElement       = 1 << 4
	bitsBesidesHashes = 5
)

func newElement(hash uint64, weight uint8, deep bool) element {
	e := element(hash<<bitsBesidesHashes) | element(weight)
	if deep {
		e |= deepElement
	}
	return e
}

func (e element) hash() uint64  { return uint64(e >> bitsBesidesHashes) }
func (e element) weight() uint8 { return uint8(e & weightOfElement) }
func (e element) isDeep() bool  { return e&deepElement != 0 }

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
	kind        uint64 // its place, without what identifies entries of lists and of maps
	number      int32  // 1 + its place among the numbers of its block; 0: it is none
	before      int32  // how many members before it have its name, one right after the other
	words       uint16 // how many pairs of words it has, if it is a long text
	key, weight uint8
	container   bool // an object or a list
	entry       bool // an entry of a list
	listed      bool // an entry of a list, or a value in one
	time        precision
}

// precision is how fine an exact time is; 0: a value isn't the exact time of something.
type precision uint8

const (
	toMillisecond precision = iota + 1 // at most. Two busy clients often write in the same millisecond
	finer
)

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

// newDigest digests a document; nil means that there is no document. It returns nil if the bytes are no JSON object, or too large. The
// digest shares what it can with near, the digests of other revisions, which may be nil.
func newDigest(source []byte, n naming, near ...*Digest) *Digest {
	d := digesters.Get().(*digester)
	defer d.release()
	if !d.read(source, n) {
		return nil
	}
	d.cut(near...)
	return d.copy()
}

const (
	// maxValues bounds the values of a document, and the parts of its lists and texts. A larger document isn't digested.
	maxValues = 1 << 16
	// maxIdle bounds the memory of a digester that is kept for reuse, in values, and of a weighing, in changes.
	maxIdle = 1 << 16
)

// distance is how many items only one of the two digests has. An item with another value counts twice.
func (d *Digest) distance(o *Digest) int {
	n, sets := d.differences(o, math.MaxInt)
	return n + sets
}

// differences counts the items that only one of the two digests has, or that have another value in each. sets is the number of the latter.
// It stops once it has counted more than most.
func (d *Digest) differences(o *Digest, most int) (n, sets int) {
	for a, b := range d.unequal(o) {
		for kind := range a {
			more, moreSets := differences(a[kind].items, b[kind].items, most-n)
			n, sets = n+more, sets+moreSets
		}
		if n > most {
			break
		}
	}
	return n, sets
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
