package retry

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/doc"
	"optimist/internal/fairqueue"
	"optimist/internal/hook"
)

// GuessAge is how long a lane's last written revision may be taken for the current one without a look. Longer, and the index may
// have been deleted and made anew, where the engine accepts old numbers.
const GuessAge = time.Second

// Patience is how long a change waits in its lane at most. A change that holds the lane for longer waits for the engine (for missing
// shards, for example). It must not hold up other clients' changes: they then go without the lane, and only their guards keep them apart.
const Patience = 2 * time.Second

// Batch is the work of a lane's leader: changes to one document that may share a write, in their order, and what the lane remembers. It
// belongs to the leader until the leader's function returns.
type Batch[M any] struct {
	Members []M
	lane    *lane[M]
	lanes   *Lanes[M]
	epoch   uint64
	beside  bool // it goes beside the lane's leader
	kept    bool // see Keep
}

// Guess is the revision that the lane's last write left, if that was less than GuessAge ago and of the same scope (credentials and
// parameters). It is a guess: good for a write under its guard, never for a decision.
func (b *Batch[M]) Guess(scope string) (doc.Revision, bool) {
	l := b.lane
	if l.last.Source == nil || l.scope != scope || l.epoch != b.lanes.epoch.Load() || time.Since(l.at) > GuessAge {
		return doc.Revision{}, false
	}
	return l.last, true
}

// Wrote remembers the revision that the batch's write left. Leave it out where the engine may have stored other bytes than were sent.
func (b *Batch[M]) Wrote(scope string, rev doc.Revision) {
	b.lane.last, b.lane.scope, b.lane.at, b.lane.epoch = rev, scope, time.Now(), b.epoch
}

// Waited reports whether changes wait for the batch to end. Then it is worth remembering the batch's result.
func (b *Batch[M]) Waited() bool {
	s := b.lanes.slot(b.lane.place)
	s.mu.Lock()
	defer s.mu.Unlock()
	return !b.lane.queue.Empty()
}

// Forget drops what the lane remembers: after a conflict, an unknown outcome, or a delete.
func (b *Batch[M]) Forget() { b.lane.last = doc.Revision{} }

// Keep has the batch, which is of one change, go on when its function has returned. It holds the lane until End.
func (b *Batch[M]) Keep() { b.kept = true }

// End ends a batch that was kept. Nobody may use it any more. Call it only after Do has returned.
func (b *Batch[M]) End() {
	if !b.beside {
		b.lanes.pass(b.lanes.slot(b.lane.place), b.lane)
	}
}

// Place is one document of one index. Two clusters may have indices of one name, with documents of the same id in them: UUID tells these
// indices apart.
type Place struct {
	doc.Ref
	UUID string
}

// Lanes are the queues of changes to single documents inside this process. A document has a lane only while a change to it is
// under way. Safe for concurrent use; make it with NewLanes.
type Lanes[M any] struct {
	Waits hook.Func1[M] // a change waits for its turn; nil: nobody needs to know

	share func(lead, m M) bool
	limit int
	epoch atomic.Uint64 // counts DropGuesses: what was remembered in an earlier epoch is void
	seed  maphash.Seed
	slots [256]laneSlot[M]
	pool  sync.Pool
}

// laneSlot holds the busy lanes whose documents hash alike, as a list: most hold none or one.
type laneSlot[M any] struct {
	mu    sync.Mutex
	first *lane[M]
}

// lane is the queue of one document. Its fields are guarded by its slot's mutex, but last, scope, epoch and at, which belong
// to the leader.
type lane[M any] struct {
	next  *lane[M]
	place Place
	queue fairqueue.Line[*waiter[M]]
	last  doc.Revision
	scope string
	epoch uint64
	at    time.Time
	batch []M
	b     Batch[M] // what the leader has of it
}

// waiter is a change that waits in a lane.
type waiter[M any] struct {
	m     M
	place fairqueue.Place[*waiter[M]]
	next  *waiter[M] // of the same batch
	turn  chan turn  // buffered, so that who gives the turn never waits
	taken bool       // another's batch holds the change: leaving is too late
}

type turn uint8

const (
	lead turn = iota // the waiter leads the next batch
	done             // its change was in somebody's batch, which is finished
)

// NewLanes makes lanes. At most limit changes share a write, if share says that m may go with the leader of the batch. share must be
// quick: the lane is locked while it is asked.
func NewLanes[M any](limit int, share func(lead, m M) bool) *Lanes[M] {
	return &Lanes[M]{share: share, limit: max(limit, 1), seed: maphash.MakeSeed()}
}

// Do brings the change m to the document's lane. When its turn comes, either run is called with a batch whose first member is m, in this
// goroutine, or m was a member of another's batch. In both cases m has been dealt with when Do returns nil. Do returns the context's
// cause, and m has not been touched, when ctx ends before m became a member of a batch; after that the change counts, and Do waits for
// its end. Background changes go after foreground ones, but are not passed over for ever. Nothing waits for longer than Patience: then
// run is called for m alone, beside the lane's leader.
func (ls *Lanes[M]) Do(ctx context.Context, at Place, m M, background bool, run func(*Batch[M])) error {
	s := ls.slot(at)
	s.mu.Lock()
	l := s.find(at)
	if l == nil {
		l = ls.open(s, at)
		l.batch = append(l.batch[:0], m)
		s.mu.Unlock()
		ls.lead(s, l, nil, run)
		return nil
	}
	w := &waiter[M]{m: m, turn: make(chan turn, 1)}
	w.place.Value = w
	l.queue.Join(&w.place, background)
	s.mu.Unlock()
	ls.Waits.Call(m)
	return ls.await(ctx, at, l, w, run)
}

