package rank

import (
	"iter"
	"math/bits"
	"slices"
	"unsafe"
)

// One revision of a document has nearly all of its content in common with the next one. So a digest is cut into blocks by the first bits of
// the keys, and digests of two revisions share the blocks that are equal. The digests of many revisions take little more memory than one.
// And to find how two of them differ, only the blocks that they don't share are compared.

// block is the content of which the keys have the same first bits. It is immutable, apart from the number of its keepers.
type block struct {
	places  []item   // of the members, by place
	members []member // what the members have besides their items, in the same order
	numbers []number // of the members that are numbers, in the same order
	hashes  []item   // of the parts, by hash
	parts   []part   // what the parts have besides their items, in the same order
	keepers int32    // see Digest.Keep
}

// piece is some of the elements of a list. Clients mostly append to lists, so revisions share nearly all pieces, too.
type piece struct {
	elements []element // perPiece of them; the last piece has the rest
	keepers  int32     // see Digest.Keep
}

const (
	// perBlock is how many items blocks have on average, at most. With fewer, digests share more, and have more blocks.
	perBlock = 16
	// perPiece is how many elements a piece has, but for the last one of a list.
	perPiece = 64
)

// cut cuts what was read into blocks, mostly as many as one of near has. Blocks that one of near has, too, are its own. Digests of near may
// be nil.
func (d *digester) cut(near ...*Digest) {
	near = slices.DeleteFunc(near, func(o *Digest) bool { return o == nil })
	first := bits.Len(uint(len(d.items) / perBlock))
	if len(near) > 0 {
		if other := bits.TrailingZeros(uint(len(near[0].blocks))); first-other == 1 || other-first == 1 {
			first = other // a document whose size goes up and down keeps its number of blocks, and goes on sharing them
		}
	}
	d.shift, d.size = 64-uint(first), len(d.items)
	d.cutLists(near)
	d.cuts, d.blocks = slices.Grow(d.cuts[:0], 1<<first)[:1<<first], slices.Grow(d.blocks[:0], 1<<first)[:1<<first]
	places, hashes, numbers := d.items[:len(d.members)], d.items[len(d.members):], d.numbers
	members, parts := d.members, d.parts
	for i := range d.cuts {
		p, h, n := d.before(i+1, places), d.before(i+1, hashes), 0
		for k := range members[:p] {
			if m := &members[k]; m.number != 0 {
				n++
				m.number = int32(n)
			}
		}
		b := &d.cuts[i]
		*b = block{places: places[:p], members: members[:p], numbers: numbers[:n], hashes: hashes[:h], parts: parts[:h]}
		places, members, numbers, hashes, parts = places[p:], members[p:], numbers[n:], hashes[h:], parts[h:]
		d.blocks[i] = b
		for _, o := range near {
			if o.shift == d.shift && o.blocks[i].equals(b) {
				d.blocks[i] = o.blocks[i]
				break
			}
		}
	}
}

// cutLists cuts the lists into pieces. Those that one of near has, too, are its own.
func (d *digester) cutLists(near []*Digest) {
	n := 0
	for _, l := range d.foundLists {
		n += (l.to - l.from + perPiece - 1) / perPiece
	}
	d.pieces, d.held, d.lists = slices.Grow(d.pieces[:0], n)[:n], slices.Grow(d.held[:0], n)[:n], d.lists[:0]
	pieces, held := d.pieces, d.held
	for i, found := range d.foundLists {
		l := list{place: found.place, n: found.to - found.from}
		k := 0
		for elements := range slices.Chunk(d.elements[found.from:found.to], perPiece) {
			pieces[k] = piece{elements: elements}
			held[k] = &pieces[k]
			k++
		}
		l.pieces = held[:k:k]
		for _, o := range near {
			if their := o.list(i, l.place); their != nil {
				l.share(their)
			}
		}
		pieces, held, d.lists = pieces[k:], held[k:], append(d.lists, l)
	}
}

