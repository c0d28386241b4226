package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/timer"
)

// run is a rollback that this process carries out.
type run struct {
	done chan struct{}
	err  error
}

// rollBack undoes the writes of a journal. If this process is undoing them already, the call waits for that. If ctx ends, the call returns
// ErrBusy, and the rollback goes on. Errors: ErrBusy, ErrCommitted, ErrStore.
func (s *Store) rollBack(ctx context.Context, token int64) error {
	s.mu.Lock()
	r := s.runs[token]
	if r == nil {
		r = &run{done: make(chan struct{})}
		s.runs[token] = r
		go func() {
			r.err = s.undo(context.WithoutCancel(ctx), token)
			s.mu.Lock()
			delete(s.runs, token)
			s.mu.Unlock()
			close(r.done)
		}()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ErrBusy
	}
}

// undo claims a journal, and undoes it.
func (s *Store) undo(ctx context.Context, token int64) error {
	h, err := s.head(ctx, token)
	switch {
	case err != nil:
		return err
	case h == nil || h.State == undone:
		return nil
	case h.State == committed:
		return ErrCommitted
	case h.State == rolling && h.Claim != s.self && !s.stands(h):
		return ErrBusy
	}
	h.State, h.Claim = rolling, s.self
	h.Beat++
	if err := s.fault("claim"); err != nil {
		return err
	}
	if err := s.putHead(ctx, h); err != nil {
		return busy(err)
	}
	u := &undoing{s: s, h: h, recorded: s.o.Now()}
	if err := u.undoAll(ctx); err != nil {
		s.o.Log.Warn("a lock's writes aren't undone yet", "lock", h.Lock, "token", h.Token, obs.KeyError, err.Error())
		return busy(err)
	}
	s.o.Log.Info("a lock's writes were undone", "lock", h.Lock, "owner", h.Owner, "token", h.Token, "documents", len(u.docs),
		"left", len(u.h.Left))
	s.o.Events.Ended.Call("rolled_back")
	s.tellUndone(token)
	return nil
}

func busy(err error) error {
	if errors.Is(err, errLost) {
		return ErrBusy
	}
	return err
}

// stands reports whether another proxy's rollback makes no progress any more: this process has seen the same record for Options.Takeover.
// Only this process's clock counts, so the clocks of proxies may differ.
func (s *Store) stands(h *head) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	seen, known := s.seen[h.Token]
	if !known || seen.at != h.numbers {
		s.seen[h.Token] = sighting{h.numbers, now}
		return false
	}
	if now.Sub(seen.since) < s.o.Takeover {
		return false
	}
	delete(s.seen, h.Token)
	return true
}

// undoing is the state of one rollback.
type undoing struct {
	s        *Store
	h        *head
	docs     []*document
	recorded time.Time   // when this rollback last wrote the journal's record
	fenced   time.Time   // when the journal ended: since then no write can be noted
	appear   []*document // those that a late write may still create: see await
}

// undoAll ends the journal, and undoes its writes batch by batch, from the batch on at which an earlier rollback has stopped.
func (u *undoing) undoAll(ctx context.Context) error {
	known := u.s.known(u.h.Token) // before the end is written: a goroutine of this process that meets the end forgets the journal
	pages, err := u.s.fence(ctx, u.h.Token)
	if err != nil {
		return err
	}
	u.fenced, u.docs = u.s.o.Now(), collect(append(slices.Clone(pages), known.heard()))
	begin := u.h.Batch
	if begin == 0 {
		u.h.Plan = nil
	}
	inherited := u.h.Plan
	for from := 0; from < len(u.docs); from += batchDocs {
		batch := u.docs[from:min(from+batchDocs, len(u.docs))]
		nth := from/batchDocs + 1
		if nth < begin { // an earlier rollback has done it; late creates of its documents are still looked for
			u.watch(batch...)
			continue
		}
		if nth > begin {
			inherited = nil
		}
		u.h.Batch = nth
		if err := u.batch(ctx, batch, from, inherited); err != nil {
			return err
		}
	}
	if err := u.await(ctx); err != nil {
		return err
	}
	u.h.State, u.h.Plan, u.h.Pages, u.h.Until = undone, nil, len(pages)+1, u.s.o.Now().Add(u.s.o.KeepPages).UnixMilli()
	return u.record(ctx, "undone")
}

// record writes the journal's record, which shows other proxies that this process makes progress. The error is errLost if another proxy has
// taken over.
func (u *undoing) record(ctx context.Context, step string) error {
	if err := u.s.fault(step); err != nil {
		return err
	}
	u.h.Beat++
	u.recorded = u.s.o.Now()
	return u.s.putHead(ctx, u.h)
}

// beat shows other proxies, during a step of many requests, that this rollback makes progress. It is called before each request. It writes
// the record only if the last one is old enough.
func (u *undoing) beat(ctx context.Context, step string) error {
	if u.s.o.Now().Sub(u.recorded) < u.s.o.Takeover/4 {
		return nil
	}
	return u.record(ctx, step)
}

