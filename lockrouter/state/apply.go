package state

import (
	"slices"
)

// Verb is what an operation asks for.
type Verb string

// The verbs.
const (
	Acquire Verb = "acquire" // a lease: a new one, or a longer one for who has it
	Renew   Verb = "renew"
	Release Verb = "release"
	Abandon Verb = "abandon" // release whatever was given to a request whose client has left
	Leave   Verb = "leave"   // give up an entry of the queue
)

// Op is one operation. All can be repeated: what a lost answer leaves in doubt is found out by asking again.
type Op struct {
	Do    Verb   `json:"do"`
	Owner string `json:"owner"`
	Token int64  `json:"token"` // of Renew and Release
	Rid   string `json:"rid"`   // the request, of Acquire and Abandon: unique
	Path  string `json:"path"`
	Mode  Mode   `json:"mode"`
	Class Class  `json:"class"`
	Note  string `json:"note"`
	TTL   int64  `json:"ttl"` // ms; 0 in Renew: as it was

	// Wait has an Acquire that can't be granted put into the queue, or kept there. It must be the one of its proxy, class, path and mode
	// that has waited longest.
	Wait   bool   `json:"wait"`
	Age    int64  `json:"age"`    // ms that it has waited
	Left   int64  `json:"left"`   // ms that it will wait
	Behind Behind `json:"behind"` // who waits behind it in its proxy, in the same class, for the same

	// Chain has an Acquire that waits be promised its lease, if it is the next in the queue, and the chain isn't that long yet: see
	// Doc.Chain. Locks of a tree aren't promised, nor leases that no clock judges.
	Chain int64 `json:"chain"`
}

// Behind is who comes next.
type Behind struct {
	Count int64  `json:"count"` // 0: nobody
	Owner string `json:"owner"` // of the next one, and so on
	Rid   string `json:"rid"`
	Age   int64  `json:"age"`
	Left  int64  `json:"left"` // the longest of all
}

// Call is what is done to a document at once.
type Call struct {
	Lock  string `json:"lock"`
	Kind  Kind   `json:"kind"`
	Proxy string `json:"proxy"`
	Ops   []Op   `json:"ops"`
	// Bound is how many of the foreground may go past one of the background.
	Bound int64 `json:"bound"`
	// Grace is how many ms the first of the queue may take to take its lock before the next one may.
	Grace int64 `json:"grace"`
	// Most is how many leases a document may hold.
	Most int64 `json:"most"`
}

// Clock tells the time. With Unchanged nil, times are compared: Now is that of the engine, so that all proxies mean the same by it. Else
// no time is compared, and only how long this process has seen something unchanged counts; Now then only has to grow, for tokens and for
// the order of the queue.
type Clock struct {
	Now       int64
	Slack     int64            // how much later it may be: whatever is to last is made to last that much longer
	Unchanged func(Mark) int64 // ms; 0 for what was never seen
}

// Mark is something that whoever is alive changes. It is comparable.
type Mark struct {
	Token int64 // of a lease; 0 for an entry
	Proxy string
	Class Class
	Path  string
	Mode  Mode
	Bell  bool // since when the entry could have had its lock
	Beat  int64
}

// Mark is what tells that the lease was renewed.
func (h *Hold) Mark() Mark { return Mark{Token: h.Token, Beat: h.Beat} }

// Mark is what tells that the entry was renewed.
func (e *Entry) Mark() Mark {
	return Mark{Proxy: e.Proxy, Class: e.Class, Path: e.Path, Mode: e.Mode, Beat: e.Beat}
}

// Rung is what tells that the entry's turn came anew.
func (e *Entry) Rung() Mark {
	return Mark{Proxy: e.Proxy, Class: e.Class, Path: e.Path, Mode: e.Mode, Bell: true, Beat: e.Bell}
}

const (
	maxFreed = 16      // releases that can be repeated
	ofTrees  = 128     // and of a tree, of which one call may release many
	maxExact = 1 << 53 // tokens are below: a number of JSON is a float to many
	perMs    = 1024    // tokens a millisecond
)

