package notefile

import (
	"runtime/debug"
	"time"
)

// The moments in the file are on a clock of its own, because each of the system's may be wrong from one process to the next: the wall clock
// is set, the clock since the system's start ends with that, and a process counts no time in which the system sleeps. If a note seemed too
// old, or from the future, a client's write would go unguarded.
//
// A process begins after the last moment in the file, by the time that has gone by since then. If two clocks tell different times, the
// shorter one counts: a note that is too young only makes a guard.

// The words of the clock in the head.
const (
	lastAt  = clockAt + iota // the last moment of a note, or of a drop, to within tick
	wallAt                   // how far the wall clock was ahead of the moment then
	sinceAt                  // how far the time since the system's start was ahead of the moment at which the process began
	startAt                  // which start that was
)

// A process may be killed between any two words. How far a clock is ahead stays the same until somebody sets the clock. So this number fits
// the last moment, and the moment before.

// tick is how exact the last moment is in the file, in nanoseconds.
const tick = int64(time.Millisecond)

// clocks are the system's.
type clocks struct {
	wall func() int64 // in nanoseconds since 1970
	// since is the time since the system's start in nanoseconds, and a number that stands for that start. 0: it isn't known.
	since func() (now int64, start uint64)
}

var systemClocks = clocks{wall: func() int64 { return time.Now().UnixNano() }, since: sinceStart}

// Begin implements note.Notebook. The clock of a new file begins as the wall clock.
func (b *Book) Begin() (moment int64) {
	b.locks[0].Lock()
	defer b.locks[0].Unlock()
	if b.words == nil || b.lost.Load() {
		return b.clocks.wall()
	}
	defer b.survive(debug.SetPanicOnFault(true))
	moment = b.clocks.wall()
	since, start := b.clocks.since()
	if last := b.clock(lastAt); last != 0 {
		gone := moment - b.clock(wallAt) - last
		if start != 0 && start == b.words[startAt].Load() {
			gone = min(gone, since-b.clock(sinceAt)-last)
		}
		moment = last + tick + max(gone, 0)
	}
	b.setClock(sinceAt, since-moment)
	b.words[startAt].Store(start)
	b.tick(moment)
	return moment
}

// tick notes the last moment. The caller holds a lock of the book, and survives.
func (b *Book) tick(moment int64) {
	for last := b.clock(lastAt); moment >= last+tick; last = b.clock(lastAt) {
		b.setClock(wallAt, b.clocks.wall()-moment)
		b.words[lastAt].CompareAndSwap(uint64(last), uint64(moment)) //nolint:gosec // the same bits
	}
}

func (b *Book) clock(at int) int64        { return int64(b.words[at].Load()) } //nolint:gosec // the same bits
func (b *Book) setClock(at int, ns int64) { b.words[at].Store(uint64(ns)) }    //nolint:gosec // likewise
