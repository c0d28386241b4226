// Package large leaves a processor for small work while large texts are worked on.
//
// Go lets a goroutine keep a processor for up to 10 ms while others wait for one. A few clients that send compressed documents, or bulks of
// many items, would make each small request of everybody else wait behind them, one after the other. So work on a large text takes a place
// first, and there is a place less than there are processors at the start. Where there is only one processor there is one place. Who has a
// place gives it to the next after a short turn, so that the less work there is on a text, the sooner it is done. Between two turns the
// goroutine also lets others have its processor. Small requests may wait in this processor's own queue: the other processors take
// nothing from there while they have work of their own.
package large

import "runtime"

// size is how many bytes a large text has at least. To read one of them takes some tenths of a millisecond.
const size = 64 << 10

// places holds a value for each piece of work under way.
var places = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))

// Work is work on one text. The zero value has no place. It belongs to one goroutine.
type Work struct{ placed bool }

// Turn begins a turn. It first ends the one before, and lets small work have the processor. bytes is how many bytes the text has, as far as
// that is known. If that makes it a large one, Turn waits for a place, behind all that wait already. A turn should take a tenth of a
// millisecond or so. Until End, work must wait for nothing but its next turn: not for the engine, and not for other work, which may
// wait for this one's place.
func (w *Work) Turn(bytes int) {
	if w.placed {
		w.End()
		runtime.Gosched()
	}
	if bytes >= size {
		places <- struct{}{}
		w.placed = true
	}
}

// End leaves the place, if there is one.
func (w *Work) End() {
	if w.placed {
		w.placed = false
		<-places
	}
}
