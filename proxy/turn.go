package proxy

import (
	"errors"
	"io"

	"optimist/internal/wire"
)

// turn is how small requests are served with as few system calls as there can be. A read that finds nothing, which is how
// Go waits, costs one call a request. Here the runtime's wait is armed once, and within it requests are read, forwarded and
// answered until the socket is empty; then the wait goes on. It is empty when a read has left room in its buffer: what comes
// later makes the wait end again. Only what is here as a whole is served in a turn, because nothing can be waited for in it.
//
// One thing such a wait can't see: that the client ended its sending side at the same moment as it sent its last bytes. The
// watcher looks for that.
type turn struct {
	step    func(fd uintptr) bool // conn.ready, made once
	fd      uintptr
	on      bool
	emptied bool // the last read left room
	stopped stage
	err     error
}

// stage is where a turn ended.
type stage uint8

const (
	atHead  stage = iota // a head isn't here, or not as a whole
	atBody               // a head was read, its body isn't here
	atError              // a head was refused
	atEnd                // the connection ends
)

// errAgain reports that there is nothing to read just now.
var errAgain = errors.New("nothing to read yet")

// takeTurn serves what comes until a request has to be waited for, or the wait is cut.
func (c *conn) takeTurn() {
	c.turn.stopped, c.turn.err = atHead, nil
	c.turn.emptied = false // what an earlier turn saw says nothing about reads since: they may have left bytes behind
	c.sock.each(c.turn.step)
}

// ready is called with the socket when there may be something to read. It returns false to wait for more.
func (c *conn) ready(fd uintptr) bool {
	t := &c.turn
	t.fd, t.on = fd, true
	done := c.serveReady()
	t.on = false
	return done
}

func (c *conn) serveReady() bool {
	x, t := &c.x, &c.turn
	for {
		x.begin()
		err := x.head.ReadRequest(&c.r, c.server.limits.MaxHeader)
		if err != nil && c.again(err) {
			if c.r.Buffered() > 0 {
				return true
			}
			c.state.enter(idle)
			return false
		}
		c.state.enter(busy)
		if err != nil {
			t.stopped = atError
			return true
		}
		x.open()
		if !x.in.here() {
			t.stopped = atBody
			return true
		}
		x.answer()
		if !x.end() {
			t.stopped = atEnd
			return true
		}
		if t.emptied && c.r.Buffered() == 0 {
			c.state.enter(idle)
			return false
		}
	}
}

// again takes note of a read's error. It reports whether that was only that there is nothing to read.
func (c *conn) again(err error) bool {
	if errors.Is(err, errAgain) {
		c.r.Recover()
		return true
	}
	c.turn.err = err
	return false
}

// read reads what is there.
func (t *turn) read(p []byte) (int, error) {
	n, wait, err := wire.TryRead(t.fd, p)
	t.emptied = n < len(p)
	switch {
	case wait:
		return 0, errAgain
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}
