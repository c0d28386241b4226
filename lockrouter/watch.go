package lockrouter

import (
	"cmp"
	"slices"
	"time"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// alert wakes the watcher, because there is a lane to look after.
func (r *Router) alert() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// maxLook is how many documents one look reads.
const maxLook = 1000

// watch looks at the locks that requests wait for, because other proxies may have released them. One request reads all that are due.
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
		for len(due) > 0 { // after each look, more lanes may be due
			r.look(due)
			due, next = r.due()
		}
		timer.Reset(next)
	}
}

// due returns the lanes whose documents have to be read now, and when the next one has to be. If a lane's waiters may get the lock without
// a look, due makes the lane send. If one lane is due, all lanes whose tick is half over count as due, too, so that one request reads them.
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
			// A waiter that asks gets the document as it is now, so that no look is needed.
			l.judge(now)
			l.run()
			if l.running {
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
			// A call has seen the document meanwhile, or is about to.
		default:
			l.observe(docs[i])
			l.run()
		}
	}
	if err != nil {
		r.storeDown("", err)
	}
}

// storeDown and storeUp log, once each, that the store is away and that it is back.
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

// lapses reports the leases that a call of this proxy has ended.
func (l *lane) lapses(d *state.Doc, results []state.Result) {
	written := slices.ContainsFunc(results, func(s state.Result) bool { return s.Verdict.Positive() }) ||
		l.doc != nil && d.Beat != l.doc.Beat && slices.Equal(d.Results, results)
	if written {
		l.r.lapses(d) // otherwise the document still names the leases of an earlier call
	}
}

// lapses reports the leases that were ended by the call that wrote the document.
func (r *Router) lapses(d *state.Doc) {
	if d.Beat == 0 {
		return
	}
	r.offset.Store(d.Seen - r.now())
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
