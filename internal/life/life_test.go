package life

import "testing"

func TestBlindWritersAreBounded(t *testing.T) {
	ix := New[int](1000).Index("shop", 0)
	for w := range 2 * maxNoted {
		ix.WroteBlindly(w, 1)
	}
	if n := ix.blind.lru.Len(); n != maxNoted {
		t.Fatal(n)
	}
	if !ix.IsBlind(2*maxNoted-1, 1000) || ix.IsBlind(0, 1000) || ix.IsBlind(2*maxNoted-1, 1001) {
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

func TestWhoHasSearchedWritesNothingBlindly(t *testing.T) {
	ix := New[int](1000).Index("shop", 0)
	ix.Searched(1, 1)
	ix.WroteBlindly(1, 2)
	ix.WroteBlindly(2, 2)
	if ix.IsBlind(1, 3) || !ix.IsBlind(2, 3) {
		t.Error("who has searched is blind, or who hasn't is not")
	}
	if ix.WroteBlindly(1, 1001); !ix.IsBlind(1, 1002) {
		t.Error("what was seen too long ago counts")
	}
}

func TestAWriterIsOneForTheAgeOfWhatIsKnown(t *testing.T) {
	ix := New[int](1000).Index("shop", 0)
	ix.WroteBy(1, 1)
	for _, now := range []int64{500, 999, 1400} { // it goes on
		if ix.WroteBy(1, now); !ix.IsWriter(1, now+1) || ix.IsWriter(2, now+1) {
			t.Error(now)
		}
	}
	if !ix.IsWriter(1, 2399) || ix.IsWriter(1, 2400) {
		t.Error("it is one for another time")
	}
}
