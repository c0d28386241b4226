//go:build !race

package wire

import (
	"syscall"
	"unsafe"
)

// maxRaw is the size in bytes up to which the scheduler isn't told of a system call. A call on a non-blocking socket that
// copies so little is over within microseconds; telling costs a tenth of a small request, because the monitor then takes the
// processor away from threads that the kernel happened to preempt inside such a call. Larger copies are told of.
const maxRaw = 16 << 10

func rawRead(fd uintptr, p []byte) (int, syscall.Errno) { return raw(syscall.SYS_READ, fd, p) }

func rawWrite(fd uintptr, p []byte) (int, syscall.Errno) { return raw(syscall.SYS_WRITE, fd, p) }

func raw(call, fd uintptr, p []byte) (int, syscall.Errno) {
	var n uintptr
	var errno syscall.Errno
	if len(p) <= maxRaw {
		n, _, errno = syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	} else {
		n, _, errno = syscall.Syscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