// share has l take the pieces of o that are equal to its own.
func (l *list) share(o *list) {
	for k, p := range o.pieces[:min(len(l.pieces), len(o.pieces))] {
		if slices.Equal(l.pieces[k].elements, p.elements) {
			l.pieces[k] = p
		}
	}
}

// before returns how many items come before the i-th block.
func (d *Digest) before(i int, items []item) (n int) {
	for n < len(items) && items[n].key>>d.shift < uint64(i) { //nolint:gosec // not negative
		n++
	}
	return n
}

func (b *block) equals(o *block) bool {
	return slices.Equal(b.places, o.places) && slices.Equal(b.hashes, o.hashes) &&
		slices.Equal(b.members, o.members) && slices.Equal(b.numbers, o.numbers) && slices.Equal(b.parts, o.parts)
}

// copy returns a digest of what was cut, which lives on when the digester reads the next document.
func (d *digester) copy() *Digest {
	c := &Digest{
		id: newestID.Add(1), naming: d.naming, blocks: slices.Clone(d.blocks), shift: d.shift, size: d.size, lists: slices.Clone(d.lists),
	}
	for i := range d.cuts {
		if b := &d.cuts[i]; c.blocks[i] == b {
			c.blocks[i] = &block{
				places: slices.Clone(b.places), members: slices.Clone(b.members), numbers: slices.Clone(b.numbers),
				hashes: slices.Clone(b.hashes), parts: slices.Clone(b.parts),
			}
		}
	}
	held := slices.Clone(d.held)
	for i := range d.pieces {
		if p := &d.pieces[i]; held[i] == p {
			held[i] = &piece{elements: slices.Clone(p.elements)}
		}
	}
	for i := range c.lists {
		n := len(c.lists[i].pieces)
		c.lists[i].pieces, held = held[:n:n], held[n:]
	}
	return c
}

// found is content of a digest: the i-th member of a block or, if the block has fewer, the part of which the index is i less their number.
type found struct {
	in *block // nil: the digest lacks the content
	i  int32
}

func (f found) exists() bool { return f.in != nil }

// member returns the member, and its item; nil: f is a part.
func (f found) member() (*member, item) {
	if int(f.i) < len(f.in.members) {
		return &f.in.members[f.i], f.in.places[f.i]
	}
	return nil, item{}
}

// part returns the part, and its item. f must be one.
func (f found) part() (*part, item) {
	i := int(f.i) - len(f.in.members)
	return &f.in.parts[i], f.in.hashes[i]
}

