package indexstate

import "testing"

func TestBlindWritersAreBounded(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
	for w := range 2 * maxRecent {
		ix.WroteBlindly(w, 1)
	}
	if n := ix.blind.lru.Len(); n != maxRecent {
		t.Fatal(n)
	}
	if !ix.IsBlind(2*maxRecent-1, 1000) || ix.IsBlind(0, 1000) || ix.IsBlind(2*maxRecent-1, 1001) {
		t.Error("the last ones are blind, for as long as anything is known")
	}
}

func TestALifeIsRenewedOnceForEachWhoFindsOut(t *testing.T) {
	in := New[int](1000)
	ix := in.Index("shop", Owner{}, 0)
	gone, before := ix.Gone(), in.Epoch()
	at, renewed := ix.Renew(Owner{}, gone)
	if !renewed || at <= before || ix.Gone() != at || in.Index("other", Owner{}, 0).Gone() != 0 {
		t.Fatalf("%d %v after %d", at, renewed, before)
	}
	if again, renewed := ix.Renew(Owner{}, gone); renewed || again != at {
		t.Errorf("%d %v: the second who found out ended the life that the first had begun", again, renewed)
	}
	in.DropAll()
	if ix.Gone() != in.Epoch() || in.Index("other", Owner{}, 0).Gone() != in.Epoch() {
		t.Error("something outlives the drop of all")
	}
}

func TestAnIndexIsMissingOnceAndOnlyIfItWasThere(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
	if ix.Missing(Owner{}, 1) {
		t.Error("nothing was known of it")
	}
	ix.KeepsBodies(5)
	ix.Acknowledged(7)
	if ix.Missing(Owner{}, 7) {
		t.Error("a write since has made it")
	}
	if !ix.Missing(Owner{}, 8) || ix.Missing(Owner{}, 9) {
		t.Error("its life has one end")
	}
}

func TestWhoHasSearchedWritesNothingBlindly(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
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
	ix := New[int](1000).Index("shop", Owner{}, 0)
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

func TestADropSparesWhoHasAnIndexOfThatNameElsewhere(t *testing.T) {
	const here, there, unknown = 1, 2, 3
	owner := func(n byte) Owner { return Owner{n} }
	in := New[int](1000)
	in.Others = func(name string, o Owner) []Owner {
		switch {
		case name == "shop" && o == owner(here):
			return []Owner{owner(there)}
		case name == "shop" && o == owner(there):
			return []Owner{owner(here)}
		}
		return nil
	}
	gone := func(name string, n byte) Epoch { return in.Index(name, owner(n), 0).Gone() }
	in.Index("shop", owner(there), 0).WroteBy(there, 0)
	in.Index("shop", owner(here), 0).Drop(owner(here))
	first := in.Epoch()
	if gone("shop", here) != first || gone("shop", unknown) != first || gone("shop", there) != 0 {
		t.Errorf("%d %d %d: who has another index has lost something, or who may have the same hasn't", gone("shop", here), gone("shop", unknown),
			gone("shop", there))
	}
	if !in.Index("shop", owner(there), 0).IsWriter(there, 1) {
		t.Error("it isn't known any more who writes")
	}
	in.Index("shop", owner(there), 0).Drop(owner(there))
	second := in.Epoch()
	if gone("shop", there) != second || gone("shop", unknown) != second || gone("shop", here) != first {
		t.Errorf("%d %d %d: the other way round", gone("shop", there), gone("shop", unknown), gone("shop", here))
	}
	in.Index("other", owner(here), 0).Drop(owner(here))
	if gone("other", there) != in.Epoch() {
		t.Error("of an index of which nothing is known nobody is spared")
	}
	in.DropAll()
	if gone("shop", here) != in.Epoch() || gone("shop", there) != in.Epoch() {
		t.Error("something outlives the drop of all")
	}
}