// Token is the next token after last.
func Token(last, now int64) int64 {
	if now < maxExact/perMs {
		return max(last+1, now*perMs)
	}
	return last + 1
}

// Apply carries the operations out, in their order, and reports whether the document is another one now. If it isn't, nothing has to be
// written: no verdict is then one that must be.
func (d *Doc) Apply(c *Call, clock Clock) (said []Said, changed bool) {
	if d.Kind == "" {
		d.Lock, d.Kind, d.Holds, d.Queue, d.Freed = c.Lock, c.Kind, []Hold{}, []Entry{}, []int64{}
	}
	a := applying{d: d, c: c, clock: clock, now: max(clock.Now, d.Seen), beat: d.Beat + 1}
	a.purge()
	said = make([]Said, 0, len(c.Ops))
	for i := range c.Ops {
		v, token := a.do(&c.Ops[i])
		said = append(said, Said{v, token})
	}
	a.call()
	if a.changed {
		a.finish(said)
	}
	return said, a.changed
}

// applying is a call under way.
type applying struct {
	d       *Doc
	c       *Call
	clock   Clock
	now     int64
	beat    int64
	changed bool
	lapsed  []Hold
}

// purge takes away what has lapsed. Those whose turn it has been for too long lose it: their proxy has died, or will come back with the
// age of those who wait there. It isn't enough that they let those pass who come right behind them: others may stand in between.
func (a *applying) purge() {
	d := a.d
	a.lapsed = []Hold{}
	d.Holds = slices.DeleteFunc(d.Holds, func(h Hold) bool {
		if !a.over(h.Until, h.TTL, h.Mark) {
			return false
		}
		a.lapsed = append(a.lapsed, h)
		a.changed = true
		return true
	})
	d.Queue = slices.DeleteFunc(d.Queue, func(e Entry) bool {
		over := a.over(e.Until, e.Left, e.Mark) || e.Called > 0 && a.over(e.Called+a.c.Grace, a.c.Grace, e.Rung)
		a.changed = a.changed || over
		return over
	})
	d.Chain = slices.DeleteFunc(d.Chain, func(h Hold) bool {
		over := a.over(h.Until, h.TTL, h.Mark)
		a.changed = a.changed || over
		return over
	})
	a.promote()
}

// promote gives the first of the chain its lease when nobody has one any more. Where its proxy says so, it is alive: the lease is a new one
// then. Else it ends when it was promised to end.
func (a *applying) promote() {
	d := a.d
	if len(d.Holds) == 0 && len(d.Chain) > 0 {
		h := d.Chain[0]
		d.Chain = slices.Delete(d.Chain, 0, 1)
		if a.c.Proxy == d.Promiser {
			h.Until, h.Beat = a.until(h.TTL), a.beat
		}
		d.Holds = append(d.Holds, h)
		a.changed = true
	}
	if len(d.Chain) == 0 {
		d.Chain, d.Promiser = nil, ""
	}
}

// claim makes a promised lease the one that is held: only the proxy that handed it over has told anybody its token, and did so when all
// before it had been released.
func (a *applying) claim(token int64, owner string) int {
	d := a.d
	i := slices.IndexFunc(d.Chain, func(h Hold) bool { return h.Token == token && h.Owner == owner })
	if i < 0 {
		return -1
	}
	for _, h := range append(d.Holds, d.Chain[:i]...) {
		a.freed(h.Token)
	}
	d.Holds = append(d.Holds[:0:0], d.Chain[i])
	d.Chain = slices.Delete(d.Chain, 0, i+1)
	a.promote()
	a.changed = true
	return 0
}

// over reports whether a time span has ended, by the clock or by what was seen.
func (a *applying) over(until, span int64, m func() Mark) bool {
	if a.clock.Unchanged == nil {
		return until <= a.now
	}
	return a.clock.Unchanged(m()) >= span
}

// until is when something ends that lasts so long from now on.
func (a *applying) until(span int64) int64 { return a.now + a.clock.Slack + span }