// find finds the member at a place.
func (d *Digest) find(place uint64) found {
	b := d.blocks[place>>d.shift]
	from, to := 0, len(b.places)
	for from < to {
		if middle := (from + to) / 2; b.places[middle].key < place {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == len(b.places) || b.places[from].key != place {
		return found{}
	}
	return found{b, int32(from)}
}

// findLike finds what d has for the i-th member of another document. If several entries of a list have one name, that is the entry with as
// many of them before it, or else the first.
func (d *Digest) findLike(o *digester, i int) found {
	key, before := o.items[i].key, o.members[i].before
	if at := d.find(key); before == 0 {
		return at
	} else if at.exists() && at.in.members[at.i].before == before {
		return at
	}
	return d.find(o.place(i))
}

// numberLike returns the number that d has for the i-th member of another document; nil: there is none. d may be nil.
func (d *Digest) numberLike(o *digester, i int) *number {
	if d == nil {
		return nil
	}
	at := d.findLike(o, i)
	if !at.exists() {
		return nil
	}
	m, _ := at.member()
	if m.number == 0 {
		return nil
	}
	return &at.in.numbers[m.number-1]
}

// unshared is how many items of d aren't in blocks that o has, too. o may be nil.
func (d *Digest) unshared(o *Digest) (n int) {
	if o == nil || len(o.blocks) != len(d.blocks) {
		return d.size
	}
	for i, b := range d.blocks {
		if b != o.blocks[i] {
			n += len(b.places) + len(b.hashes)
		}
	}
	return n
}

// run is some items of a block, one after the other.
type run struct {
	items []item
	from  found // the first of them
}

// unequal yields the content of two digests of which the keys have the same first bits, unless both share it: the members, and the parts.
func (d *Digest) unequal(o *Digest) iter.Seq2[*[2]run, *[2]run] {
	return func(yield func(a, b *[2]run) bool) {
		finer := d
		if len(o.blocks) > len(d.blocks) {
			finer = o
		}
		for i := range finer.blocks {
			if len(o.blocks) == len(d.blocks) && d.blocks[i] == o.blocks[i] {
				continue
			}
			a, b := d.runs(i, finer), o.runs(i, finer)
			if !yield(&a, &b) {
				return
			}
		}
	}
}

// runs are d's content that would be in the i-th block if d had as many blocks as finer.
func (d *Digest) runs(i int, finer *Digest) [2]run {
	b := d.blocks[i>>(d.shift-finer.shift)]
	from, to, begin, end := 0, len(b.places), 0, len(b.hashes)
	if d.shift != finer.shift {
		from, to = finer.before(i, b.places), finer.before(i+1, b.places)
		begin, end = finer.before(i, b.hashes), finer.before(i+1, b.hashes)
	}
	return [2]run{
		{b.places[from:to], found{b, int32(from)}},
		{b.hashes[begin:end], found{b, int32(len(b.places) + begin)}}, //nolint:gosec // bounded by maxValues
	}
}

// Keep counts one more keeper of the digest, and of each block. It returns how many bytes now have a keeper that had none before. Digests
// that may share blocks must not be kept or dropped at the same time.
func (d *Digest) Keep() (bytes int64) { return d.count(1) }

// Drop counts one keeper less. It returns how many bytes have none any more.
func (d *Digest) Drop() (bytes int64) { return d.count(-1) }

func (d *Digest) count(change int32) (bytes int64) {
	for keepers, size := range d.shared {
		before := *keepers
		if *keepers += change; before == 0 || *keepers == 0 {
			bytes += size
		}
	}
	return bytes + d.bytes()
}

// shared yields the number of keepers and the size of each block and piece: of what other digests may have, too.
func (d *Digest) shared(yield func(keepers *int32, bytes int64) bool) {
	for _, b := range d.blocks {
		if !yield(&b.keepers, b.bytes()) {
			return
		}
	}
	for i := range d.lists {
		for _, p := range d.lists[i].pieces {
			if !yield(&p.keepers, p.bytes()) {
				return
			}
		}
	}
}

// Size is how many bytes digests take together.
func Size(ds ...*Digest) (bytes int64) {
	seen := map[*int32]bool{}
	for _, d := range ds {
		for keepers, size := range d.shared {
			if !seen[keepers] {
				seen[keepers] = true
				bytes += size
			}
		}
		bytes += d.bytes()
	}
	return bytes
}

// bytes is how much memory d takes, with what it keeps of its last comparison, without its blocks and pieces.
func (d *Digest) bytes() int64 {
	const itself = unsafe.Sizeof(Digest{}) + unsafe.Sizeof(delta{}) + mostKept*unsafe.Sizeof(difference{})
	n := len(d.blocks)
	for i := range d.lists {
		n += len(d.lists[i].pieces)
	}
	return int64(itself) + int64(unsafe.Sizeof(list{}))*int64(len(d.lists)) + 8*int64(n)
}

func (p *piece) bytes() int64 { return 8*int64(cap(p.elements)) + int64(unsafe.Sizeof(*p)) }

func (b *block) bytes() int64 {
	return int64(16*(cap(b.places)+cap(b.hashes)+cap(b.parts)) + 32*cap(b.members) + 24*cap(b.numbers) + int(unsafe.Sizeof(*b)))
}
