package indexstate

import (
	"maps"

	"optimist/internal/identity"
)

// current is the state of the index: it may have got one of its own since, or none any more.
func (ix Index[W]) current() *state[W] {
	if s := (*ix.in.byName.Load())[ix.key.name]; s != nil {
		return s
	}
	return ix.in.cell(ix.key.name)
}

// Index is what is known of an index by one owner. It is safe for concurrent use. It is of use for one request.
type Index[W comparable] struct {
	*state[W]
	key owned
	now int64
}

// Gone returns an epoch: all knowledge of the index from before it is void. Call it under the lock of the data that you compare with it,
// so that no older data gets in beside newer data.
func (ix Index[W]) Gone() Epoch { return Epoch(max(ix.void(), ix.in.floor.Load())) }

// IsRenewed reports whether what was asked for in the epoch at may be an answer of the incarnation that is there now, although Gone is
// later: what ended that epoch were only renewals.
func (ix Index[W]) IsRenewed(at Epoch) bool {
	if ix.shared {
		ix.state = ix.current()
	}
	k := ix.known()[ix.key.owner]
	return k != nil && at >= Epoch(max(k.replaced.Load(), ix.in.floor.Load()))
}

func (ix Index[W]) void() uint64 {
	if ix.shared {
		ix.state = ix.current()
	}
	if k := ix.known()[ix.key.owner]; k != nil {
		return k.void.Load()
	}
	if ix.shared || ix.crowded.Load() {
		return uint64(ix.in.void.Last(ix.key)) //nolint:gosec // it counts from 0
	}
	return 0
}

// Suspicion reports whether another owner has found another index of the name since it was last settled that this doesn't concern this
// owner. mark is the epoch in which that was.
func (ix Index[W]) Suspicion() (mark Epoch, open bool) {
	d := ix.suspected.Load()
	if d == 0 || d <= uint64(ix.Gone()) {
		return 0, false
	}
	k := ix.known()[ix.key.owner]
	return Epoch(d), k == nil || d > k.settled.Load()
}

// Settle ends the suspicions up to the mark: everything is void from before an epoch, and the rest is of the index that is there now. If
// nothing is proven, from is the mark.
func (ix Index[W]) Settle(mark, from Epoch) {
	ix.in.changing.Lock()
	defer ix.in.changing.Unlock()
	if ix.state = ix.current(); ix.shared { // of which index the suspicion was isn't known
		from = mark
	}
	ix.forget(uint64(from), false)
	if k := ix.known()[ix.key.owner]; k != nil {
		raise(&k.settled, uint64(mark))
	}
}

// forget makes void what the owner knew before an epoch. renewed says that the new incarnation was there before that.
func (ix Index[W]) forget(before uint64, renewed bool) {
	if ix.shared {
		ix.in.void.Note(ix.key, int64(before)) //nolint:gosec // it counts from 0
		return
	}
	k := ix.known()[ix.key.owner]
	if k == nil {
		k = ix.enter()
	}
	if !renewed {
		raise(&k.replaced, before)
	}
	raise(&k.void, before)
}

// enter adds the owner to those of whom something is noted. If there are too many, the one leaves of whom nothing was noted for longest.
func (ix Index[W]) enter() *knowledge {
	k := &knowledge{}
	k.void.Store(ix.void())
	k.replaced.Store(ix.void())
	if ix.in.seen.Since(ix.key, 0) {
		k.seen.Store(uint64(ix.in.seen.Last(ix.key)) + 1) //nolint:gosec // it counts from 0
	}
	all := maps.Clone(ix.known())
	if all == nil {
		all = map[Owner]*knowledge{}
	}
	if len(all) >= maxOwners {
		var oldest Owner
		last := ^uint64(0)
		for o, k := range all {
			if at := max(k.void.Load(), k.settled.Load()); at < last {
				oldest, last = o, at
			}
		}
		ix.in.void.Note(owned{ix.key.name, oldest}, int64(all[oldest].void.Load())) //nolint:gosec // it counts from 0
		ix.crowded.Store(true)
		delete(all, oldest)
	}
	all[ix.key.owner] = k
	ix.owners.Store(&all)
	return k
}

