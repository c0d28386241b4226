//go:build !unix

package wire

import "errors"

const canTurn = false

// TryRead isn't for this system.
func TryRead(uintptr, []byte) (n int, wait bool, err error) { return 0, false, errors.ErrUnsupported }

// TryWrite isn't for this system.
func TryWrite(uintptr, []byte) (n int, wait bool, err error) { return 0, false, errors.ErrUnsupported }
