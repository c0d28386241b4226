package lockrouter

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// doubts are the leases that calls without an answer may have got, and of which no client knows. One goroutine gives them back, many with
// one call. As long as the store is away, it makes one call in each pause, however many there are. Router.mu guards all of it.
//
// A lease that isn't given back ends by itself.
type doubts struct {
	r       *Router
	list    []doubt // the one that came first is first
	size    int     // bytes of the list, and of what is in the call that is out
	full    bool    // since it was empty, not all could be kept
	running bool    // a goroutine gives them back
}

// doubt is one such lease.
type doubt struct {
	id, lock string // of the document
	kind     state.Kind
	rid      string // of the request that may have got it
	until    int64  // ms of Router.now, when the lease has ended by itself
}

// maxDoubts bounds their bytes.
const maxDoubts = 16 << 20

// doubtBytes is what one takes beside its names.
const doubtBytes = 120

func (d *doubt) size() int { return doubtBytes + len(d.id) + len(d.lock) + len(d.rid) }

// uncertain reports whether a call that failed may have been carried out.
func uncertain(err error) bool { return !errors.Is(err, ErrNotDone) }

// doubt takes back what a call without an answer may have got.
func (r *Router) doubt(t *target, op *state.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubts.add(doubt{t.id, t.root, t.kind, op.Rid, r.now() + op.TTL})
}

func (d *doubts) add(one doubt) {
	switch {
	case d.r.closed:
		return
	case d.size+one.size() > maxDoubts:
		if !d.full {
			d.r.o.Log.Warn("too many leases may have been given to nobody; the further ones end by themselves", obs.KeyLock, one.lock)
		}
		d.full = true
		return
	}
	d.list, d.size = append(d.list, one), d.size+one.size()
	if !d.running {
		d.running = true
		d.r.wg.Go(d.run)
	}
}

// run gives leases back until there are none. While calls fail, the pauses between them grow; they differ from proxy to proxy, so that
// these don't all come at once when the store is back.
func (d *doubts) run() {
	r, pause := d.r, time.Duration(0)
	for {
		r.mu.Lock()
		part := d.take()
		if len(part) == 0 || r.ctx.Err() != nil {
			d.running, d.full = false, false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		if d.giveBack(part) {
			pause = 0
			continue
		}
		pause = min(max(2*pause, shortPause), longPause)
		r.pause(pause/2 + rand.N(pause)) //nolint:gosec // it only has to differ
	}
}

// shared are doubts about one document.
type shared []doubt

// take takes from the list what goes into one call, and what has ended.
func (d *doubts) take() (part []shared) {
	now := d.r.now()
	at := map[string]int{}
	var later []doubt
	n := 0
	for ; n < len(d.list) && len(part) < chunk; n++ {
		one := d.list[n]
		switch i, there := at[one.id]; {
		case one.until <= now:
			d.size -= one.size()
		case !there:
			at[one.id], part = len(part), append(part, shared{one})
		case len(part[i]) < maxTasks:
			part[i] = append(part[i], one)
		default:
			later = append(later, one)
		}
	}
	d.list = d.list[n:]
	if len(later) > 0 {
		d.list = append(later, d.list...)
	}
	return part
}

// giveBack makes one call. It reports whether any lease was given back by it.
func (d *doubts) giveBack(part []shared) (some bool) {
	r := d.r
	changes := make([]Change, len(part))
	for i, all := range part {
		ops := make([]state.Op, len(all))
		for k := range all {
			ops[k] = state.Op{Do: state.Abandon, Rid: all[k].rid}
		}
		changes[i] = Change{all[0].id, r.call(all[0].lock, all[0].kind, r.name, ops)}
	}
	done := r.o.Store.Do(r.ctx, changes)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range done {
		if done[i].Err != nil {
			d.list = append(d.list, part[i]...)
			continue
		}
		some = true
		for k := range part[i] {
			d.size -= part[i][k].size()
		}
		if slices.ContainsFunc(done[i].Results, func(s state.Result) bool { return s.Verdict.Positive() }) {
			r.lapses(done[i].Doc)
		}
		r.runLane(part[i][0].id, done[i].Doc)
	}
	return some
}

// runLane wakes the lane of a document, so that the next waiter gets its lock: the lock was released by a call that bypasses the lane.
func (r *Router) runLane(id string, d *state.Doc) {
	if l := r.lanes[id]; l != nil && d != nil && len(l.groups) > 0 && !l.running {
		l.observe(d)
		l.run()
	}
}
