package proxy

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"optimist/internal/wire"
)

// phase is what a connection's reading side is doing, as far as time limits go.
type phase uint32

const (
	// busy is everything but waiting for the client.
	busy phase = iota
	// idle is waiting for a request's first byte.
	idle
	// inHead is waiting for the rest of a head.
	inHead
	// inBody is waiting for bytes of a body.
	inBody
)

// phaseBits is how many low bits of conn.reading hold the phase; the others count requests, so that the watcher can tell
// the same phase of two requests apart.
const phaseBits = 2

// cause is why the watcher ended what a connection was waiting for.
type cause uint32

const (
	notCut cause = iota
	cutIdle
	cutHead
	cutBody
	cutWrite
	cutStopped
)

// err is what the cut is for whoever was waiting.
func (c cause) err() error {
	switch c {
	case cutIdle:
		return errIdle
	case cutHead:
		return errHeaderTimeout
	case cutBody:
		return errBodyTimeout
	case cutWrite:
		return errWriteTimeout
	}
	return ErrStopped
}

// state is what a connection's goroutines say about themselves, for the watcher to read. Setting deadlines for every read
// would cost more than the rest of a small request's handling; instead one goroutine looks at all connections every Tick,
// and sets a deadline in the past on those that have waited for too long.
type state struct {
	reading atomic.Uint32 // phase, and the number of the request
	writing atomic.Uint32 // 1 during a write
	got     atomic.Int64  // bytes of bodies that came
	given   atomic.Int64  // bytes that the client took in writes that have ended
	missing atomic.Int64  // bytes that a write must have moved when it is cut, or it was too slow
	cut     atomic.Uint32 // a cause
	served  uint32        // requests begun; of the connection's own goroutine

	seen sighting // the watcher's own
}

// sighting is what the watcher remembers of a connection.
type sighting struct {
	reading   uint32
	since     int // ticks that reading was the same
	body, out window
}

// window counts the ticks that a side was found waiting for its client, and how much had moved when the count began.
type window struct {
	ticks int
	mark  int64
}

// missing returns, once in limit ticks of waiting, how many bytes the side is short of the least that must have moved
// meanwhile: 0 or less if it isn't.
func (w *window) missing(moved int64, limit int, least int64) int64 {
	w.ticks++
	if limit < 0 || w.ticks < limit {
		return 0
	}
	short := least - (moved - w.mark)
	*w = window{mark: moved}
	return short
}

// enter says what the reading side does from now on.
func (s *state) enter(p phase) { s.reading.Store(uint32(p) | s.served<<phaseBits) }

// ticks are the time limits in units of Limits.Tick; negative ones are off.
type ticks struct {
	idle, head, body, write int
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
		bodyBytes: least(l.BodyTimeout), writeBytes: least(l.WriteTimeout),
	}
}

// inspect is called by the watcher once a tick.
func (c *conn) inspect(t *ticks, draining bool) {
	now := c.state.reading.Load()
	seen := &c.state.seen
	if now != seen.reading {
		if now>>phaseBits != seen.reading>>phaseBits {
			seen.body = window{mark: c.state.got.Load()}
		}
		seen.reading, seen.since = now, 0
	} else {
		seen.since++
	}
	switch phase(now & (1<<phaseBits - 1)) {
	case idle:
		// A connection that was only just made, or answered, gets a tick: its next request may be on the way.
		if draining && seen.since > 0 || t.idle >= 0 && seen.since >= t.idle {
			c.cutRead(cutIdle)
		}
	case inHead:
		if t.head >= 0 && seen.since >= t.head {
			c.cutRead(cutHead)
		}
	case inBody:
		if seen.body.missing(c.state.got.Load(), t.body, t.bodyBytes) > 0 {
			c.cutRead(cutBody)
		}
	case busy:
		if seen.since > 0 && c.probe.State() == wire.PeerGone {
			c.cancel(ErrLeft)
		}
	}
	if c.state.writing.Load() == 0 {
		seen.out = window{mark: c.state.given.Load()}
	} else if short := seen.out.missing(c.state.given.Load(), t.write, t.writeBytes); short > 0 {
		c.cutWrite(short)
	}
}

// past is a deadline that has passed.
func past() time.Time { return time.Unix(1, 0) }

// cutRead ends a wait for the client.
func (c *conn) cutRead(why cause) {
	if c.state.cut.CompareAndSwap(uint32(notCut), uint32(why)) {
		_ = c.nc.SetReadDeadline(past())
	}
}

// cutWrite ends a write, for good unless it has moved at least missing bytes.
func (c *conn) cutWrite(missing int64) {
	c.state.missing.Store(missing)
	c.state.cut.CompareAndSwap(uint32(notCut), uint32(cutWrite))
	_ = c.nc.SetWriteDeadline(past())
}

// lastWord is how long a client may take to hear what became of its request when the server is closed.
const lastWord = 250 * time.Millisecond

// stop ends whatever the connection is waiting for, for good.
func (c *conn) stop() {
	c.state.cut.Store(uint32(cutStopped))
	_ = c.nc.SetReadDeadline(past())
	_ = c.nc.SetWriteDeadline(time.Now().Add(lastWord))
	c.cancel(ErrStopped)
}

// timedOut reports whether err is a deadline's.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
