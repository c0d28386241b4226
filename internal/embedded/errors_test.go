package embedded

import (
	"runtime"
	"testing"
)

// A request of a million empty ids has as many faults, and all are told.
func TestManyFaultsOfOneRequestCostNoMoreThanInProportion(t *testing.T) {
	cost := func(n int) uint64 {
		v := validation{messages: make([]string, n)}
		for i := range v.messages {
			v.messages[i] = "id is missing"
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if e := v.err(); e == nil {
			t.Fatal("no error")
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := cost(5000), cost(20_000); large > 10*small {
		t.Errorf("%d bytes are allocated for 5,000 faults, and %d for 20,000", small, large)
	}
}
