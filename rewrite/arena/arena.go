// Package arena hands out slices that live until all are given back at once. It is for one goroutine.
package arena

// An Arena hands out slices that live until it is cut back to a mark that was taken before. It grows by a new block, so that what
// it handed out stays valid. The zero Arena is ready.
type Arena[T any] struct{ block []T }

// Mark is a point to which the arena can be cut back.
func (a *Arena[T]) Mark() int { return len(a.block) }

// Alloc returns n zero values.
func (a *Arena[T]) Alloc(n int) []T {
	at := len(a.block)
	if cap(a.block)-at < n {
		// The part below at is never read through the new block: it only keeps the marks true.
		a.block = make([]T, at, 2*cap(a.block)+n)
	}
	a.block = a.block[:at+n]
	s := a.block[at : at+n : at+n]
	clear(s)
	return s
}

// Cut gives back everything handed out since the mark.
func (a *Arena[T]) Cut(mark int) { a.block = a.block[:mark] }

// Reset gives back everything, and keeps memory for as many values as are worth it. It keeps no reference that a value had.
func (a *Arena[T]) Reset(keep int) {
	if cap(a.block) > keep {
		a.block = nil
	}
	clear(a.block)
	a.block = a.block[:0]
}
