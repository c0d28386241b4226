package life

import "testing"

func TestBlindWritersAreBounded(t *testing.T) {
	ix := New[int](1000).Index("shop", 0)
	for w := range 2 * maxBlind {
		ix.WroteBlindly(w, 1)
	}
	if n := ix.blind.Len(); n != maxBlind {
		t.Fatal(n)
	}
	if !ix.IsBlind(2*maxBlind-1, 1000) || ix.IsBlind(0, 1000) || ix.IsBlind(2*maxBlind-1, 1001) {
		t.Error("the last ones are blind, for as long as anything is known")
	}
}

func TestALifeIsRenewedOnceForEachWhoFindsOut(t *testing.T) {
	in := New[int](1000)
	ix := in.Index("shop", 0)
	gone, before := ix.Gone(), in.Epoch()
	at, renewed := ix.Renew(gone)
	if !renewed || at <= before || ix.Gone() != at || in.Index("other", 0).Gone() != 0 {
		t.Fatalf("%d %v after %d", at, renewed, before)
	}
	if again, renewed := ix.Renew(gone); renewed || again != at {
		t.Errorf("%d %v: the second who found out ended the life that the first had begun", again, renewed)
	}
	in.DropAll()
	if ix.Gone() != in.Epoch() || in.Index("other", 0).Gone() != in.Epoch() {
		t.Error("something outlives the drop of all")
	}
}

func TestAnIndexIsMissingOnceAndOnlyIfItWasThere(t *testing.T) {
	ix := New[int](1000).Index("shop", 0)
	if ix.Missing(1) {
		t.Error("nothing was known of it")
	}
	ix.KeepsBodies(5)
	ix.Acknowledged(7)
	if ix.Missing(7) {
		t.Error("a write since has made it")
	}
	if !ix.Missing(8) || ix.Missing(9) {
		t.Error("its life has one end")
	}
}
