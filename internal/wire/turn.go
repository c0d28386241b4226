package wire

import (
	"io"
	"net"
	"syscall"
)

// Turn writes a message to a socket and waits for the peer's next bytes, with one system call less than Write and then
// Read: Go's Read tries at once, and finds nothing, because the peer has only just been given its turn. Here the wait is
// armed before the write and the first read comes after it. It is for one goroutine at a time, which must be the only one
// that writes.
type Turn struct {
	conn net.Conn
	raw  syscall.RawConn
	step func(fd uintptr) bool

	out, in     []byte
	wrote, read int
	begun       bool
	writeErr    error
	readErr     error
}

// NewTurn returns a Turn of c, or nil if c is not a plain TCP connection on a system where this works; then use Write and
// Read.
func NewTurn(c net.Conn) *Turn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !canTurn {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	t := &Turn{conn: c, raw: raw}
	t.step = t.next
	return t
}

// Do writes out and, if all of it went out, reads into in once. It returns how much was written with the error of writing,
// and how much was read with the error of reading, which is io.EOF when the peer has ended.
func (t *Turn) Do(out, in []byte) (wrote int, writeErr error, read int, readErr error) {
	t.out, t.in = out, in
	t.wrote, t.read, t.begun, t.writeErr, t.readErr = 0, 0, false, nil, nil
	err := t.raw.Read(t.step)
	t.out, t.in = nil, nil
	switch {
	case err != nil && !t.begun:
		return 0, err, 0, nil // a deadline that has passed, or a connection that we closed
	case t.writeErr != nil:
		return t.wrote, t.opError("write", t.writeErr), 0, nil
	case err != nil:
		return t.wrote, nil, 0, err
	case t.wrote < len(out):
		return t.rest(out, in)
	case t.readErr != nil:
		return t.wrote, nil, 0, t.opError("read", t.readErr)
	case t.read == 0:
		return t.wrote, nil, 0, io.EOF
	}
	return t.wrote, nil, t.read, nil
}

// rest goes on the usual way where the socket took only a part.
func (t *Turn) rest(out, in []byte) (wrote int, writeErr error, read int, readErr error) {
	n, err := t.conn.Write(out[t.wrote:])
	wrote = t.wrote + n
	if err != nil {
		return wrote, err, 0, nil
	}
	read, readErr = t.conn.Read(in)
	return wrote, nil, read, readErr
}

// next is called with the socket: once at the beginning, and then whenever there may be something to read. It returns false
// to wait.
func (t *Turn) next(fd uintptr) bool {
	if !t.begun {
		t.begun = true
		t.wrote, _, t.writeErr = TryWrite(fd, t.out)
		return t.writeErr != nil || t.wrote < len(t.out)
	}
	n, wait, err := TryRead(fd, t.in)
	if wait {
		return false
	}
	t.read, t.readErr = n, err
	return true
}

// opError dresses an error as the net package does.
func (t *Turn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: t.conn.LocalAddr(), Addr: t.conn.RemoteAddr(), Err: err}
}
