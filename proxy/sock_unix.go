//go:build unix

package proxy

import (
	"io"
	"net"
	"syscall"

	"optimist/internal/wire"
)

// sock reads and writes a socket. What it has over net.Conn: it knows when it really has to wait, and says so to the
// watcher only then; and it sees how much of a long write the client has taken so far.
type sock struct {
	c   *conn
	raw syscall.RawConn // nil: nc isn't a socket, but TLS or a test's pipe

	in         []byte // of the read under way
	n          int
	readErr    error
	out        []byte // of the write under way
	writeErr   error
	onReadable func(fd uintptr) bool // made once: closures made at each call would be garbage
	onWritable func(fd uintptr) bool
	once       func(fd uintptr)
	held       bool // this write had to wait
}

func (s *sock) init(c *conn) {
	s.c = c
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	s.raw = raw
	s.onReadable = s.tryRead
	s.onWritable = s.tryWrite
	s.once = func(fd uintptr) { s.tryRead(fd) }
}

// each calls step now and whenever there may be something to read, until it returns true or the wait is cut.
func (s *sock) each(step func(fd uintptr) bool) {
	if s.raw != nil {
		_ = s.raw.Read(step)
	}
}

// read reads at least one byte, or returns an error.
func (s *sock) read(p []byte) (int, error) {
	if s.raw == nil {
		s.c.waiting()
		return s.c.nc.Read(p)
	}
	s.in = p
	err := s.raw.Read(s.onReadable)
	s.in = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.readErr
}

// peekRead reads what is there, without waiting and whatever the deadline: 0 bytes if there is nothing.
func (s *sock) peekRead(p []byte) int {
	if s.raw == nil {
		return 0
	}
	s.in, s.n, s.readErr = p, 0, nil
	if err := s.raw.Control(s.once); err != nil || s.readErr != nil {
		return 0
	}
	return s.n
}

// tryRead reports whether the read is over.
func (s *sock) tryRead(fd uintptr) bool {
	n, wait, err := wire.TryRead(fd, s.in)
	switch {
	case wait:
		s.n = 0
		s.c.waiting()
		return false
	case err == nil && n == 0:
		err = io.EOF
	}
	s.n, s.readErr = n, err
	return true
}

// write writes all of p.
func (s *sock) write(p []byte) error {
	if s.raw == nil {
		return s.slowWrite(p)
	}
	s.out, s.writeErr = p, nil
	err := s.raw.Write(s.onWritable)
	if s.held {
		s.held = false
		s.c.state.writing.Store(0)
	}
	s.out = nil
	if err != nil {
		return err
	}
	return s.writeErr
}

// tryWrite reports whether the write is over.
func (s *sock) tryWrite(fd uintptr) bool {
	for len(s.out) > 0 {
		n, wait, err := wire.TryWrite(fd, s.out)
		switch {
		case wait:
			s.hold()
			return false
		case err != nil:
			s.writeErr = err
			return true
		}
		s.out = s.out[n:]
		if s.held {
			s.c.state.given.Add(int64(n))
		}
	}
	return true
}

// hold says that the client holds up a write.
func (s *sock) hold() {
	s.held = true
	s.c.state.writing.Store(1)
}