// await waits for the turn of a change that is in the lane's queue.
func (ls *Lanes[M]) await(ctx context.Context, at Place, l *lane[M], w *waiter[M], run func(*Batch[M])) error {
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case t := <-w.turn:
		return ls.take(ctx, l, w, t, run)
	case <-patience.C:
	case <-ctx.Done():
	}
	s := ls.slot(at) // the lane itself may be another document's by now, if w was in a batch that is over
	s.mu.Lock()
	left := !w.taken && l.queue.Leave(&w.place)
	s.mu.Unlock()
	switch {
	case !left:
		return ls.take(ctx, l, w, <-w.turn, run)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	run(&Batch[M]{Members: []M{w.m}, lane: &lane[M]{place: at}, lanes: ls, epoch: ls.epoch.Load(), beside: true})
	return nil
}

// take acts on the turn that a waiter was given. A waiter that may lead but whose client has left passes the lead on.
func (ls *Lanes[M]) take(ctx context.Context, l *lane[M], w *waiter[M], t turn, run func(*Batch[M])) error {
	if t == done {
		return nil
	}
	s := ls.slot(l.place) // the lane is the leader's now, and stays where it is
	if ctx.Err() != nil {
		ls.pass(s, l)
		return context.Cause(ctx)
	}
	s.mu.Lock()
	others := ls.gather(l, w.m)
	s.mu.Unlock()
	ls.lead(s, l, others, run)
	return nil
}

// pass gives the lane to its next waiter, or ends it.
func (ls *Lanes[M]) pass(s *laneSlot[M], l *lane[M]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := l.nextLeader(); w != nil {
		w.turn <- lead
		return
	}
	s.close(l)
	ls.recycle(l)
}

// lead runs the lane's batch, tells its members, and gives the lane to the next waiter, also when run panics: a lane without a
// leader would hold its document's writers for ever.
func (ls *Lanes[M]) lead(s *laneSlot[M], l *lane[M], others *waiter[M], run func(*Batch[M])) {
	defer func() {
		for w := others; w != nil; w = w.next {
			w.turn <- done
		}
		if !l.b.kept {
			ls.pass(s, l)
		}
	}()
	l.b = Batch[M]{Members: l.batch, lane: l, lanes: ls, epoch: ls.epoch.Load()}
	run(&l.b)
}

// gather makes the batch that the change m leads: with it go the waiting changes that may share its write. It stops at the first of a
// class that may not, because changes to one document go in their order.
func (ls *Lanes[M]) gather(l *lane[M], m M) *waiter[M] {
	l.batch = append(l.batch[:0], m)
	var head, tail *waiter[M]
	for len(l.batch) < ls.limit {
		p := l.queue.NextIf(func(w *waiter[M]) bool { return ls.share(m, w.m) })
		if p == nil {
			break
		}
		w := p.Value
		w.taken = true
		l.batch = append(l.batch, w.m)
		if tail == nil {
			head = w
		} else {
			tail.next = w
		}
		tail = w
	}
	return head
}

// nextLeader takes the next change off the queue.
func (l *lane[M]) nextLeader() *waiter[M] {
	p := l.queue.Next()
	if p == nil {
		return nil
	}
	p.Value.taken = true
	return p.Value
}

// DropGuesses makes every lane forget the revision that it remembers: an index or an alias changed, and old numbers are accepted by
// an index that was made anew.
func (ls *Lanes[M]) DropGuesses() { ls.epoch.Add(1) }

// Busy is the number of documents that have a lane now, and the number of changes that wait in them.
func (ls *Lanes[M]) Busy() (lanes, waiting int) {
	for i := range ls.slots {
		s := &ls.slots[i]
		s.mu.Lock()
		for l := s.first; l != nil; l = l.next {
			lanes++
			foreground, background := l.queue.Len()
			waiting += foreground + background
		}
		s.mu.Unlock()
	}
	return lanes, waiting
}

func (ls *Lanes[M]) slot(at Place) *laneSlot[M] {
	return &ls.slots[maphash.Comparable(ls.seed, at)%uint64(len(ls.slots))]
}

func (ls *Lanes[M]) open(s *laneSlot[M], at Place) *lane[M] {
	l, _ := ls.pool.Get().(*lane[M])
	if l == nil {
		l = &lane[M]{}
	}
	l.place, l.next = at, s.first
	s.first = l
	return l
}

func (ls *Lanes[M]) recycle(l *lane[M]) {
	clear(l.batch)
	*l = lane[M]{batch: l.batch[:0]}
	ls.pool.Put(l)
}

func (s *laneSlot[M]) find(at Place) *lane[M] {
	for l := s.first; l != nil; l = l.next {
		if l.place == at {
			return l
		}
	}
	return nil
}

func (s *laneSlot[M]) close(l *lane[M]) {
	for p := &s.first; *p != nil; p = &(*p).next {
		if *p == l {
			*p = l.next
			return
		}
	}
}
