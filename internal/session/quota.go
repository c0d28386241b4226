package session

import "container/heap"

// holder is a client as far as memory is concerned: what one shard keeps for it counts against it. When the shard is full, the client
// that holds most gives up its oldest entry. As all clients together hold at least the bound then, it holds at least its fair share: the
// bound, divided by the number of clients. A client below that loses nothing to the others.
//
// Bytes that several clients share count in full against each of them: a client that shares them is no lighter when the others leave.
type holder struct {
	sess           Session
	bytes          int64 // of its entries, and of the digests that were made for it
	place          int   // among the shard's holders
	newest, oldest *entry
}

// holderCost is what a holder costs: the struct, its slots in the map and in the heap.
const holderCost = 320

// holders are all of a shard: a heap, with the largest first.
type holders struct {
	of   map[Session]*holder
	heap bySize
}

// get returns who holds what sess has seen, made if there is none.
func (hs *holders) get(sess Session) (h *holder, made bool) {
	sess = sess.Client()
	if h = hs.of[sess]; h != nil {
		return h, false
	}
	h = &holder{sess: sess, bytes: holderCost}
	hs.of[sess] = h
	heap.Push(&hs.heap, h)
	return h, true
}

func (hs *holders) remove(h *holder) {
	heap.Remove(&hs.heap, h.place)
	h.place = -1
	delete(hs.of, h.sess)
}

// charge adds bytes to what h holds, which may have left.
func (hs *holders) charge(h *holder, bytes int64) {
	if h.bytes += bytes; bytes != 0 && h.place >= 0 {
		heap.Fix(&hs.heap, h.place)
	}
}

// next returns the entry that has to leave to make room: the oldest of the largest client. That is e only if all others have left, or
// if e can be made smaller: what a client has seen last isn't lost to others that have seen more, but less of each.
func (hs *holders) next(e *entry) *entry {
	if len(hs.heap) == 0 {
		return nil
	}
	old := hs.heap[0].oldest
	if old != e || len(e.past) > 0 || len(e.reads) > 1 || len(hs.heap) == 1 {
		return old
	}
	second := hs.heap[1]
	if len(hs.heap) > 2 && hs.heap[2].bytes > second.bytes {
		second = hs.heap[2]
	}
	return second.oldest
}

// join puts e, which nobody holds, among the entries of h, as the newest.
func (h *holder) join(e *entry) {
	e.holder, e.older, e.newer = h, h.newest, nil
	if h.newest != nil {
		h.newest.newer = e
	} else {
		h.oldest = e
	}
	h.newest = e
}

func (h *holder) leave(e *entry) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		h.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		h.oldest = e.newer
	}
	e.older, e.newer = nil, nil
}

// touch makes e the newest of its holder.
func (e *entry) touch() {
	if h := e.holder; h.newest != e {
		h.leave(e)
		h.join(e)
	}
}

// enter has the client of sess hold e, which nobody holds.
func (sh *shard) enter(e *entry, sess Session) {
	h, made := sh.holders.get(sess)
	if made {
		sh.bytes += holderCost
	}
	h.join(e)
	sh.holders.charge(h, e.held)
}

// exit has nobody hold e.
func (sh *shard) exit(e *entry) {
	h := e.holder
	h.leave(e)
	sh.holders.charge(h, -e.held)
	if h.newest == nil {
		sh.holders.remove(h)
		sh.bytes -= holderCost
	}
}

// move has the client of sess hold e.
func (sh *shard) move(e *entry, sess Session) {
	if e.holder.sess != sess.Client() {
		sh.exit(e)
		sh.enter(e, sess)
	}
}

// account adds bytes to what e, and with it its client, holds.
func (sh *shard) account(e *entry, bytes int64) {
	e.held += bytes
	sh.holders.charge(e.holder, bytes)
}

// ref counts one more of the places where e refers to b.
func (sh *shard) ref(e *entry, b *body) {
	b.refs++
	sh.account(e, b.cost())
}

// cost is what b costs, without its digest.
func (b *body) cost() int64 { return bodyCost + int64(len(b.data)) }

// bySize is a heap, with the largest first.
type bySize []*holder

func (s bySize) Len() int           { return len(s) }
func (s bySize) Less(i, j int) bool { return s[i].bytes > s[j].bytes }

func (s bySize) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

func (s *bySize) Push(h any) {
	added := h.(*holder) //nolint:forcetypeassert // only holders are pushed
	added.place = len(*s)
	*s = append(*s, added)
}

func (s *bySize) Pop() any {
	last := len(*s) - 1
	h := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return h
}
