package proxy

import (
	"time"

	"optimist/internal/wire"
)

// What the Server's watcher does with a connection. The watcher runs on a goroutine of its own: see state.

// inspect ends the connection's wait if that has taken too long, and notices a client that has left. The watcher calls it once a tick.
func (c *conn) inspect(t *ticks, draining bool) {
	now := c.state.reading.Load()
	seen := &c.state.watched
	if now != seen.reading {
		if now>>phaseBits != seen.reading>>phaseBits {
			seen.body = window{mark: c.state.received.Load()}
		}
		seen.reading, seen.since = now, 0
	} else {
		seen.since++
	}
	switch phase(now & (1<<phaseBits - 1)) {
	case idle:
		// A connection that has just been made, or answered, gets one more tick: its next request may be on the way.
		if draining && seen.since > 0 || t.idle >= 0 && seen.since >= t.idle {
			c.cutRead(cutIdle)
		}
	case inHead:
		if t.head >= 0 && seen.since >= t.head {
			c.cutRead(cutHead)
		}
	case inBody:
		if seen.body.missing(c.state.received.Load(), t.body, t.bodyBytes) > 0 {
			c.cutRead(cutBody)
		}
	case busy:
		if seen.since > 0 && c.probe.State() == wire.PeerGone {
			c.left(t)
		}
	}
	if c.state.writing.Load() == 0 {
		seen.out = window{mark: c.state.sent.Load()}
	} else {
		c.inspectWrite(t)
	}
}

// left ends the request's context, because the client has left. inspect calls it once a tick from then on. After t.outcome ticks, left also
// hangs up on the engine.
func (c *conn) left(t *ticks) {
	c.cancel(ErrLeft)
	seen := &c.state.watched
	if seen.gone++; t.outcome >= 0 && seen.gone > t.outcome {
		wire.HangUp(c.ctx)
	}
}

// inspectWrite looks at a write that is under way. Our own system takes no more bytes of a slow client's answer before a third of its
// buffer is free, which may take minutes: so bytes that the client's system has acknowledged meanwhile count, too.
func (c *conn) inspectWrite(t *ticks) {
	w := &c.state.watched.out
	if w.ticks == 0 {
		w.acknowledged, w.asks = c.probe.Acknowledged()
	}
	before, asks := w.acknowledged, w.asks
	short := w.missing(c.state.sent.Load(), t.write, t.writeBytes)
	if short <= 0 {
		return
	}
	if now, ok := c.probe.Acknowledged(); ok && asks && now-before >= t.writeBytes {
		return
	}
	c.cutWrite(short)
}

// cutRead ends a read that waits for the client.
func (c *conn) cutRead(why cause) {
	if c.state.cut.CompareAndSwap(uint32(notCut), uint32(why)) {
		_ = c.nc.SetReadDeadline(past())
	}
}

// cutWrite interrupts a write. The write goes on if the client has taken at least missing bytes of it.
func (c *conn) cutWrite(missing int64) {
	c.state.missing.Store(missing)
	c.state.cut.CompareAndSwap(uint32(notCut), uint32(cutWrite))
	_ = c.nc.SetWriteDeadline(past())
}

// stop ends the connection's wait for its client, and all later waits. Close of the Server calls it.
func (c *conn) stop() {
	c.state.cut.Store(uint32(cutStopped))
	_ = c.nc.SetReadDeadline(past())
	_ = c.nc.SetWriteDeadline(time.Now().Add(lastAnswerTime))
	c.cancel(ErrStopped)
}
