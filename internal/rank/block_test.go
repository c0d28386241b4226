package rank

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomOrders are revisions of a document. Each has a few entries more, or fewer, than the one before, and some of its numbers move.
func randomOrders(random *rand.Rand, revisions, entries int) (sources []string) {
	lines := make([]int, entries)
	for range revisions {
		n := random.IntN(2 * entries)
		if random.IntN(4) > 0 {
			n = max(0, len(lines)+random.IntN(5)-2)
		}
		for len(lines) < n {
			lines = append(lines, random.IntN(1000))
		}
		if lines = lines[:n]; n > 0 {
			lines[random.IntN(n)]++
		}
		var s strings.Builder
		fmt.Fprintf(&s, `{"count":%d,"note":"word %d and word %d of this long text","lines":[`, n, random.IntN(3), random.IntN(3))
		for i, l := range lines {
			fmt.Fprintf(&s, `%s{"id":"l%d","qty":%d}`, ","[:min(i, 1)], i, l)
		}
		s.WriteString(`],"tags":[0`)
		for i, l := range lines {
			if i%3 == 0 {
				fmt.Fprintf(&s, `,"t%d"`, l%50)
			}
		}
		sources = append(sources, s.String()+`]}`)
	}
	return sources
}

// itemsOf are all items of a digest, by key.
func itemsOf(d *Digest) (members, parts map[uint64]uint64) {
	members, parts = map[uint64]uint64{}, map[uint64]uint64{}
	for _, b := range d.blocks {
		for _, it := range b.places {
			members[it.key] = it.value
		}
		for _, it := range b.hashes {
			parts[it.key] = it.value
		}
	}
	return members, parts
}

func distanceOf(a, b map[uint64]uint64) (n int) {
	for key, value := range a {
		if other, both := b[key]; !both {
			n++
		} else if other != value {
			n += 2
		}
	}
	for key := range b {
		if _, both := a[key]; !both {
			n++
		}
	}
	return n
}

// What digests share changes nothing in what they say.
func TestDigestsThatShareBlocksAreTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	shared, counts := 0, map[int]bool{}
	for range 60 {
		sources := randomOrders(random, 12, 1<<random.IntN(10))
		var alone, sharing []Candidate
		var last *Digest
		for i, s := range sources[:11] {
			alone, sharing = append(alone, heldAt(int64(i+1), s)), append(sharing, heldAt(int64(i+1), s))
			alone[i].Digest = digestOf([]byte(s))
			d := newDigest([]byte(s), naming{}, last)
			sharing[i].Digest = d
			members, parts := itemsOf(d)
			wantMembers, wantParts := itemsOf(alone[i].Digest)
			if distanceOf(members, wantMembers)+distanceOf(parts, wantParts) != 0 || d.size != len(members)+len(parts) {
				t.Fatalf("the digest of revision %d has other items", i)
			}
			for k := range d.lists {
				if got, want := &d.lists[k], &alone[i].Digest.lists[k]; got.place != want.place || got.n != want.n || !got.has(0, want, 0, want.n) {
					t.Fatalf("the digest of revision %d has another list", i)
				}
			}
			if last != nil {
				lastMembers, lastParts := itemsOf(last)
				if got, want := d.distance(last), distanceOf(members, lastMembers)+distanceOf(parts, lastParts); got != want {
					t.Fatalf("revision %d: distance %d, want %d", i, got, want)
				}
				for k, b := range d.blocks {
					if len(d.blocks) == len(last.blocks) && b == last.blocks[k] {
						shared++
					}
				}
			}
			counts[len(d.blocks)] = true
			last = d
		}
		sent := Sent{Body: []byte(sources[11])}
		if got, want := Likeliest(sharing, sent), Likeliest(alone, sent); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
	if shared < 100 || len(counts) < 6 {
		t.Errorf("%d blocks are shared, of digests with so many blocks: %v", shared, counts)
	}
}

// What a choice looks at first doesn't depend on how documents are cut.
func TestDifferencesComeInOneOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		sources := randomOrders(random, 2, 200)
		old, mine := digestOf([]byte(sources[0])), digesterOf([]byte(sources[1]))
		var w weighing
		w.begin(0, mine, false)
		places, _ := itemsOf(&mine.Digest)
		oldPlaces, _ := itemsOf(old)
		parts, last := false, uint64(0)
		for _, d := range w.differences(old) {
			_, isMember := places[d.key]
			_, wasMember := oldPlaces[d.key]
			if isPart := !isMember && !wasMember; isPart != parts {
				parts, last = true, 0
				if !isPart {
					t.Fatal("a member comes after a part")
				}
			}
			if d.key < last {
				t.Fatal("a larger key comes first")
			}
			last = d.key
		}
	}
}

// The digests of many revisions of a large document take little more memory than the digest of one.
func TestDigestsOfRevisionsTakeLittleMore(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	lines := make([]string, 0, 2100)
	document := func() []byte {
		lines = append(lines, fmt.Sprintf(`{"id":"l%d","article":"a%d","qty":%d}`, len(lines), random.IntN(100), random.IntN(10)))
		return fmt.Appendf(nil, `{"total":%d,"lines":[%s]}`, len(lines), strings.Join(lines, ","))
	}
	for len(lines) < 2000 {
		document()
	}
	digests := []*Digest{digestOf(document())}
	for range 63 {
		digests = append(digests, newDigest(document(), naming{}, digests[len(digests)-1]))
	}
	if one, all := Size(digests[0]), Size(digests...); all > 3*one {
		t.Errorf("64 digests take %d bytes, one takes %d", all, one)
	}
}

// Whatever the order in which digests are kept and dropped, what Keep and Drop return adds up to what the kept ones take together.
func TestKeepersAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		var kept, free []*Digest
		var last *Digest
		for _, s := range randomOrders(random, 20, 100) {
			last = newDigest([]byte(s), naming{}, last)
			free = append(free, last)
		}
		bytes := int64(0)
		for range 200 {
			if i := random.IntN(20); i < len(free) {
				bytes += free[i].Keep()
				kept, free = append(kept, free[i]), append(free[:i:i], free[i+1:]...)
			} else if i -= len(free); i < len(kept) {
				bytes -= kept[i].Drop()
				free, kept = append(free, kept[i]), append(kept[:i:i], kept[i+1:]...)
			}
			if want := Size(kept...); bytes != want {
				t.Fatalf("%d bytes are kept, want %d", bytes, want)
			}
		}
	}
}
