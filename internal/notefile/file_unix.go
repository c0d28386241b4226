//go:build unix

package notefile

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the file so that what is written to it is the file's at once, as all processes see it.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapFile(data []byte) { _ = unix.Munmap(data) } // it fails for what isn't mapped only