// Drop begins a new incarnation of the index for its owner. For all others it is a suspicion.
func (ix Index[W]) Drop() {
	ix.in.changing.Lock()
	defer ix.in.changing.Unlock()
	ix.drop(false)
}

// drop begins a new epoch. Whoever sees the epoch sees what is void in it, so that nothing gets in between the two.
func (ix Index[W]) drop(renewed bool) Epoch {
	t := ix.in
	ix.state = ix.current()
	n := t.epoch.Load() + 1
	ix.forget(n, renewed)
	raise(&ix.suspected, n)
	t.epoch.Store(n)
	return Epoch(n)
}

// Renew is Drop, unless a new incarnation has begun since gone. It returns the epoch at which that began. It is for those who have seen an
// answer of the new incarnation: what others have asked for at that time may be of that, too.
func (ix Index[W]) Renew(gone Epoch) (at Epoch, renewed bool) {
	ix.in.changing.Lock()
	defer ix.in.changing.Unlock()
	if at = ix.Gone(); at != gone {
		return at, false
	}
	return ix.drop(true), true
}

// Seen notes that the owner has seen that the index is there. A name that is new takes its room.
func (ix Index[W]) Seen() {
	if ix.shared {
		ix.state = ix.in.Index(ix.key.name, ix.key.owner, ix.now).state
	}
	n := ix.in.epoch.Load()
	ix.in.seen.Note(ix.key, int64(n)) //nolint:gosec // it counts from 0
	if k := ix.known()[ix.key.owner]; k != nil {
		raise(&k.seen, n+1)
	}
}

// seenSince reports whether the owner has seen since an epoch that the index is there. A yes may be wrong if nothing has become void for
// the owner yet, or in an index beyond MaxIndices.
func (ix Index[W]) seenSince(at Epoch) bool {
	k := ix.known()[ix.key.owner]
	switch {
	case k != nil:
		return k.seen.Load() > uint64(at)
	case ix.shared && !ix.in.full.Load():
		return false // nobody has
	}
	return ix.in.seen.Since(ix.key, int64(at)) //nolint:gosec // it counts from 0
}

// Wrote notes a write other than a create: bodies read from the index are worth keeping.
func (ix Index[W]) Wrote() {
	if !ix.wrote.Load() {
		ix.wrote.Store(true)
	}
}

// Acknowledged notes that a write of the index is known to be acknowledged, before any read was asked for with a later ticket.
func (ix Index[W]) Acknowledged(ticket uint64) {
	ix.Seen()
	ix.in.acknowledged.note(ix.key, ticket)
}

// Missing forgets what is known of the index, after a read with that ticket hasn't found it. It reports whether it did: it doesn't where
// the owner hasn't seen the index since it was forgotten last, or a write of it was acknowledged since, which has made it.
func (ix Index[W]) Missing(ticket uint64) bool {
	if ix.shared {
		ix.state = ix.current()
	}
	gone := ix.Gone()
	if !ix.seenSince(gone) || ticket <= ix.in.acknowledged.of(ix.key) {
		return false
	}
	ix.in.changing.Lock()
	defer ix.in.changing.Unlock()
	if ix.Gone() != gone {
		return false
	}
	ix.drop(false)
	return true
}

// KeepsBodies reports whether what is read is worth its memory: an index that isn't written to needs no bases.
func (ix Index[W]) KeepsBodies(now int64) bool {
	if ix.wrote.Load() {
		return true
	}
	f := ix.first.Load()
	if f == 0 {
		ix.first.CompareAndSwap(0, now+1)
		return true
	}
	return now+1-f < ix.in.maxAge
}

