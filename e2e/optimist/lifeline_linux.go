package optimist

import "syscall"

// Lifeline makes the kernel end a program with the tests that started it, by that signal, however they end. The signal is sent when the
// thread that started the program ends, not the process; Go's runtime keeps its threads.
func Lifeline(end syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: end} }
