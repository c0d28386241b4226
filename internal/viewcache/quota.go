package viewcache

import (
	"container/heap"

	"optimist/internal/identity"
)

// holder is the account of one client: how many bytes the memory keeps for it. When the memory is full, the client that holds most loses
// its oldest entry. A client's fair share is the bound, divided by the number of clients. In a full memory the largest client holds at
// least that much. So a client below its fair share loses nothing to the others.
//
// Bytes that several clients share count in full against each of them. Otherwise a client would grow when others leave.
type holder struct {
	sess           identity.Session
	bytes          int64 // its entries, and the digests that were made for it
	place          int   // its index in the heap; -1: it has left
	newest, oldest *Entry
}

// holderCost is what a holder costs: the struct, its slots in the map and in the heap.
const holderCost = 320

// holders are all holders of a memory. In the heap the largest comes first.
type holders struct {
	of   map[identity.Session]*holder
	heap bySize
}

// get returns the holder of sess's entries. It makes one if there is none.
func (hs *holders) get(sess identity.Session) (h *holder, made bool) {
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

// charge adds bytes to the account of h. h may have left.
func (hs *holders) charge(h *holder, bytes int64) {
	if h.bytes += bytes; bytes != 0 && h.place >= 0 {
		heap.Fix(&hs.heap, h.place)
	}
}

// next returns the entry that has to leave to make room: the oldest entry of the largest client. If that is e, and e can't be made smaller,
// next returns the oldest entry of the second largest client, if there is one: a client must not lose what it has just read because that
// is large. nil: there are no entries.
func (hs *holders) next(e *Entry) *Entry {
	if len(hs.heap) == 0 {
		return nil
	}
	old := hs.heap[0].oldest
	if old != e || len(e.Past) > 0 || len(e.Reads) > 1 || len(hs.heap) == 1 {
		return old
	}
	second := hs.heap[1]
	if len(hs.heap) > 2 && hs.heap[2].bytes > second.bytes {
		second = hs.heap[2]
	}
	return second.oldest
}

// join makes e the newest entry of h. e must have no holder.
func (h *holder) join(e *Entry) {
	e.holder, e.older, e.newer = h, h.newest, nil
	if h.newest != nil {
		h.newest.newer = e
	} else {
		h.oldest = e
	}
	h.newest = e
}

func (h *holder) leave(e *Entry) {
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
func (e *Entry) touch() {
	if h := e.holder; h.newest != e {
		h.leave(e)
		h.join(e)
	}
}

// enter makes the client of sess the holder of e. e must have no holder.
func (m *Memory) enter(e *Entry, sess identity.Session) {
	h, made := m.holders.get(sess)
	if made {
		m.bytes += holderCost
	}
	h.join(e)
	m.holders.charge(h, e.held)
}

// exit takes e away from its holder.
func (m *Memory) exit(e *Entry) {
	h := e.holder
	h.leave(e)
	m.holders.charge(h, -e.held)
	if h.newest == nil {
		m.holders.remove(h)
		m.bytes -= holderCost
	}
}

// Move makes the client of sess the holder of e.
func (m *Memory) Move(e *Entry, sess identity.Session) {
	if e.holder.sess != sess.Client() {
		m.exit(e)
		m.enter(e, sess)
	}
}

// account adds bytes to what e holds, and to its client's account.
func (m *Memory) account(e *Entry, bytes int64) {
	e.held += bytes
	m.holders.charge(e.holder, bytes)
}

// Ref counts one more reference of e to b.
func (m *Memory) Ref(e *Entry, b *Body) {
	b.refs++
	m.account(e, b.cost())
}

// cost is how many bytes b takes, without its digest.
func (b *Body) cost() int64 { return bodyCost + int64(len(b.Data)) }

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
