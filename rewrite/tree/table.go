package tree

// A Table gives equal values the same small number, in the order in which they are first seen. The zero Table is ready for Reset.
type Table struct {
	slots []int32 // number plus 1; 0 is a free slot
	refs  []ref
}

type ref struct {
	v    Value
	hash uint64
}

// Reset empties the table and makes room for n different values.
func (t *Table) Reset(n int) {
	size := 16
	for size < 2*n {
		size *= 2
	}
	t.refs = t.refs[:0]
	if cap(t.slots) < size || cap(t.refs) < n {
		t.slots, t.refs = make([]int32, size), make([]ref, 0, n)
		return
	}
	t.slots = t.slots[:size]
	clear(t.slots)
}

// Release drops the table's memory if it is for more than that many values.
func (t *Table) Release(keep int) {
	if cap(t.refs) > keep {
		*t = Table{}
	}
}

// Len is how many different values the table has seen.
func (t *Table) Len() int { return len(t.refs) }

// Number returns the number of v, which is a new one if no equal value was seen before.
func (t *Table) Number(v Value) int32 {
	slot, n := t.lookup(v)
	if n == none {
		t.refs = append(t.refs, ref{v, v.Hash()})
		t.slots[slot] = int32(len(t.refs))
		return int32(len(t.refs) - 1)
	}
	return n
}

// Find is Number for a value that is not to be noted: ok is false if no equal one was seen.
func (t *Table) Find(v Value) (n int32, ok bool) {
	_, n = t.lookup(v)
	return n, n != none
}

// lookup returns the number of v, or none and the slot where it would go.
func (t *Table) lookup(v Value) (slot int, n int32) {
	hash, mask := v.Hash(), len(t.slots)-1
	for slot = int(hash) & mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		r := &t.refs[t.slots[slot]-1]
		if r.hash == hash && r.v.Equal(v) {
			return slot, t.slots[slot] - 1
		}
	}
	return slot, none
}
