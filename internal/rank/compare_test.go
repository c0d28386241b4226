package rank

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomDocument has few values, so that content comes and goes, and entries have the same name or are there several times.
func randomDocument(random *rand.Rand) []byte {
	var s strings.Builder
	fmt.Fprintf(&s, `{"text":"a long text in which word %d stands before word %d","entries":[`, random.IntN(3), random.IntN(3))
	for i := range random.IntN(4) {
		s.WriteString(`,`[:min(i, 1)])
		fmt.Fprintf(&s, `{"id":%d,"n":%d}`, random.IntN(3), random.IntN(3))
	}
	s.WriteString(`],"list":[0`)
	for range random.IntN(4) {
		fmt.Fprintf(&s, `,%d`, random.IntN(3))
	}
	s.WriteString(`]`)
	for i := range 5 {
		if random.IntN(2) == 0 {
			fmt.Fprintf(&s, `,"m%d":%d`, i, random.IntN(3))
		}
	}
	s.WriteString(`}`)
	return []byte(s.String())
}

// have reports the oldest of some digests, of which the last is the oldest, that has mine's i-th item.
func have(mine *digester, i int, digests []*Digest) oldest {
	o := oldest{none, none}
	for k, d := range digests {
		for _, b := range d.blocks {
			items := b.places
			if i >= len(mine.members) {
				items = b.hashes
			}
			for _, it := range items {
				if it.key == mine.items[i].key {
					o.key = int32(len(digests) - 1 - k)
					if it.value == mine.items[i].value || i >= len(mine.members) && it.value > mine.items[i].value {
						o.value = o.key
					}
				}
			}
		}
	}
	return o
}

// What is known of a candidate after all the newer ones were compared is the same as if it were compared with mine alone.
func TestCandidatesAreComparedWithMineByWayOfEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	changesOf := func(w *weighing) []uint64 {
		w.changes = w.changes[:0]
		w.gather()
		var all []uint64
		for i := range w.changes {
			all = append(all, step(w.changes[i].hash, uint64(w.changes[i].effect)))
		}
		slices.Sort(all)
		return all
	}
	for range 500 {
		mine := digesterOf(randomDocument(random))
		part := random.IntN(2) == 0
		var w, alone weighing
		w.begin(0, mine, part)
		var digests []*Digest
		for k := range 8 {
			digests = append(digests, digestOf(randomDocument(random)))
			w.candidate = int32(7 - k)
			w.follow(digests[k])
			alone.begin(0, mine, part)
			alone.follow(digests[k])
			if got, want := changesOf(&w), changesOf(&alone); !slices.Equal(got, want) || w.differing.n != len(got) {
				t.Fatalf("candidate %d has the changes %x, count %d, want %x", k, got, w.differing.n, want)
			}
		}
		w.endCompare()
		for i := range mine.items {
			want, got := have(mine, i, digests), w.contents[i].oldest
			if i >= len(mine.members) {
				got.key = want.key // not in use
			}
			if got != want {
				t.Fatalf("the oldest candidate with item %d is %+v, want %+v", i, got, want)
			}
		}
	}
}

// What a part lacks its client has left alone, however much of it changes from one candidate to the next.
func TestAPartTakesNoRoomForWhatItLacks(t *testing.T) {
	var w weighing
	w.begin(0, digesterOf([]byte(`{"n":1}`)), true)
	for k := range 8 {
		w.follow(digestOf(fmt.Appendf(nil, `{"n":%d,"more":{"k%d":1},"list":["e%d"]}`, k, k, k)))
	}
	if len(w.contents) != 1 {
		t.Errorf("%d contents, want one", len(w.contents))
	}
}
