//go:build !linux

package notefile

// sinceStart doesn't know the system's start: the wall clock has to do.
func sinceStart() (now int64, start uint64) { return 0, 0 }
