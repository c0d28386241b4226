package tree

import (
	"hash/maphash"
	"math/bits"
)

// Same reports whether two documents are equal, however they are spelled. Errors are those of Tree.ParseObject.
func Same(a, b []byte, l Limits) (bool, error) {
	s, t := Borrow(), Borrow()
	defer s.Return()
	defer t.Return()
	if err := s.ParseObject(a, l); err != nil {
		return false, err
	}
	if err := t.ParseObject(b, l); err != nil {
		return false, err
	}
	return s.Root().Equal(t.Root()), nil
}

// SameBytes reports whether both are there and spelled alike, which is faster to see than that they are equal.
func (v Value) SameBytes(w Value) bool {
	if v.t == nil || w.t == nil {
		return false
	}
	m, n := &v.t.nodes[v.i], &w.t.nodes[w.i]
	return m.end-m.start == n.end-n.start && string(v.t.src[m.start:m.end]) == string(w.t.src[n.start:n.end])
}

// Equal reports whether two values are the same, as the package comment has it: a client that re-serializes a document has changed
// nothing. A missing value equals another missing one.
func (v Value) Equal(w Value) bool {
	k := v.Kind()
	if k != w.Kind() {
		return false
	}
	switch k {
	case Number:
		return sameNumber(v.Raw(), w.Raw())
	case String:
		x, xEsc := v.text()
		y, yEsc := w.text()
		return sameText(x, xEsc, y, yEsc)
	case Array:
		return v.Len() == w.Len() && (v.SameBytes(w) || sameElements(v, w))
	case Object:
		return v.SameBytes(w) || v.Len() == w.Len() && sameMembers(v, w)
	}
	return true
}

// text returns what is between the quotes of a string, still escaped, and whether it has escapes.
func (v Value) text() (text []byte, esc bool) {
	n := &v.t.nodes[v.i]
	return v.t.src[n.start+1 : n.end-1], n.flags&flagEscaped != 0
}

func sameElements(v, w Value) bool {
	d := w.First()
	for c := v.First(); c.Exists(); c, d = c.Next(), d.Next() {
		if !c.Equal(d) {
			return false
		}
	}
	return true
}

func sameMembers(v, w Value) bool {
	members := w.Finder()
	for c := v.First(); c.Exists(); c = c.Next() {
		if d := members.Like(c); !d.Exists() || !c.Equal(d) {
			return false
		}
	}
	return true
}

// Compare orders two numbers by value, or two strings by the bytes of their contents. ok is false for what isn't both the same of these,
// and for numbers with an exponent that is too long to tell.
func (v Value) Compare(w Value) (order int, ok bool) {
	switch k := v.Kind(); {
	case k != w.Kind():
	case k == Number:
		return CompareNumbers(v.Raw(), w.Raw())
	case k == String:
		x, xEsc := v.text()
		y, yEsc := w.text()
		return compareText(x, y, xEsc, yEsc), true
	}
	return 0, false
}

// Hash returns what equal values have in common. It is kept in the node: arrays of arrays would be hashed again at each level
// otherwise.
func (v Value) Hash() uint64 {
	n := &v.t.nodes[v.i]
	if n.flags&flagHashed != 0 {
		return n.hash
	}
	h := mix(uint64(n.kind) ^ hashKey)
	switch n.kind {
	case Number:
		h ^= hashNumber(v.Raw())
	case String:
		h ^= hashText(v.text())
	case Array:
		for c := v.First(); c.Exists(); c = c.Next() {
			h = mix(h ^ c.Hash())
		}
	case Object:
		for c := v.First(); c.Exists(); c = c.Next() {
			// A sum, because the order of the keys doesn't count.
			h += mix(hashText(c.t.keyText(c.i)) ^ bits.RotateLeft64(c.Hash(), 1))
		}
	}
	n.hash, n.flags = h, n.flags|flagHashed
	return h
}

// mix is the finalizer of SplitMix64: every bit of x changes half of the result's.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// KeyHash returns what members with the same key have in common; 0 for what isn't a member.
func (v Value) KeyHash() uint64 {
	if !v.IsMember() {
		return 0
	}
	return hashText(v.t.keyText(v.i))
}

// HashString returns what equal texts have in common.
func HashString(s string) uint64 { return maphash.String(hashSeed, s) }
