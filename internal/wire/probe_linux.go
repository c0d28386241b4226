package wire

import (
	"errors"

	"golang.org/x/sys/unix"
)

// peek asks what the socket is ready for. The first byte to read would tell nothing of a peer that left after it.
func peek(fd uintptr) PeerState {
	set := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}} //nolint:gosec // a file descriptor is an int32
	for {
		n, err := unix.Poll(set[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return PeerGone
		case n == 0:
			return PeerQuiet
		case set[0].Revents&^unix.POLLIN != 0:
			return PeerGone
		}
		return PeerSent
	}
}

// acknowledged asks for TCP_INFO. Linux counts acknowledged bytes since 4.1; before, it says 0.
func acknowledged(fd uintptr) (n int64, ok bool) {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, false
	}
	return int64(info.Bytes_acked), true //nolint:gosec // no connection takes 2^63 bytes
}
