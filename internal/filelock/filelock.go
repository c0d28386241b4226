// Package filelock takes a file for one process.
//
// It binds only processes that ask, and only on one machine.
package filelock

import "errors"

// ErrInUse reports that another process has the file.
var ErrInUse = errors.New("another process uses it")
