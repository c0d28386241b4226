package lockrouter

import (
	"cmp"
	"slices"
	"time"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// alert tells the watcher that there is something to wait for.
func (r *Router) alert() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// maxLook is how many documents one look reads.
const maxLook = 1000

// watch looks at the locks that are waited for: those of other proxies may have been released. One request serves all that are
// due.
func (r *Router) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		due, next := r.due()
		for len(due) > 0 { // more may be due by then
			r.look(due)
			due, next = r.due()
		}
		timer.Reset(next)
	}
}

// due are the lanes that have to be looked at, and the time to the next one. Those who may have a chance without a look are sent.
// With one that is due go all whose tick is half over: from then on they are due together.
func (r *Router) due() (lanes []*lane, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	at, first := now+time.Hour.Milliseconds(), never
	for _, l := range r.lanes {
		if l.running || len(l.groups) == 0 {
			continue
		}
		l.withdraw(now)
		if l.tryAt <= now || len(l.tasks) > 0 {
			// Whoever asks finds the document as it is: that is a look, too.
			l.judge(now)
			if l.run(); l.running {
				continue
			}
		}
		if l.lookAt-l.tick/2 <= now {
			lanes, first = append(lanes, l), min(first, l.lookAt)
			at = min(at, l.tryAt)
			continue
		}
		at = min(at, l.lookAt, l.tryAt)
	}
	if first > now {
		lanes, at = nil, min(at, first)
	}
	if len(lanes) > maxLook {
		slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.lookAt, b.lookAt) })
		lanes, at = lanes[:maxLook], now
	}
	return lanes, time.Duration(max(at-now, 1)) * time.Millisecond
}

// look reads the lanes' documents.
func (r *Router) look(lanes []*lane) {
	ids := make([]string, len(lanes))
	versions := make([]uint64, len(lanes))
	r.mu.Lock()
	for i, l := range lanes {
		ids[i], versions[i] = l.id, l.version
	}
	r.mu.Unlock()
	docs, err := r.o.Store.Read(r.ctx, ids)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, l := range lanes {
		switch {
		case err != nil:
			l.lookAt = r.now() + lastTick.Milliseconds()
		case l.version != versions[i] || l.running:
			// A call has seen it meanwhile, or is about to.
		default:
			l.observe(docs[i])
			l.run()
		}
	}
	if err != nil {
		r.storeDown("", err)
	}
}

// storeDown and storeUp say once that the store has gone, and that it is back.
func (r *Router) storeDown(lock string, err error) {
	if !r.down && r.ctx.Err() == nil {
		r.down = true
		r.o.Log.Warn("the locks' store is unavailable; what waits goes on waiting", obs.KeyLock, lock, obs.KeyError, err.Error())
	}
}

func (r *Router) storeUp() {
	if r.down {
		r.down = false
		r.o.Log.Info("the locks' store is back")
	}
}

// lapses tells of leases that a call of ours found lapsed.
func (l *lane) lapses(d *state.Doc, results []state.Result) {
	written := slices.ContainsFunc(results, func(s state.Result) bool { return s.Verdict.Positive() }) ||
		l.doc != nil && d.Beat != l.doc.Beat && slices.Equal(d.Results, results)
	if written {
		l.r.lapses(d) // else what the document says is of an earlier call
	}
}

// lapses tells of the leases that the call that wrote the document found lapsed.
func (r *Router) lapses(d *state.Doc) {
	if d.Beat == 0 {
		return
	}
	r.offset.Store(d.Seen - time.Now().UnixMilli())
	for i := range d.Lapsed {
		h := &d.Lapsed[i]
		next := slices.IndexFunc(d.Holds, func(n state.Hold) bool {
			return n.Beat == d.Beat && n.Owner != h.Owner && h.Against(n.Path, n.Mode)
		})
		r.held.remove(d.Lock, h.Token)
		r.o.Events.Lapsed.Call(1, next >= 0)
		if next < 0 {
			r.o.Log.Warn("a lease has lapsed", obs.KeyLock, lockOf(d, h.Path), obs.KeyOwner, h.Owner, obs.KeyToken, h.Token, obs.KeyNote, h.Note)
			continue
		}
		r.o.Log.Warn("a lease has lapsed, and another owner has taken over", obs.KeyLock, lockOf(d, h.Path), obs.KeyOwner, h.Owner,
			obs.KeyToken, h.Token, obs.KeyNote, h.Note, "by", d.Holds[next].Owner)
	}
}
