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

func TestABatchBesideTheLaneIsKeptAndEndsWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		release := make(chan struct{})
		first := queued(t, t.Context(), ls, &change{"a", "x"}, false, func(*Batch[*change]) { <-release })
		var kept *Batch[*change]
		if err := ls.Do(t.Context(), ref, &change{"b", "x"}, false, func(b *Batch[*change]) { b.Keep(); kept = b }); err != nil {
			t.Fatal(err)
		}
		kept.End()
		if lanes, _ := ls.Busy(); lanes != 1 {
			t.Errorf("%d lanes, though the first still works", lanes)
		}
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
