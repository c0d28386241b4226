// Package fairqueue is a queue with two classes: foreground goes before background, but the background isn't passed over for
// ever.
//
// It takes no lock and wakes nobody.
package fairqueue

// Patience is how often foreground goes while a background place waits, however many foreground places there are.
const Patience = 8

// Line is a line of places. The zero value is empty. It is for one goroutine at a time.
type Line[T any] struct {
	foreground, background list[T]
	passed                 int // how often foreground went since the oldest background place came
}

// Place is one place in a line. It is in one line at a time.
type Place[T any] struct {
	Value T
	next  *Place[T]
	in    *list[T] // nil: in none
}

// Join puts p at the end of its class.
func (l *Line[T]) Join(p *Place[T], background bool) {
	p.in = &l.foreground
	if background {
		p.in = &l.background
	}
	p.in.push(p)
}

// Leave takes p out, and reports whether it was in the line.
func (l *Line[T]) Leave(p *Place[T]) bool {
	if p.in != &l.foreground && p.in != &l.background {
		return false
	}
	p.in.remove(p)
	return true
}

// Next takes out the place whose turn it is; nil: nobody waits.
func (l *Line[T]) Next() *Place[T] { return l.NextOf(func(T) bool { return true }) }

// NextOf is Next among the places that may go. The others keep theirs.
func (l *Line[T]) NextOf(may func(T) bool) *Place[T] {
	beforeFore, fore := l.foreground.find(may)
	beforeBack, back := l.background.find(may)
	switch {
	case back != nil && (fore == nil || l.passed >= Patience):
		l.passed = 0
		l.background.cut(beforeBack, back)
		return back
	case fore == nil:
		return nil
	case l.background.first == nil:
		l.passed = 0
	case back != nil:
		l.passed++
	}
	l.foreground.cut(beforeFore, fore)
	return fore
}

// NextIf takes out the first place of the foreground, or, where there is none, of the background, if it may go; nil: it may not, or nobody
// waits. It passes over nobody: whoever goes so goes along with another.
func (l *Line[T]) NextIf(may func(T) bool) *Place[T] {
	first := &l.foreground
	if first.first == nil {
		first = &l.background
	}
	if first.first == nil || !may(first.first.Value) {
		return nil
	}
	return first.pop()
}

// Empty reports whether nobody waits.
func (l *Line[T]) Empty() bool { return l.foreground.first == nil && l.background.first == nil }

// Len is how many wait in each class.
func (l *Line[T]) Len() (foreground, background int) { return l.foreground.len, l.background.len }

type list[T any] struct {
	first, last *Place[T]
	len         int
}

func (q *list[T]) push(p *Place[T]) {
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.len++
}

func (q *list[T]) pop() *Place[T] {
	p := q.first
	if p != nil {
		q.cut(nil, p)
	}
	return p
}

// find returns the first place that may go, and the one before it.
func (q *list[T]) find(may func(T) bool) (before, p *Place[T]) {
	for p = q.first; p != nil && !may(p.Value); before, p = p, p.next {
	}
	return before, p
}

func (q *list[T]) remove(p *Place[T]) {
	var before *Place[T]
	for v := q.first; v != nil; before, v = v, v.next {
		if v == p {
			q.cut(before, p)
			return
		}
	}
}

// cut takes p out, which stands behind before.
func (q *list[T]) cut(before, p *Place[T]) {
	if before == nil {
		q.first = p.next
	} else {
		before.next = p.next
	}
	if q.last == p {
		q.last = before
	}
	p.next, p.in = nil, nil
	q.len--
}
