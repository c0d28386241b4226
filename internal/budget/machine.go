package budget

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// unknownMachine is the memory of a machine that doesn't say how much it has.
const unknownMachine = 1 << 30

// Machine is how many bytes of memory the process may take: what the machine has, or less where its container, or the environment
// variable GOMEMLIMIT, allows less.
func Machine() int64 {
	least := uint64(math.MaxInt64)
	for _, ask := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := ask(); err == nil && n > 0 { // it errs where there is no limit, or none can be read
			least = min(least, n)
		}
	}
	if least == math.MaxInt64 {
		least = unknownMachine
	}
	return min(int64(least), debug.SetMemoryLimit(-1))
}
