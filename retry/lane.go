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

// Patience is how long a leader may wait for an answer of the engine while others wait for the lane. One that waits longer (for missing
// shards, for example) must not hold up other clients' changes: the next one leads, and only their guards keep the two apart. Each leader
// that is passed over, and still waits, halves the patience with those after it, so that many of them hold nobody up for more than twice
// Patience.
const Patience = 2 * time.Second

// Regain is how long it takes until a leader that was passed over no longer counts, though it still waits.
const Regain = 4 * time.Second

// LatePatience is Patience with a leader whose write is answered late: see Lanes.Late.
const LatePatience = 100 * time.Millisecond

// LongestWait is how long a change waits for others in its lane at most, though all of them are quick enough. Then it leads.
const LongestWait = 10 * time.Second

// Batch is the work of a lane's leader: changes to one document that may share a write, in their order, and what the lane remembers. It
// belongs to the leader until the leader's function returns, also if another leads the lane by then.
type Batch[M any] struct {
	Members []M
	lane    *lane[M]
	lanes   *Lanes[M]
	epoch   uint64 // of the lanes when the leader began
	kept    bool   // see Keep
	stuck   bool   // the leader was passed over, and hasn't gone on since; guarded by the slot's mutex

	// What the last write of this epoch left, when that was, and for whom it is good.
	last  doc.Revision
	scope string
	at    time.Time
}

// Guess is the revision that the lane's last write left, if that was less than GuessAge ago and of the same scope (credentials and
// parameters). It is a guess: good for a write under its guard, never for a decision.
func (b *Batch[M]) Guess(scope string) (doc.Revision, bool) {
	if b.last.Source == nil || b.scope != scope || !b.remembers() {
		return doc.Revision{}, false
	}
	return b.last, true
}

// Superseded reports whether the lane's last write left a later revision than n. Then a write under n's guard would be refused.
func (b *Batch[M]) Superseded(n doc.Numbers) bool {
	return n.Known() && b.last.PrimaryTerm == n.PrimaryTerm && b.last.SeqNo > n.SeqNo && b.remembers()
}

func (b *Batch[M]) remembers() bool {
	return b.epoch == b.lanes.epoch.Load() && time.Since(b.at) <= GuessAge
}

// Wrote remembers the revision that the batch's write left. It has no Source where the engine may have stored other bytes than were sent.
func (b *Batch[M]) Wrote(scope string, rev doc.Revision) {
	b.last, b.scope, b.at = rev, scope, time.Now()
}

// Waited reports whether changes wait for the batch to end. Then it is worth remembering the batch's result.
func (b *Batch[M]) Waited() bool {
	b.lane.slot.mu.Lock()
	defer b.lane.slot.mu.Unlock()
	return b.lane.led == b && !b.lane.queue.Empty()
}

// Forget drops what the lane remembers: after a conflict, an unknown outcome, or a delete.
func (b *Batch[M]) Forget() { b.last = doc.Revision{} }

// Progress says that the leader goes on: the engine has answered it, or its own work has come a step further. Patience with it begins anew.
// Without that, a leader with much to do would be passed over on a slow machine. The two leaders would refuse each other's writes, so that
// both had more to do, and more leaders would be passed over.
func (b *Batch[M]) Progress() {
	b.lane.slot.mu.Lock()
	defer b.lane.slot.mu.Unlock()
	if b.lane.led == b {
		b.lane.since = time.Now()
	}
	b.lane.release(b)
}

// Keep has the batch, which is of one change, go on when its function has returned. It holds the lane until End.
func (b *Batch[M]) Keep() { b.kept = true }

// End ends a batch that was kept. Nobody may use it any more. Call it only after Do has returned.
func (b *Batch[M]) End() { b.lanes.pass(b) }

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
	// Late reports whether the engine answers a change long after it has written it. Nil: it answers none so.
	Late func(M) bool

	share func(lead, m M) bool
	limit int
	epoch atomic.Uint64 // counts DropGuesses: what was remembered in an earlier epoch is void
	seed  maphash.Seed
	slots [1024]laneSlot[M]
	pool  sync.Pool
}

// laneSlot holds the busy lanes whose documents hash alike, as a list: most hold none or one.
type laneSlot[M any] struct {
	mu    sync.Mutex
	first *lane[M]
}

