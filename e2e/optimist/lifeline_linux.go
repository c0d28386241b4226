package optimist

import "syscall"

// lifeline makes the kernel end the program with the tests, however those end. The signal is sent when the thread that started the
// program ends, not the process; Go's runtime keeps its threads.
func lifeline() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
