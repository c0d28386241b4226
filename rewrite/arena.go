package rewrite

// An arena hands out slices that live until it is cut back to a mark taken before. It grows by a new block, so that what
// it handed out stays valid.
type arena[T any] struct{ block []T }

func (a *arena[T]) mark() int { return len(a.block) }

// alloc returns n zero values.
func (a *arena[T]) alloc(n int) []T {
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

// cut gives back everything handed out since mark.
func (a *arena[T]) cut(mark int) { a.block = a.block[:mark] }

// reset gives back everything, and the memory, too, if it is more than keep values.
func (a *arena[T]) reset(keep int) {
	if cap(a.block) > keep {
		a.block = nil
	}
	a.block = a.block[:0]
}

// wipe is reset for what has references: none of them is kept.
func (a *arena[T]) wipe(keep int) {
	clear(a.block)
	a.reset(keep)
}