// IsBlind reports whether w is a blind writer. Without any in the index it is one load.
func (ix Index[W]) IsBlind(w W, now int64) bool {
	b, _ := ix.blind.get(w, now)
	return b.is
}

// WroteBlindly notes that w has overwritten a document that it hasn't read. If that is what w mostly does, it is a blind writer until it
// hasn't done so for maxAge. It doesn't count if w has searched the index. In indices beyond MaxIndices nobody counts as blind.
func (ix Index[W]) WroteBlindly(w W, document uint64, now int64) {
	if !ix.shared && !ix.HasSearched(w, now) {
		ix.blind.note(w, now, now+ix.in.maxAge, func(b blindWriter) blindWriter { return b.wroteBlindly(document) }, nil)
	}
}

// WroteKnown notes that w has written a document that it had read or written before. Without any blind writer in the index it is one load.
func (ix Index[W]) WroteKnown(w W, now int64) { ix.blind.change(w, now, blindWriter.wroteKnown) }

// WroteBy notes that w writes in the index. That is known for writerAge, or for the age of all else that is known, if that is longer.
func (ix Index[W]) WroteBy(w W, now int64) {
	ix.writers.add(w, now, max(ix.in.maxAge, int64(writerAge)))
}

// IsWriter reports whether w writes in the index.
func (ix Index[W]) IsWriter(w W, now int64) bool { return ix.writers.has(w, now) }

// MayTurnWriter notes that w searches the index, and reports whether it may still turn out to write what it finds: it began to search less
// than maxAge ago, or again after as long a pause.
func (ix Index[W]) MayTurnWriter(w W, now int64) bool {
	if !ix.lookers.has(w, now) {
		ix.newcomers.note(w, now, now+ix.in.maxAge)
	}
	ix.lookers.add(w, now, ix.in.maxAge)
	return ix.newcomers.has(w, now)
}

// Searched notes that w has seen documents of the index of which nothing is known: to overwrite one of them isn't blind.
func (ix Index[W]) Searched(w W, now int64) { ix.searchers.add(w, now, ix.in.maxAge) }

// HasSearched reports whether w has seen documents of the index of which nothing is known, or of one with an unknown name: "".
func (ix Index[W]) HasSearched(w W, now int64) bool {
	for _, seen := range ix.places(now) {
		if seen.searchers.has(w, now) {
			return true
		}
	}
	return false
}

// Shown notes that w is shown documents of the index now, and nobody knows which ones, or in which revisions.
func (ix Index[W]) Shown(w W, now int64) { ix.shown.note(w, now, now+ix.in.maxAge) }

// WasShown is Shown for one of whom it doesn't count when that was. It is known for maxAge at least, and seldom noted anew.
func (ix Index[W]) WasShown(w W, now int64) { ix.shown.add(w, now, ix.in.maxAge+ix.in.maxAge/7+1) }

// ShownSince reports whether w was shown such documents after a moment, or at it: of the index, or of one with an unknown name: "". It is
// known for maxAge. Without anybody it is three loads.
func (ix Index[W]) ShownSince(w W, moment, now int64) bool {
	for _, seen := range ix.places(now) {
		if seen.shown.has(w, moment+ix.in.maxAge-1) {
			return true
		}
	}
	return false
}

// places are the states in which something may be noted of the index: its own, that from before it had one, and that of unknown names.
func (ix Index[W]) places(now int64) [3]*state[W] {
	return [...]*state[W]{ix.state, ix.in.cell(ix.key.name), ix.in.Index("", Owner{}, now).state}
}

// Traced notes a write of the owner, which comes from a network, and of which content shows whether its trace tells its base.
func (ix Index[W]) Traced(from identity.Network, tells bool) {
	ix.traces.add(from, ix.key.owner, tells)
}

// TracesTell reports whether the trace of the owner's write tells its base, as far as is known.
func (ix Index[W]) TracesTell() bool { return ix.traces.tell(ix.key.owner) }