func (a *applying) do(op *Op) (Verdict, int64) {
	switch op.Do {
	case Acquire:
		return a.acquire(op)
	case Renew:
		return a.renew(op)
	case Release:
		return a.release(op)
	case Abandon:
		return a.abandon(op), 0
	}
	a.unqueue(&Entry{Proxy: a.c.Proxy, Class: op.Class, Path: op.Path, Mode: op.Mode})
	return Left, 0
}

func (a *applying) acquire(op *Op) (Verdict, int64) {
	d := a.d
	if i := slices.IndexFunc(d.Chain, func(h Hold) bool { return h.Rid == op.Rid }); i >= 0 {
		return a.again(op, &d.Chain[i]), d.Chain[i].Token
	}
	i := slices.IndexFunc(d.Holds, func(h Hold) bool { return h.Owner == op.Owner && h.Path == op.Path })
	if i >= 0 && a.relayed(a.c.Proxy) {
		i = -1
	}
	if i >= 0 && (d.Holds[i].Mode == Exclusive || op.Mode == Shared) {
		return a.reenter(op, &d.Holds[i]), d.Holds[i].Token
	}
	me := a.entryOf(op)
	_, taken := d.Conflict(op.Owner, op.Path, op.Mode)
	switch taken = taken || a.relayed(a.c.Proxy); {
	case a.blocked(&me, op.Wait), taken && !a.mayPromise(op, &me):
		return a.refuse(op, &me), 0
	case taken:
		return a.promise(op, &me)
	}
	if i >= 0 {
		d.Holds[i].Mode = Exclusive // the readers' lease becomes a writer's
		return a.reenter(op, &d.Holds[i]), d.Holds[i].Token
	}
	if a.c.Most > 0 && int64(len(d.Holds)) >= a.c.Most {
		return Full, 0
	}
	d.Last = Token(d.Last, a.now)
	d.Holds = append(d.Holds, a.lease(op))
	a.changed = true
	a.overtake(&me)
	a.next(op, &me)
	return Acquired, d.Last
}

// relayed reports whether somebody else than that proxy may have handed the lock over without the document knowing it yet: whoever it
// says has the lease may have released it.
func (a *applying) relayed(proxy string) bool { return len(a.d.Chain) > 0 && a.d.Promiser != proxy }

func (a *applying) mayPromise(op *Op, me *Entry) bool {
	d := a.d
	mine := func(h Hold) bool { return h.Owner == op.Owner } // who has it re-enters, later
	return op.Wait && !a.behind(me) && int64(len(d.Chain)) < op.Chain && d.Kind != Tree && a.clock.Unchanged == nil && !a.relayed(a.c.Proxy) &&
		!slices.ContainsFunc(d.Holds, mine) && !slices.ContainsFunc(d.Chain, mine)
}

// promise puts a lease at the end of the chain. It begins now, whenever it is handed over.
func (a *applying) promise(op *Op, me *Entry) (Verdict, int64) {
	d := a.d
	d.Last = Token(d.Last, a.now)
	d.Chain = append(d.Chain, a.lease(op))
	d.Promiser = a.c.Proxy
	a.changed = true
	a.overtake(me)
	a.next(op, me)
	return Promised, d.Last
}

// again makes a promised lease begin anew, for the same request.
func (a *applying) again(op *Op, h *Hold) Verdict {
	h.Until, h.Beat = max(h.Until, a.until(h.TTL)), a.beat
	a.changed = true
	me := a.entryOf(op)
	a.next(op, &me)
	return Promised
}

// lease is the one of the last token.
func (a *applying) lease(op *Op) Hold {
	return Hold{Owner: op.Owner, Token: a.d.Last, Path: op.Path, Mode: op.Mode, Since: a.now, Until: a.until(op.TTL),
		TTL: op.TTL, Beat: a.beat, Rid: op.Rid, Note: op.Note}
}

// reenter makes the lease of its owner longer, never shorter: the one who had it first counts on what it was told.
func (a *applying) reenter(op *Op, h *Hold) Verdict {
	h.TTL = max(h.TTL, op.TTL)
	h.Until, h.Beat = a.until(h.TTL), a.beat
	if op.Note != "" {
		h.Note = op.Note
	}
	a.changed = true
	me := a.entryOf(op)
	a.next(op, &me)
	if h.Rid == op.Rid {
		return Acquired
	}
	h.Rid = "" // if one of the two requests is abandoned, the other one still counts on the lease
	return Reentered
}

