package bulk

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachStepIsDoneOnce(t *testing.T) {
	const steps = 5000
	var done [steps]int
	var wg sync.WaitGroup
	wg.Add(steps)
	InTurn(steps, func(_ *Turns, k int) {
		done[k]++
		wg.Done()
	})
	wg.Wait()
	for k, n := range done {
		if n != 1 {
			t.Fatalf("step %d was done %d times", k, n)
		}
	}
}

func TestAStepThatWaitsHoldsUpNoOther(t *testing.T) {
	for name, say := range map[string]bool{"and says so": true, "and doesn't say so": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				steps := 10 * runtime.GOMAXPROCS(0)
				all := make(chan struct{})
				var wg, done sync.WaitGroup
				wg.Add(steps)
				done.Add(steps)
				InTurn(steps, func(turns *Turns, _ int) {
					defer done.Done()
					if say {
						turns.Wait()
					}
					wg.Done()
					<-all // each waits for all others
				})
				wg.Wait()
				if took := time.Since(began); say && took > 0 || took > 10*stalled {
					t.Errorf("the last step began after %s", took)
				}
				close(all)
				done.Wait()
				time.Sleep(10 * stalled) // until nobody looks after them
			})
		})
	}
}
