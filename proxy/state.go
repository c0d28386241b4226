package proxy

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// phase is what a connection's reading side waits for. Each phase has its own time limit.
type phase uint32

const (
	// busy is everything other than waiting for bytes of the client.
	busy phase = iota
	// idle is waiting for a request's first byte.
	idle
	// inHead is waiting for the rest of a head.
	inHead
	// inBody is waiting for bytes of a body.
	inBody
)

// phaseBits is how many low bits of state.reading hold the phase. The other bits count requests, so that the watcher can
// distinguish the same phase of two requests.
const phaseBits = 2

// cause is the reason why the watcher, or Close, ended a connection's wait.
type cause uint32

const (
	notCut cause = iota
	cutIdle
	cutHead
	cutBody
	cutWrite
	cutStopped
)

var causeErrors = [...]error{cutIdle: errIdle, cutHead: errHeaderTimeout, cutBody: errBodyTimeout, cutWrite: errWriteTimeout,
	cutStopped: ErrStopped}

// err is the error of the read or write that was cut.
func (c cause) err() error { return causeErrors[c] }

// state is how a connection's goroutines tell the watcher what they are doing. A deadline for every read and write would cost
// more than everything else that a small request needs. Instead one goroutine, the watcher, looks at all connections every
// Tick, and sets a deadline in the past on those that have waited for too long.
type state struct {
	reading  atomic.Uint32 // the phase, and the number of the request
	writing  atomic.Uint32 // 1 during a write
	received atomic.Int64  // bytes that came
	sent     atomic.Int64  // bytes that the client took in writes that have ended
	missing  atomic.Int64  // bytes that the client must have taken of a write that is cut, or it was too slow
	cut      atomic.Uint32 // a cause
	requests uint32        // requests begun; of the connection's own goroutine

	watched observation // the watcher's own
}

// observation is what the watcher remembers of a connection.
type observation struct {
	reading   uint32
	since     int // for how many ticks reading has been the same
	gone      int // for how many the client was found to have left
	body, out window
}

// window counts the ticks at which the watcher found one direction waiting for the client, and remembers how many bytes had moved
// when the count began.
type window struct {
	ticks int
	mark  int64

	acknowledged int64 // how many bytes the client's system had acknowledged then
	asks         bool  // it can be asked
}

// missing is called at each tick of waiting. Once in limit ticks it returns how many bytes fewer than least have moved since the
// last time; 0 or less if enough have.
func (w *window) missing(moved int64, limit int, least int64) int64 {
	w.ticks++
	if limit < 0 || w.ticks < limit {
		return 0
	}
	short := least - (moved - w.mark)
	*w = window{mark: moved}
	return short
}

// enter sets the phase of the reading side.
func (s *state) enter(p phase) { s.reading.Store(uint32(p) | s.requests<<phaseBits) }

// ticks are the time limits in units of Limits.Tick; negative ones are off.
type ticks struct {
	idle, head, body, write int
	outcome                 int
	bodyBytes, writeBytes   int64 // what must move in body and write ticks
}

func (l *Limits) ticks() ticks {
	in := func(d time.Duration) int {
		if d < 0 {
			return -1
		}
		return int((d + l.Tick - 1) / l.Tick)
	}
	least := func(d time.Duration) int64 { return max(1, int64(float64(l.MinRate)*d.Seconds())) }
	return ticks{
		idle: in(l.IdleTimeout), head: in(l.HeaderTimeout), body: in(l.BodyTimeout), write: in(l.WriteTimeout),
		outcome:   in(l.Outcome),
		bodyBytes: least(l.BodyTimeout), writeBytes: least(l.WriteTimeout),
	}
}

// past is a deadline that has passed.
func past() time.Time { return time.Unix(1, 0) }

// lastAnswerTime is how long a client may take to read its answer when the Server is closed.
const lastAnswerTime = 250 * time.Millisecond

// timedOut reports whether err says that a deadline has passed.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
