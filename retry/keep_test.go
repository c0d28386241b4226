package retry

import (
	"testing"
	"testing/synctest"
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

// The leader whose lane was taken over is kept, and so is the one that took it over. Each end ends its own.
func TestABatchThatLostItsLaneIsKeptAndEndsWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		var kept []*Batch[*change]
		for range 2 {
			if err := ls.Do(t.Context(), ref, &change{"a", "x"}, false, func(b *Batch[*change]) { b.Keep(); kept = append(kept, b) }); err != nil {
				t.Fatal(err)
			}
		}
		kept[0].End()
		if lanes, _ := ls.Busy(); lanes != 1 {
			t.Errorf("%d lanes, though the second still works", lanes)
		}
		kept[1].End()
		if lanes, _ := ls.Busy(); lanes != 0 {
			t.Errorf("%d lanes are left", lanes)
		}
	})
}
