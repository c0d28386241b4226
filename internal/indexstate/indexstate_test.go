package indexstate

import (
	"fmt"
	"testing"
	"time"
)

// overwrites has a session overwrite so many documents blindly.
func overwrites(ix Index[int], w, documents int, now int64) {
	for i := range documents {
		ix.WroteBlindly(w, uint64(i), now)
	}
}

// Whoever overwrites many documents blindly is a blind writer, until it has done it seldom for a while, or not at all for long.
func TestABlindWriterMostlyWritesBlindly(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
	is := func(want bool, now int64) {
		t.Helper()
		if ix.IsBlind(1, now) != want {
			t.Errorf("blind: %v", !want)
		}
	}
	overwrites(ix, 1, enoughBlind-1, 1)
	overwrites(ix, 1, enoughBlind-1, 1)
	is(false, 2) // it was always the same
	ix.WroteBlindly(1, enoughBlind, 2)
	ix.WroteKnown(2, 2) // somebody else
	for range enoughBlind {
		is(true, 2)
		ix.WroteKnown(1, 2)
	}
	is(false, 2)
	overwrites(ix, 1, 2*enoughBlind, 3)
	is(true, 1002)
	is(false, 1003)
	overwrites(ix, 1, 1, 1003)
	is(false, 1003) // what it did before is forgotten
}