// fence ends the journal, so that no further write can be noted, and reads its pages.
func (s *Store) fence(ctx context.Context, token int64) ([]*page, error) {
	var all []*page
	for {
		ended, err := s.eachPage(ctx, token, len(all)+1, func(p *page) { all = append(all, p) })
		if err != nil || ended {
			return all, err
		}
		if err := s.fault("fence"); err != nil {
			return nil, err
		}
		if _, _, err := s.put(ctx, pageID(token, len(all)+1), &page{Kind: kindEnd}, doc.Numbers{}); err != nil {
			return nil, err
		}
	}
}

// heard returns the outcomes of a journal's writes that only this process knows: they aren't stored yet. The outcomes on a page under way
// are among them, because the engine may refuse the page. j may be nil.
func (j *Journal) heard() *page {
	if j == nil {
		return &page{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	all := page{Acked: slices.Clone(j.acked), Failed: slices.Clone(j.failed)}
	if p := j.sending; p != nil {
		all.Acked, all.Failed = append(all.Acked, p.Acked...), append(all.Failed, p.Failed...)
	}
	return &all
}

// rounds is the number of tries for documents that other clients write at the same time.
const rounds = 50

// batch restores some documents. It reads each document, and writes it once, guarded by the revision that it has read. inherited is the
// plan of the proxy that undid before. That proxy's writes may have been applied, or may still arrive.
func (u *undoing) batch(ctx context.Context, docs []*document, from int, inherited []planned) error {
	all := targets(docs, from, inherited)
	todo := slices.DeleteFunc(slices.Clone(all), func(t *target) bool { return t.plan != nil && t.plan.Done })
	for range rounds {
		open, err := u.plan(ctx, todo)
		if err != nil || len(open) == 0 {
			return err
		}
		u.h.Plan = nil
		for _, t := range all {
			if t.plan != nil {
				u.h.Plan = append(u.h.Plan, *t.plan)
			}
		}
		if err := u.record(ctx, "plan"); err != nil {
			return err
		}
		if todo, err = u.write(ctx, open); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: others write the documents all the time", ErrStore)
}

// targets are the documents of a batch of which something may have to be undone, with what is planned of them.
func targets(docs []*document, from int, inherited []planned) (all []*target) {
	for i, d := range docs {
		if len(d.writes) == 0 {
			continue
		}
		t := &target{document: d, nth: from + i}
		for k := range inherited {
			if inherited[k].Doc == t.nth {
				t.plan, t.unsure = &inherited[k], true
			}
		}
		all = append(all, t)
	}
	return all
}

// plan reads the documents, and decides what each becomes. open are the documents that have to be written.
func (u *undoing) plan(ctx context.Context, todo []*target) (open []*target, err error) {
	found, err := u.fetch(ctx, todo)
	if err != nil {
		return nil, err
	}
	uuids, err := u.indices(ctx, todo)
	if err != nil {
		return nil, err
	}
	for i, t := range todo {
		writes, err := u.planOne(ctx, t, &found[i], uuids[t.index()])
		if err != nil {
			return nil, err
		}
		if writes {
			open = append(open, t)
		}
	}
	return open, nil
}

// planOne is plan for one document, as it was read. uuid is that of its index; empty: it isn't known.
func (u *undoing) planOne(ctx context.Context, t *target, f *es.Fetched, uuid string) (writes bool, err error) {
	t.cur = f.Revision
	made := t.document.in(uuid)
	missing, noIndex, created := errors.Is(f.Err, doc.ErrMissing), errors.Is(f.Err, es.ErrNoIndex), t.writes[0].Before == nil
	switch {
	case len(made.writes) == 0 && created && missing:
		return false, nil // the document that the holder had created is gone
	case len(made.writes) == 0:
		return false, u.leave(ctx, t, whyAnew)
	case noIndex && created:
		u.watch(t.document)
		return false, nil
	case noIndex:
		return false, u.leave(ctx, t, whyGone)
	case errors.Is(f.Err, es.ErrNoSource):
		return false, u.leave(ctx, t, whyNoSource)
	case f.Err != nil && !missing:
		return false, u.s.failed(t.Index, f.Err)
	case t.carriedOut():
		return false, u.done(ctx, t, t.plan.Why)
	}
	known := notesAlone
	if t.plan != nil && (t.plan.Again || t.unsure && t.cur.Numbers != t.plan.Guard) {
		known = maybeRestored
	}
	img, why := made.restored(t.cur, u.s.o.Merger, known)
	if !t.document.goesBackBy(made) {
		why = cmp.Or(why, whyAnew)
	}
	if img == nil && !t.cur.Known() {
		u.watch(t.document)
		return false, u.done(ctx, t, why)
	}
	t.img, t.plan = img, &planned{Doc: t.nth, Guard: t.cur.Numbers, Hash: hash(img), Again: known == maybeRestored, Why: why}
	return true, nil
}

// carriedOut reports whether the planned write may have been applied, and the document is as planned. After a conflict the write wasn't
// applied, unless the primary has changed since: then the engine may have tried the same write twice, and the second try conflicted.
func (t *target) carriedOut() bool {
	return t.plan != nil && hash(t.cur.Source) == t.plan.Hash && t.cur.Numbers != t.plan.Guard &&
		(t.unsure || t.cur.PrimaryTerm != t.plan.Guard.PrimaryTerm)
}

// done notes in the plan that the document needs no further write. It makes a dead letter if something is left: why says what.
func (u *undoing) done(ctx context.Context, t *target, why string) error {
	if t.plan != nil {
		t.plan.Done = true
	}
	if why != "" {
		return u.leave(ctx, t, why)
	}
	u.s.o.Events.Undid.Call("restored", 1)
	return nil
}

// watch has await look for those of the documents that a late write may still create.
func (u *undoing) watch(docs ...*document) {
	for _, d := range docs {
		if d.mayAppear() {
			u.appear = append(u.appear, d)
		}
	}
}

// leave makes a dead letter of what can't be undone.
func (u *undoing) leave(ctx context.Context, t *target, why string) error {
	first, last := t.writes[0], t.writes[len(t.writes)-1]
	if !slices.Contains(u.h.Left, t.nth) {
		u.h.Left = append(u.h.Left, t.nth)
	}
	u.s.o.Events.Undid.Call("left", 1)
	if err := u.record(ctx, "leave"); err != nil { // a proxy that has lost the rollback to another one makes no dead letter
		return err
	}
	return u.s.o.Left(ctx, &Left{Name: fmt.Sprintf("%d %d %s", u.h.Token, t.nth, u.h.Lock), Began: time.UnixMilli(u.h.Began),
		Lock: u.h.Lock, Owner: u.h.Owner, Index: t.Index, ID: t.ID, Routing: t.Routing, Tenant: last.Tenant, Rule: last.Rule,
		Why: why, Current: t.cur, After: last.After, Before: first.Before})
}

// write carries out the plan. again are the documents that other clients have written meanwhile.
func (u *undoing) write(ctx context.Context, open []*target) (again []*target, err error) {
	if err := u.s.fault("write"); err != nil {
		return nil, err
	}
	results, err := u.writeAll(ctx, open)
	if err != nil {
		return nil, err
	}
	if err := u.s.fault("written"); err != nil {
		return nil, err
	}
	for i, t := range open {
		switch r := &results[i]; {
		case r.status == http.StatusOK, r.status == http.StatusCreated:
			if err := u.done(ctx, t, t.plan.Why); err != nil {
				return nil, err
			}
		case r.status == 0: // the answer is lost: the write may have been applied
			t.unsure = true
			again = append(again, t)
		case r.status == http.StatusConflict, r.status == http.StatusNotFound && t.img == nil:
			again = append(again, t)
		case r.status == http.StatusTooManyRequests, r.status >= 500:
			return nil, u.s.own.FailureAt(t.Index, es.Answer{Status: r.status, Body: r.body})
		default:
			why := "the engine refuses the write that undoes it: " + es.Why(es.Answer{Status: r.status, Body: r.body})
			if err := u.leave(ctx, t, why); err != nil {
				return nil, err
			}
		}
	}
	return again, nil
}

// await looks for documents that late writes of the holder create, until Options.Grace is over: no guard can prevent such a write. If such
// a document appears, await deletes it. The last look comes after the grace, however long the rollback took before.
func (u *undoing) await(ctx context.Context) error {
	appear, lasts := u.appear, func() bool { return u.s.o.Now().Sub(u.fenced) < u.s.o.Grace }
	for more := len(appear) > 0 && u.s.o.Grace > 0; more; {
		if lasts() {
			if err := timer.Sleep(ctx, max(min(u.s.o.Grace/5, time.Second), time.Millisecond)); err != nil {
				return err
			}
		}
		more = lasts()
		if err := u.record(ctx, "await"); err != nil {
			return err
		}
		for some := range slices.Chunk(appear, batchDocs) {
			if err := u.lookAgain(ctx, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAgain reads documents, and deletes those that a late write of the holder has created.
func (u *undoing) lookAgain(ctx context.Context, docs []*document) error {
	var late []*target
	all := each(docs, func(d *document) *target { return &target{document: d} })
	found, err := u.fetch(ctx, all)
	if err != nil {
		return err
	}
	uuids, err := u.indices(ctx, all)
	if err != nil {
		return err
	}
	for i, t := range all {
		if f := &found[i]; f.Err == nil && t.document.in(uuids[t.index()]).isLateCreate(f.Source) {
			t.cur = f.Revision
			late = append(late, t)
		}
	}
	if len(late) == 0 {
		return nil
	}
	_, err = u.writeAll(ctx, late) // if another client has changed such a document meanwhile, it stays
	return err
}
