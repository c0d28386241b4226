// Package large leaves a processor for small work while large texts are worked on.
//
// Go lets a goroutine keep a processor for up to 10 ms while others wait for one. A few clients that send compressed documents, or bulks of
// many items, would make each small request of everybody else wait behind them, one after the other. So work on a large text takes a place
// first, and there is a place less than there are processors. Where there is only one processor there is one place.
package large

import "runtime"

// size is how many bytes a large text has at least. To read one of them takes some tenths of a millisecond.
const size = 64 << 10

// places holds a value for each piece of work under way.
var places = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))

// Work is a piece of work on one text. The zero value has no place. It belongs to one goroutine.
type Work struct{ placed bool }

// Begin says how many bytes the text has, as far as that is known. If that makes it a large text, Begin waits for a place; those who wait
// get one in turn. Work that has a place keeps it, whatever Begin is told later. Until End, work must wait for nothing: not for the engine,
// and not for other work, which may wait for this one's place. Begin returns the work, so that a function can begin it and defer its end in
// one line.
func (w *Work) Begin(bytes int) *Work {
	if !w.placed && bytes >= size {
		places <- struct{}{}
		w.placed = true
	}
	return w
}

// End leaves the place, if there is one.
func (w *Work) End() {
	if w.placed {
		w.placed = false
		<-places
	}
}
