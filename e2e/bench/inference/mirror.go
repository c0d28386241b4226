package inference

import "time"

// databaseRow is a row of a database, which one worker at a time changes.
type databaseRow struct {
	doc     []byte
	locked  bool
	waiting []*process
}

func (r *databaseRow) lock(p *process) {
	if r.locked {
		r.waiting = append(r.waiting, p)
		p.park()
	}
	r.locked = true
}

func (r *databaseRow) unlock(w *world) {
	if len(r.waiting) == 0 {
		r.locked = false
		return
	}
	p := r.waiting[0]
	r.waiting = r.waiting[1:]
	w.wake(p)
}

// mirror changes the row, and writes what it holds then to the index.
func (w *worker) mirror() {
	row := &w.proxy.row
	row.lock(w.p)
	w.at = w.call()
	w.doc, _ = decode(row.doc).(map[string]any)
	w.p.sleep(w.about(w.Think))
	if !w.chance(w.Unchanged) {
		w.edit(&w.change, w.doc)
	}
	row.doc = encode(w.doc)
	w.proxy.put(w.p, row.doc, nil, w.at, &truth{sent: row.doc, whole: true})
	w.p.park()
	row.unlock(w.world)
}

// refresh shows searches what is stored, again and again.
func (x *proxy) refresh(p *process, every time.Duration) {
	for x.working > 0 {
		p.sleep(x.w.about(every))
		x.found = x.engine.Revision
	}
}