func TestBlindWritersAreBounded(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
	for w := range 2 * maxRecent {
		overwrites(ix, w, enoughBlind, 1)
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
	at, renewed := ix.Renew(gone)
	if !renewed || at <= before || ix.Gone() != at || in.Index("other", Owner{}, 0).Gone() != 0 {
		t.Fatalf("%d %v after %d", at, renewed, before)
	}
	if again, renewed := ix.Renew(gone); renewed || again != at {
		t.Errorf("%d %v: the second who found out ended the life that the first had begun", again, renewed)
	}
	in.DropAll()
	if ix.Gone() != in.Epoch() || in.Index("other", Owner{}, 0).Gone() != in.Epoch() {
		t.Error("something outlives the drop of all")
	}
}

func TestAnIndexIsMissingOnceAndOnlyIfItWasThere(t *testing.T) {
	in := apart(few, Owner{}, Owner{1})
	ix := in.Index("shop", Owner{}, 0)
	if ix.Missing(1) {
		t.Error("nothing was known of it")
	}
	ix.Seen()
	ix.Acknowledged(7)
	if ix.Missing(7) {
		t.Error("a write since has made it")
	}
	if !ix.Missing(8) || ix.Missing(9) {
		t.Error("its life has one end")
	}
	if in.Index("shop", Owner{1}, 0).Missing(10) {
		t.Error("somebody who has never seen it ends another life of it")
	}
	if ix.Seen(); !ix.Missing(11) {
		t.Error("a second life has no end")
	}
}

// Clients can be made up in any number. They must not make others forgotten: searches of a writer would not be watched any more, and the
// reads of one who has searched would count for nothing.
func TestMadeUpClientsHaveNobodyForgotten(t *testing.T) {
	in := New[int](1000)
	ix := in.Index("shop", Owner{}, 0)
	const honest = 1
	ix.WroteBy(honest, 1)
	ix.Searched(honest, 1)
	for w := range 20 * maxRecent {
		ix.WroteBy(w+2, 2)
		ix.Searched(w+2, 2)
	}
	if !ix.IsWriter(honest, 3) {
		t.Error("the writer is forgotten")
	}
	if overwrites(ix, honest, enoughBlind, 3); ix.IsBlind(honest, 4) {
		t.Error("one who has searched is blind")
	}
	if ix.IsWriter(honest, 2+int64(writerAge)) {
		t.Error("a writer is one for longer than it is known to be")
	}
}

func TestWhoHasSearchedWritesNothingBlindly(t *testing.T) {
	in := New[int](1000)
	in.Find("shop", Owner{}, 0).Searched(1, 1) // before anything was known of the index
	ix := in.Index("shop", Owner{}, 0)
	overwrites(ix, 1, enoughBlind, 2)
	overwrites(ix, 2, enoughBlind, 2)
	if ix.IsBlind(1, 3) || !ix.IsBlind(2, 3) {
		t.Error("who has searched is blind, or who hasn't is not")
	}
	if overwrites(ix, 1, enoughBlind, 1001); !ix.IsBlind(1, 1002) {
		t.Error("what was seen too long ago counts")
	}
}

func TestAWriterIsOneForADayAndForTheAgeOfWhatIsKnown(t *testing.T) {
	for _, maxAge := range []time.Duration{1000, 100 * time.Hour} {
		ix := New[int](maxAge).Index("shop", Owner{}, 0)
		age := int64(max(maxAge, writerAge))
		ix.WroteBy(1, 1)
		last := int64(0)
		for _, now := range []int64{age / 2, age - 1, age + age*2/5} { // it goes on
			if ix.WroteBy(1, now); !ix.IsWriter(1, now+1) || ix.IsWriter(2, now+1) {
				t.Error(now)
			}
			last = now
		}
		if !ix.IsWriter(1, last+age-1) || ix.IsWriter(1, last+age) {
			t.Error("it is one for another time")
		}
	}
}

// Owners may be of several clusters: what one of them finds is a suspicion for the others.
func TestADropIsASuspicionForOtherOwners(t *testing.T) {
	here, there := Owner{1}, Owner{2}
	for name, states := range map[string]func() *Indices[int]{"an index": few, "one of too many": crowded} {
		in := apart(states, here, there, Owner{3})
		of := func(o Owner) Index[int] { return in.Index("shop", o, 0) }
		of(there).WroteBy(2, 0)
		of(here).Drop()
		first := in.Epoch()
		if of(here).Gone() != first || of(there).Gone() != 0 {
			t.Errorf("%s: %d %d: who has found another index lost nothing, or the other one did", name, of(here).Gone(), of(there).Gone())
		}
		if _, open := of(here).Suspicion(); open {
			t.Errorf("%s: it is a suspicion for who has found it", name)
		}
		mark, open := of(there).Suspicion()
		if !open || mark != first {
			t.Fatalf("%s: suspicion %v since %d, want %d", name, open, mark, first)
		}
		if !of(there).IsWriter(2, 1) {
			t.Errorf("%s: it isn't known any more who writes", name)
		}
		of(there).Settle(mark, 0)
		if _, open = of(there).Suspicion(); open || (of(there).Gone() != 0) != of(there).shared {
			t.Errorf("%s: settled, and it is open %v, void before %d", name, open, of(there).Gone())
		}
		of(here).Drop()
		mark, _ = of(there).Suspicion()
		of(there).Settle(mark, mark)
		if _, open = of(there).Suspicion(); open || of(there).Gone() != mark || of(Owner{3}).Gone() != 0 {
			t.Errorf("%s: nothing is proven, and something counts", name)
		}
		in.DropAll()
		if of(here).Gone() != in.Epoch() || of(there).Gone() != in.Epoch() {
			t.Errorf("%s: something outlives the drop of all", name)
		}
	}
}

// apart makes states in which none of the owners shares a cell with another as to the index shop: which cells they have is chance.
func apart(states func() *Indices[int], owners ...Owner) *Indices[int] {
	for {
		in, cells := states(), map[any]bool{}
		in.void.Note(owned{}, 0)
		in.seen.Note(owned{}, 0)
		keys := []owned{{}}
		for _, o := range owners {
			keys = append(keys, owned{"shop", o})
		}
		for _, k := range keys {
			cells[of(in.void.last.made.Load(), k)], cells[of(in.seen.last.made.Load(), k)] = true, true
		}
		if len(cells) == 2*len(keys) {
			return in
		}
	}
}

// few are states of no index.
func few() *Indices[int] { return New[int](1000) }

// crowded are states of as many indices as are told apart.
func crowded() *Indices[int] {
	in := New[int](1000)
	for i := range MaxIndices {
		in.Index(fmt.Sprint(i), Owner{}, 0)
	}
	return in
}

func TestASuspicionIsSettledOnlyUpToItsMark(t *testing.T) {
	in := New[int](1000)
	ix := in.Index("shop", Owner{1}, 0)
	in.Index("shop", Owner{2}, 0).Drop()
	mark, _ := ix.Suspicion()
	in.Index("shop", Owner{2}, 0).Drop()
	ix.Settle(mark, 0)
	if again, open := ix.Suspicion(); !open || again != in.Epoch() {
		t.Errorf("open %v since %d: the second find came after the question", open, again)
	}
}

// Many owners must not be able to bring back what is void for one.
func TestWhatIsVoidOutlivesItsOwnersPlace(t *testing.T) {
	in := New[int](1000)
	owner := func(n int) Owner { return Owner{byte(n), byte(n >> 8), 1} }
	of := func(n int) Index[int] { return in.Index("shop", owner(n), 0) }
	of(0).Drop()
	gone := of(0).Gone()
	for n := range 2 * maxOwners {
		of(n + 1).Drop()
	}
	if n := len(of(0).known()); n != maxOwners {
		t.Errorf("%d owners", n)
	}
	if of(0).Gone() < gone {
		t.Error("it counts again")
	}
	if mark, open := of(0).Suspicion(); !open {
		t.Errorf("a suspicion is settled by others, since %d", mark)
	}
}

// Everybody can ask for names that no index has.
func TestNamesThatNoIndexHasTakeNoRoom(t *testing.T) {
	in := New[int](1000)
	for i := range 2 * MaxIndices {
		ix := in.Find(fmt.Sprint(i), Owner{}, 0)
		if ix.Missing(uint64(i + 1)) {
			t.Fatal("it was there")
		}
		if i < 10 {
			ix.Drop()
		}
	}
	if in.Len() != 0 || in.Index("5", Owner{}, 0).Gone() == 0 || in.Index("late", Owner{}, 0).shared {
		t.Errorf("%d indices, or what was dropped before it was known isn't void", in.Len())
	}
}

func TestWhatIsVoidOutlivesAnIndexThatNobodyUses(t *testing.T) {
	in := crowded()
	in.Index("5", Owner{1}, 0).Drop()
	held := in.Find("shop", Owner{1}, 0) // of a request that takes long
	in.Index("new", Owner{}, 5000)
	if in.Len() != 1 {
		t.Fatal(in.Len())
	}
	ix := in.Index("5", Owner{1}, 5000)
	if _, open := in.Index("5", Owner{2}, 5000).Suspicion(); ix.Gone() == 0 || !open {
		t.Error("it counts again")
	}
	in.Index("shop", Owner{1}, 5000).Drop()
	if held.Gone() != in.Epoch() {
		t.Error("who has looked before the index had a place of its own doesn't see what is void")
	}
}

// Beyond the indices that are told apart, what happens to one of them stays with few others.
func TestOneOfTooManyIndicesVoidsNoOther(t *testing.T) {
	in, late := crowded(), owned{"late", Owner{1}}
	in.Index("late", late.owner, 0).Seen()
	in.void.Note(owned{}, 0)
	for i := range 100 {
		name := fmt.Sprint("new-", i)
		cells := in.void.last.made.Load()
		if in.cell(name) != in.cell("late") && of(cells, owned{name, late.owner}) != of(cells, late) {
			in.Index(name, late.owner, 0).Drop()
		}
	}
	if _, open := in.Index("late", late.owner, 0).Suspicion(); open || in.Index("late", late.owner, 0).Gone() != 0 {
		t.Error("others' ends are its own")
	}
}

// busy are states in which so many owners have seen an index that no cell of what was seen is free.
func busy() (in *Indices[int], work func()) {
	in = New[int](1000)
	work = func() {
		for n := range 40 * tableCells {
			in.seen.Note(owned{"shop", Owner{byte(n), byte(n >> 8), byte(n >> 16), 1}}, int64(in.Epoch()))
		}
	}
	work()
	return in, work
}

// Clients ask again and again for an index that there never was, or that isn't there any more, while others work in theirs.
func TestAnIndexThatIsNotThereIsMissedOnceWhoeverIsBusyElsewhere(t *testing.T) {
	in, work := busy()
	epoch := in.Epoch()
	for ticket := range uint64(5) {
		if in.Find("none", Owner{}, 0).Missing(ticket+1) || in.Epoch() != epoch {
			t.Fatal("there never was one")
		}
	}
	in.Index("old", Owner{}, 0).Seen()
	missed := 0
	for ticket := range uint64(5) {
		work()
		if in.Find("old", Owner{}, 0).Missing(ticket + 1) {
			missed++
		}
	}
	if missed != 1 {
		t.Errorf("it has ended %d times", missed)
	}
	if in.Index("old", Owner{}, 0).Seen(); !in.Find("old", Owner{}, 0).Missing(9) {
		t.Error("a second life has no end")
	}
	in.Index("new", Owner{}, 0).Settle(in.Epoch(), 0) // somebody has asked what it is
	if in.Index("new", Owner{}, 0).Seen(); !in.Find("new", Owner{}, 0).Missing(9) {
		t.Error("the life of one that was settled has no end")
	}
}

// An acknowledged write shows that the index is there, also if nobody has read in it.
func TestAnIndexThatWasOnlyWrittenCanBeMissing(t *testing.T) {
	in := New[int](1000)
	in.Find("shop", Owner{}, 0).Acknowledged(7)
	if in.Find("shop", Owner{}, 0).Missing(7) || !in.Find("shop", Owner{}, 0).Missing(8) {
		t.Error("it is there up to the ticket, and not after it")
	}
}

// Owners may be of several clusters. In one of them the index was written just now, in the other it is gone.
func TestAWriteOfOneOwnerMakesNoIndexOfAnother(t *testing.T) {
	in := New[int](1000)
	for n := range 100 {
		in.Index("shop", Owner{byte(n)}, 0).Seen()
	}
	in.Index("shop", Owner{200}, 0).Acknowledged(7)
	for n := range 100 {
		if !in.Index("shop", Owner{byte(n)}, 0).Missing(7) {
			t.Fatalf("owner %d keeps what it knew of an index that is gone", n)
		}
	}
	if in.Index("shop", Owner{200}, 0).Missing(7) {
		t.Error("its write has made it")
	}
}

// Of two owners who meet in a cell, the ticket of one is never that of the other.
func TestTicketsThatMeetAreForgottenAndNotMixedUp(t *testing.T) {
	var all tickets
	if all.of(owned{"shop", Owner{}}) != 0 {
		t.Error("nothing was noted")
	}
	const owners = 4 * tableCells
	owner := func(n int) owned { return owned{"shop", Owner{byte(n), byte(n >> 8)}} }
	for n := range owners {
		all.note(owner(n), uint64(n+1))
		all.note(owner(n), 1) // is older
		if got := all.of(owner(n)); got != uint64(n+1) {
			t.Fatalf("%d, noted %d", got, n+1)
		}
	}
	known, mixed := 0, 0
	for n := range owners {
		switch got := all.of(owner(n)); got {
		case 0:
		case uint64(n + 1):
			known++
		default:
			mixed++ // by chance: their tags are equal
		}
	}
	if known < tableCells*9/10 || known > tableCells || mixed > 3 {
		t.Errorf("%d are known, and %d have another's", known, mixed)
	}
}

// Who was shown what nobody knows is never forgotten, whatever others are shown: a yes may be wrong, a no never.
func TestWhoWasShownTheUnknownIsNotForgotten(t *testing.T) {
	in := New[int](1000)
	in.Find("later", Owner{}, 0).Shown(1, 5) // before anything is known of the index
	ix := in.Index("later", Owner{}, 6)
	in.Index("", Owner{}, 6).Shown(2, 7) // in whichever index
	for _, c := range []struct {
		w      int
		moment int64
		want   bool
	}{{1, 5, true}, {1, 6, false}, {2, 7, true}, {2, 8, false}, {3, 0, false}} {
		if got := ix.ShownSince(c.w, c.moment, 10); got != c.want {
			t.Errorf("%d since %d: %v", c.w, c.moment, got)
		}
	}
	for w := range 2 * maxRecent {
		ix.Shown(w+10, 20)
	}
	if !ix.ShownSince(10, 20, 30) || ix.ShownSince(2*maxRecent+9, 21, 30) {
		t.Error("the first one is forgotten, or the last one was shown something later")
	}
}
