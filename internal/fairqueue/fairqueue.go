// Package fairqueue has queues with two classes: foreground goes before background, but the background isn't passed over for ever. In a
// Line, who came first goes first. In a Shared, clients take turns.
//
// It takes no lock and wakes nobody.
package fairqueue

import "optimist/internal/linked"

// Patience is how often foreground goes while a background place waits, however many foreground places there are.
const Patience = 8

// Turns says which class goes next. The zero value is ready to be used. It is for one goroutine at a time.
type Turns struct {
	passed int // how often foreground went since the oldest background place came
}

// Next says which class goes, of those of which a place may go. ok is false if none may. waits says that a background place waits, whether
// it may go or not.
func (t *Turns) Next(foreground, background, waits bool) (isBackground, ok bool) {
	switch {
	case background && (!foreground || t.passed >= Patience):
		t.passed = 0
		return true, true
	case !foreground:
		return false, false
	case !waits:
		t.passed = 0
	case background:
		t.passed++
	}
	return false, true
}

// Line is a line of places. The zero value is empty. It is for one goroutine at a time.
type Line[T any] struct {
	foreground, background list[T]
	turns                  Turns
}

// Place is one place in a line. It is in one line at a time.
type Place[T any] struct {
	linked.Links[*Place[T]]
	Value T
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
	p.in.cut(p)
	return true
}

// Next takes out the place whose turn it is; nil: nobody waits.
func (l *Line[T]) Next() *Place[T] {
	waits := l.background.Oldest != nil
	switch isBackground, ok := l.turns.Next(l.foreground.Oldest != nil, waits, waits); {
	case !ok:
		return nil
	case isBackground:
		return l.background.pop()
	}
	return l.foreground.pop()
}

// NextIf takes out the first place of the foreground, or, where there is none, of the background, if it may go; nil: it may not, or nobody
// waits. It passes over nobody: whoever goes so goes along with another.
func (l *Line[T]) NextIf(may func(T) bool) *Place[T] {
	first := &l.foreground
	if first.Oldest == nil {
		first = &l.background
	}
	if first.Oldest == nil || !may(first.Oldest.Value) {
		return nil
	}
	return first.pop()
}

// Empty reports whether nobody waits.
func (l *Line[T]) Empty() bool { return l.foreground.Oldest == nil && l.background.Oldest == nil }

// Len is how many wait in each class.
func (l *Line[T]) Len() (foreground, background int) { return l.foreground.len, l.background.len }

// list is the places of a class, and how many there are.
type list[T any] struct {
	linked.List[*Place[T]]
	len int
}

func (q *list[T]) push(p *Place[T]) {
	q.Push(p)
	q.len++
}

func (q *list[T]) pop() *Place[T] {
	p := q.Oldest
	q.cut(p)
	return p
}

// cut takes p out.
func (q *list[T]) cut(p *Place[T]) {
	q.Cut(p)
	p.in = nil
	q.len--
}
