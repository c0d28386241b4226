//go:build unix && (!linux || race)

package wire

import "syscall"

// The race detector knows what goes through a socket only from the syscall package.

func rawRead(fd uintptr, p []byte) (int, syscall.Errno) { return result(syscall.Read(int(fd), p)) }

func rawWrite(fd uintptr, p []byte) (int, syscall.Errno) { return result(syscall.Write(int(fd), p)) }

func result(n int, err error) (int, syscall.Errno) {
	if errno, ok := err.(syscall.Errno); ok {
		return 0, errno
	}
	return n, 0
}
