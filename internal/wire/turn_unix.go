//go:build unix

package wire

import (
	"os"
	"syscall"
)

const canTurn = true

// writeOnce writes what the socket takes without waiting.
func writeOnce(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, nil
		case err != nil:
			return 0, os.NewSyscallError("write", err)
		}
		return n, nil
	}
}

// readOnce reads what is there; wait says that nothing is.
func readOnce(fd uintptr, p []byte) (n int, wait bool, err error) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, os.NewSyscallError("read", err)
		}
		return n, false, nil
	}
}
