//go:build !linux

package optimist

import "syscall"

// lifeline is nothing here: a program outlives tests that were killed.
func lifeline() *syscall.SysProcAttr { return nil }
