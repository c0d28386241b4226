package rewrite

import "math/bits"

// equal reports whether two values are the same: strings by their content, numbers by their decimal value, objects
// whatever the order of their keys, of duplicate keys the last. A client that re-serializes a document has changed
// nothing.
func equal(a *tree, i int32, b *tree, j int32) bool {
	m, n := &a.nodes[i], &b.nodes[j]
	if m.kind != n.kind {
		return false
	}
	switch m.kind {
	case kindNumber:
		return sameNumber(a.raw(i), b.raw(j))
	case kindString:
		s, sEsc := a.text(i)
		t, tEsc := b.text(j)
		return sameText(s, sEsc, t, tEsc)
	case kindArray:
		return m.count == n.count && (string(a.raw(i)) == string(b.raw(j)) || equalArrays(a, i, b, j))
	case kindObject:
		return string(a.raw(i)) == string(b.raw(j)) || equalObjects(a, i, b, j)
	}
	return true
}

func equalArrays(a *tree, i int32, b *tree, j int32) bool {
	c, d := a.firstChild(i), b.firstChild(j)
	for c != none && d != none {
		if !equal(a, c, b, d) {
			return false
		}
		c, d = a.nextChild(i, c), b.nextChild(j, d)
	}
	return c == d
}

func equalObjects(a *tree, i int32, b *tree, j int32) bool {
	a.prepare(i)
	b.prepare(j)
	if a.nodes[i].count != b.nodes[j].count {
		return false
	}
	hint := b.firstChild(j)
	for c := a.firstChild(i); c != none; c = a.nextChild(i, c) {
		if a.shadowed(c) {
			continue
		}
		key, esc := a.keyText(c)
		d := b.find(j, key, esc, hint)
		if d == none || !equal(a, c, b, d) {
			return false
		}
		hint = b.after(j, d)
	}
	return true
}

// same is equal for values that may be missing. A missing value is not null.
func same(a *tree, i int32, b *tree, j int32) bool {
	if i == none || j == none {
		return i == j
	}
	return equal(a, i, b, j)
}

// hashOf returns a hash that equal values have in common. It is kept in the node: arrays of arrays would be hashed again
// at each level otherwise.
func (t *tree) hashOf(i int32) uint64 {
	n := &t.nodes[i]
	if n.flags&flagHashed != 0 {
		return n.hash
	}
	h := mix(uint64(n.kind) ^ hashKey)
	switch n.kind {
	case kindNumber:
		num := readNumber(t.raw(i))
		h ^= num.hash()
	case kindString:
		s, esc := t.text(i)
		h ^= hashText(s, esc)
	case kindArray:
		for c := t.firstChild(i); c != none; c = t.nextChild(i, c) {
			h = mix(h ^ t.hashOf(c))
		}
	case kindObject:
		t.prepare(i)
		for c := t.firstChild(i); c != none; c = t.nextChild(i, c) {
			if !t.shadowed(c) {
				key, esc := t.keyText(c)
				// A sum, because the order of the keys doesn't count.
				h += mix(hashText(key, esc) ^ bits.RotateLeft64(t.hashOf(c), 1))
			}
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