// lane is the queue of one document. Its fields are guarded by its slot's mutex, but the batch, which belongs to the leader.
type lane[M any] struct {
	next    *lane[M]
	place   Place
	slot    *laneSlot[M]
	queue   fairqueue.Line[*waiter[M]]
	led     *Batch[M] // the leader's
	since   time.Time // when the leader went on last, or, if nobody waited then, when the first came that waits
	late    bool      // the leader's write is answered late
	lates   bool      // such a change has come, and may lead later
	passed  int       // how many leaders were passed over, but for those that don't count any more
	passing time.Time // when the last one was
	own     Batch[M]  // of the first leader, and of those after it that were not passed over
	lent    bool      // a leader was passed over, and may still have own
}

// waiter is a change that waits in a lane.
type waiter[M any] struct {
	m     M
	place fairqueue.Place[*waiter[M]]
	next  *waiter[M]   // of the same batch
	turn  chan turn    // buffered, so that who gives the turn never waits
	slot  *laneSlot[M] // of its lane, which may be another document's once w isn't in the queue any more
	came  time.Time
	led   *Batch[M] // what it leads
	taken bool      // it leads, or another's batch holds the change: leaving is too late
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
// its end. Background changes go after foreground ones, but are not passed over for ever. A leader that holds the lane for longer than
// Patience, or LatePatience, goes on beside the next one. So does one before whom a change has waited for LongestWait.
func (ls *Lanes[M]) Do(ctx context.Context, at Place, m M, background bool, run func(*Batch[M])) error {
	s := ls.slot(at)
	s.mu.Lock()
	l := s.find(at)
	if l == nil {
		l = ls.open(s, at)
		l.begin(m)
		b := l.led // from now on others may pass it over
		s.mu.Unlock()
		ls.lead(b, nil, run)
		return nil
	}
	w := &waiter[M]{m: m, slot: s, turn: make(chan turn, 1), came: time.Now()}
	w.place.Value = w
	if l.queue.Empty() {
		l.since = w.came
	}
	l.lates = l.lates || ls.isLate(m)
	l.queue.Join(&w.place, background)
	look := l.nextLook(w)
	s.mu.Unlock()
	ls.Waits.Call(m)
	return ls.await(ctx, l, w, look, run)
}

// await waits for the turn of w, which looks at the leader after the given time. Only while w is in l's queue is l its lane.
func (ls *Lanes[M]) await(ctx context.Context, l *lane[M], w *waiter[M], look time.Duration, run func(*Batch[M])) error {
	s := w.slot
	timer := time.NewTimer(look)
	defer timer.Stop()
	for {
		select {
		case t := <-w.turn:
			return ls.take(ctx, w, t, run)
		case <-timer.C:
			s.mu.Lock()
			if !w.taken {
				l.hurry(w)
				timer.Reset(l.nextLook(w))
			}
			s.mu.Unlock()
		case <-ctx.Done():
			s.mu.Lock()
			left := !w.taken && l.queue.Leave(&w.place)
			s.mu.Unlock()
			if left {
				return context.Cause(ctx)
			}
			return ls.take(ctx, w, <-w.turn, run)
		}
	}
}

// take acts on the turn that a waiter was given. A waiter that may lead but whose client has left passes the lead on.
func (ls *Lanes[M]) take(ctx context.Context, w *waiter[M], t turn, run func(*Batch[M])) error {
	if t == done {
		return nil
	}
	b := w.led
	if ctx.Err() != nil {
		ls.pass(b)
		return context.Cause(ctx)
	}
	var others *waiter[M]
	w.slot.mu.Lock()
	if b.lane.led == b {
		others = ls.gather(b)
	}
	w.slot.mu.Unlock()
	ls.lead(b, others, run)
	return nil
}

// pass gives the batch's lane to its next waiter, or ends it. If the batch's leader was passed over, the lane is another's.
func (ls *Lanes[M]) pass(b *Batch[M]) {
	l := b.lane
	l.slot.mu.Lock()
	defer l.slot.mu.Unlock()
	l.release(b)
	if l.led != b {
		return
	}
	if p := l.queue.Next(); p != nil {
		l.give(p.Value, time.Now())
		return
	}
	l.slot.close(l)
	ls.recycle(l)
}

// give makes w the lane's leader. w is in no queue any more.
func (l *lane[M]) give(w *waiter[M], now time.Time) {
	w.taken, w.led = true, l.led
	l.since = now
	l.begin(w.m)
	w.turn <- lead
}

// begin has the change m lead.
func (l *lane[M]) begin(m M) {
	b := l.led
	b.Members = append(b.Members[:0], m)
	l.late = b.lanes.isLate(m)
}

func (ls *Lanes[M]) isLate(m M) bool { return ls.Late != nil && ls.Late(m) }

// due is when w's patience with the leader ends.
func (l *lane[M]) due(w *waiter[M]) time.Time {
	patience, last := l.patience(), w.came.Add(LongestWait)
	if l.late {
		patience = min(patience, LatePatience)
	}
	if due := l.since.Add(patience); due.Before(last) {
		return due
	}
	return last
}

// nextLook is after how long w looks at the leader: when its patience ends. That is soon where a change may lead that is answered late.
func (l *lane[M]) nextLook(w *waiter[M]) time.Duration {
	look := time.Until(l.due(w))
	if l.lates {
		return min(look, LatePatience)
	}
	return look
}

// patience is how long a leader may hold the lane that began to be waited for at since.
func (l *lane[M]) patience() time.Duration { return Patience >> l.counted(l.since) }

// counted is how many of the leaders that were passed over still count.
func (l *lane[M]) counted(now time.Time) int {
	return max(0, l.passed-int(now.Sub(l.passing)/Regain))
}

// release has the leader of b, which goes on, count no longer among those that were passed over.
func (l *lane[M]) release(b *Batch[M]) {
	if b.stuck {
		b.stuck, l.passed = false, max(0, l.passed-1)
	}
}

// hurry passes over the leader if w's patience with it has ended.
func (l *lane[M]) hurry(w *waiter[M]) {
	now := time.Now()
	if now.Before(l.due(w)) {
		return
	}
	if now.Sub(l.since) >= l.patience() {
		l.passed, l.passing, l.led.stuck = l.counted(now)+1, now, true
	}
	next := w
	if now.Sub(w.came) < LongestWait {
		next = l.queue.Next().Value
	} else {
		l.queue.Leave(&w.place)
	}
	b := &Batch[M]{lane: l, lanes: l.led.lanes}
	l.led, l.lent = b, true
	l.give(next, now)
}

// lead runs the batch, tells its members, and gives the lane to the next waiter, also when run panics: a lane without a leader would
// hold its document's writers for ever.
func (ls *Lanes[M]) lead(b *Batch[M], others *waiter[M], run func(*Batch[M])) {
	defer func() {
		for w := others; w != nil; w = w.next {
			w.turn <- done
		}
		if !b.kept {
			ls.pass(b)
		}
	}()
	if epoch := ls.epoch.Load(); b.epoch != epoch {
		b.Forget()
		b.epoch = epoch
	}
	b.kept = false
	run(b)
}

// gather adds to the leader's batch the waiting changes that may share its write. It stops at the first of a class that may not, because
// changes to one document go in their order.
func (ls *Lanes[M]) gather(b *Batch[M]) *waiter[M] {
	var head, tail *waiter[M]
	for len(b.Members) < ls.limit {
		p := b.lane.queue.NextIf(func(w *waiter[M]) bool { return ls.share(b.Members[0], w.m) })
		if p == nil {
			break
		}
		w := p.Value
		w.taken = true
		b.Members = append(b.Members, w.m)
		if tail == nil {
			head = w
		} else {
			tail.next = w
		}
		tail = w
	}
	return head
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
	l.place, l.slot, l.next, l.led = at, s, s.first, &l.own
	l.own.lane, l.own.lanes = l, ls
	s.first = l
	return l
}

// recycle keeps a lane's memory for another, unless somebody may still have a part of it.
func (ls *Lanes[M]) recycle(l *lane[M]) {
	if l.lent {
		return
	}
	members := l.own.Members[:cap(l.own.Members)] // a batch before the last may have been longer
	clear(members)
	*l = lane[M]{own: Batch[M]{Members: members[:0]}}
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
