//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open at once. The Go runtime has raised it as far as the process may.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}