// entryOf is the entry that the operation has, or would have, in the queue.
func (a *applying) entryOf(op *Op) Entry {
	e := Entry{Proxy: a.c.Proxy, Class: op.Class, Path: op.Path, Mode: op.Mode, Owner: op.Owner, Rid: op.Rid, Since: a.now - op.Age}
	if !op.Wait {
		e.Since = a.now + 1 // behind all who wait
	}
	if i := a.d.entry(&e); i >= 0 && op.Wait && a.d.Queue[i].Rid == op.Rid {
		return a.d.Queue[i]
	} else if i >= 0 && op.Wait {
		e.Passed = a.d.Queue[i].Passed
	}
	return e
}

// blocked reports whether others come first.
func (a *applying) blocked(me *Entry, waits bool) bool {
	for i := range a.d.Queue {
		e := &a.d.Queue[i]
		if (!waits || !e.same(me)) && against(e.Path, e.Mode, me.Path, me.Mode) && before(e, me, a.c.Bound) {
			return true
		}
	}
	return false
}

// before reports whether e comes before o: the foreground first, and with it those of the background whom too many have passed; then
// who came first.
func before(e, o *Entry, bound int64) bool {
	eFirst, oFirst := e.Class == Foreground || e.Passed >= bound, o.Class == Foreground || o.Passed >= bound
	switch {
	case eFirst != oFirst:
		return eFirst
	case e.Since != o.Since:
		return e.Since < o.Since
	case e.Proxy != o.Proxy:
		return e.Proxy < o.Proxy
	case e.Class != o.Class:
		return e.Class == Foreground
	}
	return e.Path < o.Path
}

// behind reports whether somebody of the same entry has asked before in this call, and waits.
func (a *applying) behind(me *Entry) bool {
	i := a.d.entry(me)
	if i < 0 {
		return false
	}
	e := &a.d.Queue[i]
	return e.Beat == a.beat && e.Rid != me.Rid && e.Since <= me.Since
}

// refuse puts who waits into the queue.
func (a *applying) refuse(op *Op, me *Entry) Verdict {
	if !op.Wait {
		return Held
	}
	if a.behind(me) {
		return Queued
	}
	me.Count, me.Left = 1+op.Behind.Count, max(op.Left, op.Behind.Left)
	a.put(me)
	return Queued
}

// next gives the entry of who has got a lease to those who wait behind.
func (a *applying) next(op *Op, me *Entry) {
	if !op.Wait {
		return
	}
	b := &op.Behind
	if b.Count == 0 {
		a.unqueue(me)
		return
	}
	a.put(&Entry{Proxy: me.Proxy, Class: me.Class, Path: me.Path, Mode: me.Mode, Owner: b.Owner, Rid: b.Rid, Since: a.now - b.Age,
		Count: b.Count, Left: b.Left})
}

// put writes an entry.
func (a *applying) put(e *Entry) {
	e.Until, e.Beat = a.until(e.Left), a.beat
	a.changed = true
	if i := a.d.entry(e); i >= 0 {
		a.d.Queue[i] = *e
		return
	}
	a.d.Queue = append(a.d.Queue, *e)
}

func (a *applying) unqueue(e *Entry) {
	if i := a.d.entry(e); i >= 0 {
		a.d.Queue = slices.Delete(a.d.Queue, i, i+1)
		a.changed = true
	}
}

// overtake counts for those of the background that one of the foreground went past.
func (a *applying) overtake(me *Entry) {
	if me.Class != Foreground {
		return
	}
	for i := range a.d.Queue {
		if e := &a.d.Queue[i]; e.Class == Background && against(e.Path, e.Mode, me.Path, me.Mode) {
			e.Passed++
		}
	}
}

func (a *applying) renew(op *Op) (Verdict, int64) {
	i := a.held(op)
	if i < 0 {
		return a.unknown(op), 0
	}
	h := &a.d.Holds[i]
	if op.TTL > 0 {
		h.TTL = op.TTL
	}
	h.Until, h.Beat = a.until(h.TTL), a.beat
	if op.Note != "" {
		h.Note = op.Note
	}
	a.changed = true
	return Renewed, h.Token
}

