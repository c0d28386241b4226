package retry

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestABatchThatIsKeptHoldsItsLaneUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waited := 0
		ls := NewLanes(8, sameScope)
		ls.Waits = func(*change) { waited++ }
		var kept *Batch[*change]
		if err := ls.Do(t.Context(), ref, &change{"a", "x"}, false, func(b *Batch[*change]) { b.Keep(); kept = b }); err != nil {
			t.Fatal(err)
		}
		var r record
		second := queued(t, t.Context(), ls, &change{"b", "x"}, false, r.run)
		if lanes, waiting := ls.Busy(); lanes != 1 || waiting != 1 || waited != 1 || len(r.batches) != 0 {
			t.Errorf("%d lanes, %d wait, of which %d told it; %v have run", lanes, waiting, waited, r.batches)
		}
		kept.End()
		if err := <-second; err != nil || len(r.batches) != 1 {
			t.Error(err, r.batches)
		}
		if lanes, _ := ls.Busy(); lanes != 0 {
			t.Errorf("%d lanes are left", lanes)
		}
	})
}

func TestABatchThatWasPassedOverIsKeptAndEndsWithoutTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		var kept *Batch[*change]
		if err := ls.Do(t.Context(), ref, &change{"a", "x"}, false, func(b *Batch[*change]) { b.Keep(); kept = b }); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		second := queued(t, t.Context(), ls, &change{"b", "x"}, false, func(*Batch[*change]) { <-release })
		time.Sleep(Patience)
		synctest.Wait()
		kept.End()
		if lanes, waiting := ls.Busy(); lanes != 1 || waiting != 0 {
			t.Errorf("%d lanes with %d waiters, though the second still works", lanes, waiting)
		}
		close(release)
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}
