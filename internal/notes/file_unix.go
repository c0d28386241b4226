//go:build unix

package notes

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for this process until it is closed. It doesn't wait.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// mapFile maps the file so that what is written to it is the file's at once, as all processes see it.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapFile(data []byte) { _ = unix.Munmap(data) } // it fails for what isn't mapped only
