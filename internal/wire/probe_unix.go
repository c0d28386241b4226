//go:build unix && !linux

package wire

import "syscall"

// peek looks at the first byte to read, if any.
func peek(fd uintptr) PeerState {
	var b [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK:
			return PeerQuiet
		case err != nil || n == 0:
			return PeerGone
		}
		return PeerSent
	}
}

// acknowledged can't tell on this system.
func acknowledged(uintptr) (n int64, ok bool) { return 0, false }