func (a *applying) release(op *Op) (Verdict, int64) {
	if i := a.held(op); i >= 0 {
		a.free(i)
		return Released, op.Token
	}
	if op.Token > 0 && slices.Contains(a.d.Freed, op.Token) {
		a.changed = true // it is an answer that counts, and so a write
		return Released, op.Token
	}
	return a.unknown(op), 0
}

func (a *applying) abandon(op *Op) Verdict {
	if i := slices.IndexFunc(a.d.Holds, func(h Hold) bool { return h.Rid == op.Rid }); i >= 0 {
		a.free(i)
	} else if i := slices.IndexFunc(a.d.Chain, func(h Hold) bool { return h.Rid == op.Rid }); i >= 0 {
		a.d.Chain = slices.Delete(a.d.Chain, i, i+1)
		a.promote()
		a.changed = true
	}
	return Released
}

// free ends a lease.
func (a *applying) free(i int) {
	a.freed(a.d.Holds[i].Token)
	a.d.Holds = slices.Delete(a.d.Holds, i, i+1)
	a.promote()
	a.changed = true
}

func (a *applying) freed(token int64) {
	d, most := a.d, maxFreed
	if d.Kind == Tree {
		most = ofTrees
	}
	d.Freed = append(d.Freed, token)
	if len(d.Freed) > most {
		d.Freed = slices.Delete(d.Freed, 0, len(d.Freed)-most)
	}
}

// held is the lease that an operation names by its token: its owner's, on that path.
func (a *applying) held(op *Op) int {
	i := slices.IndexFunc(a.d.Holds, func(h Hold) bool { return h.Token == op.Token && h.Owner == op.Owner && h.Path == op.Path })
	if i < 0 {
		return a.claim(op.Token, op.Owner)
	}
	return i
}

// unknown says why there is no lease of the token that is the owner's, on that path.
func (a *applying) unknown(op *Op) Verdict {
	d := a.d
	for _, leases := range [][]Hold{d.Holds, d.Chain} {
		if i := slices.IndexFunc(leases, func(h Hold) bool { return h.Token == op.Token }); i >= 0 && leases[i].Owner == op.Owner {
			return Missing // it is another path's
		} else if i >= 0 {
			return NotOwner
		}
	}
	switch {
	case op.Token > 0 && op.Token <= d.Last:
		return Expired
	case op.Token > 0 || len(d.Holds) == 0:
		return Missing
	case slices.ContainsFunc(d.Holds, func(h Hold) bool { return h.Owner == op.Owner }):
		return NoToken
	}
	return NotOwner
}

// call tells those in the queue whose turn it is: from now on they have the call's Grace to take their lock.
func (a *applying) call() {
	d := a.d
	for i := range d.Queue {
		e := &d.Queue[i]
		_, taken := d.Conflict(e.Owner, e.Path, e.Mode)
		turn := !taken && !a.relayed(e.Proxy)
		for j := range d.Queue {
			o := &d.Queue[j]
			if turn && j != i && against(o.Path, o.Mode, e.Path, e.Mode) && before(o, e, a.c.Bound) {
				turn = false
			}
		}
		switch {
		case turn && e.Called == 0:
			e.Called, e.Bell, a.changed = a.now, a.beat, true
		case !turn && e.Called != 0:
			e.Called, e.Bell, a.changed = 0, 0, true
		}
	}
}

// finish makes the document that is written.
func (a *applying) finish(said []Said) {
	d := a.d
	d.Seen, d.Beat, d.Said, d.Lapsed = a.now, a.beat, said, a.lapsed
	d.Owners, d.Since = nil, 0
	for i := range d.Holds {
		h := &d.Holds[i]
		if !slices.Contains(d.Owners, h.Owner) {
			d.Owners = append(d.Owners, h.Owner)
		}
		if d.Since == 0 || h.Since < d.Since {
			d.Since = h.Since
		}
	}
}
