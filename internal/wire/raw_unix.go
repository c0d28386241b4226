//go:build unix

package wire

import (
	"os"
	"syscall"
)

// canTurn says that sockets can be read and written here without waiting.
const canTurn = true

// TryRead reads what a non-blocking socket has, at most len(p) bytes, which must be more than 0. wait says that there is
// nothing yet; 0 bytes without wait and error are the peer's end. It is for functions given to a syscall.RawConn.
func TryRead(fd uintptr, p []byte) (n int, wait bool, err error) {
	for {
		n, errno := rawRead(fd, p)
		switch errno {
		case 0:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, os.NewSyscallError("read", errno)
		}
	}
}

// TryWrite writes as much of p, which must not be empty, as a non-blocking socket takes. wait says that it takes nothing
// now. It is for functions given to a syscall.RawConn.
func TryWrite(fd uintptr, p []byte) (n int, wait bool, err error) {
	for {
		n, errno := rawWrite(fd, p)
		switch errno {
		case 0:
			return n, false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return 0, false, os.NewSyscallError("write", errno)
		}
	}
}
