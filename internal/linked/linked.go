// Package linked has lists whose elements hold their own links. So an element takes no memory beside itself, and leaves without a search.
package linked

// Links are an element's neighbours in a List. Embed them in the element.
type Links[T any] struct{ Older, Newer T }

func (l *Links[T]) links() *Links[T] { return l }

// Element is a pointer to what has Links. It is in one List at a time.
type Element[T any] interface {
	comparable
	links() *Links[T]
}

// List is a list of elements, in the order in which they came. The zero value is empty. It is for one goroutine at a time.
type List[T Element[T]] struct{ Oldest, Newest T }

// Push makes v the newest. v must be in no List.
func (l *List[T]) Push(v T) {
	var none T
	v.links().Older = l.Newest
	if l.Newest == none {
		l.Oldest = v
	} else {
		l.Newest.links().Newer = v
	}
	l.Newest = v
}

// Cut takes v out, which must be in the List.
func (l *List[T]) Cut(v T) {
	var none T
	at := v.links()
	if at.Older == none {
		l.Oldest = at.Newer
	} else {
		at.Older.links().Newer = at.Newer
	}
	if at.Newer == none {
		l.Newest = at.Older
	} else {
		at.Newer.links().Older = at.Older
	}
	*at = Links[T]{}
}

// Renew makes v the newest, which must be in the List.
func (l *List[T]) Renew(v T) {
	if l.Newest != v {
		l.Cut(v)
		l.Push(v)
	}
}
