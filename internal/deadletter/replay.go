package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Result is what came of a replay.
type Result struct {
	ID string `json:"id"`
	// Result is one of the results.
	Result  string `json:"result"`
	Status  int    `json:"status,omitempty"`  // of the answer to the write; 0: there was none
	Outcome string `json:"outcome,omitempty"` // as in the Optimist-Outcome field
	Reason  string `json:"reason,omitempty"`
}

// The results of replays.
const (
	Replayed = "replayed" // the write is acknowledged, and the letter is gone
	Refused  = "refused"  // nothing was written; the letter waits
	Unsure   = "doubtful" // nobody knows whether it was written; the letter is kept as doubtful
	Busy     = "busy"     // somebody else replays it, or has just done so
	Missing  = "missing"  // there is no such letter
	Skipped  = "skipped"  // the letter is doubtful or unchecked, and nobody said that it may be replayed all the same
)

// Written is what came of making a letter's write again.
type Written struct {
	Done    bool // the engine has acknowledged it
	Status  int
	Outcome string
	Reason  string
	Unknown bool // it may have been written
}

// Make makes a letter's write again, through rules and guards.
type Make func(ctx context.Context, l *Letter) Written

// Allow says which letters may be replayed that aren't otherwise.
type Allow struct {
	Doubtful  bool // it may have been written already
	Unchecked bool // nobody has checked that its client may write it
}

// Replay makes a letter's write again, and deletes the letter once the write is acknowledged. First it notes the replay in the letter,
// under the letter's revision: if two replay a letter at once, only one of them goes on. If this process ends before the result is noted,
// the letter is doubtful. An error says that nothing was done.
func (d *Desk) Replay(ctx context.Context, id string, allow Allow, perform Make) (*Result, error) {
	c, done, err := d.claim(ctx, id, allow)
	switch {
	case err != nil:
		return nil, err
	case done == nil:
		written := perform(ctx, c.before)
		done = d.settle(context.WithoutCancel(ctx), c, &written)
	}
	d.o.Replayed.Call(done.Result)
	return done, nil
}

// claimed is a letter that this process replays.
type claimed struct {
	*Letter
	before *Letter // as it was
	store  Store
	at     Revision
}

// claim notes in the letter that it is replayed. done is the result where there is nothing to do. The letter isn't moved meanwhile: its
// copy would stay.
func (d *Desk) claim(ctx context.Context, id string, allow Allow) (c *claimed, done *Result, err error) {
	d.moves.Lock()
	defer d.moves.Unlock()
	store, l, at, err := d.settled(ctx, id)
	switch {
	case errors.Is(err, ErrNoLetter):
		return nil, &Result{ID: id, Result: Missing, Reason: err.Error()}, nil
	case err != nil:
		return nil, nil, err
	}
	switch l = d.judged(l); {
	case l.State == Replaying:
		return nil, &Result{ID: id, Result: Busy, Reason: "it is being replayed since " + l.Last.At.Format(time.RFC3339)}, nil
	case l.State == Damaged:
		return nil, &Result{ID: id, Result: Skipped, Reason: "it can't be read, only deleted (damaged): " + l.Detail}, nil
	case l.State == Doubtful && !allow.Doubtful:
		return nil, &Result{ID: id, Result: Skipped,
			Reason: "it may have been written already (doubtful): look at the document, then allow it with --doubtful"}, nil
	case !l.Checked && !allow.Unchecked:
		return nil, &Result{ID: id, Result: Skipped,
			Reason: "the engine hasn't said that its client may write this (unchecked): look at the letter, then allow it with --unchecked"}, nil
	}
	now := *l
	now.State, now.Replays, now.Last, now.Arriving = Replaying, l.Replays+1, d.note(""), false
	at, err = store.Put(ctx, &now, at)
	switch {
	case errors.Is(err, ErrTaken), errors.Is(err, ErrNoLetter):
		return nil, &Result{ID: id, Result: Busy, Reason: ErrTaken.Error()}, nil
	case err != nil:
		return nil, nil, err
	}
	return &claimed{Letter: &now, before: l, store: store, at: at}, nil, nil
}

// settle notes what came of a replay. If that fails, the letter is as replaying as before, and becomes doubtful.
func (d *Desk) settle(ctx context.Context, c *claimed, w *Written) *Result {
	r := &Result{ID: c.ID, Status: w.Status, Outcome: w.Outcome, Reason: w.Reason}
	var err error
	switch {
	case w.Unknown:
		r.Result = Unsure
	case w.Done:
		r.Result = Replayed
		err = ignore(c.store.Delete(ctx, c.ID, c.at), ErrNoLetter)
	default:
		r.Result = Refused
	}
	if r.Result != Replayed {
		after := *c.Letter
		after.State = Waiting
		if r.Result == Unsure {
			after.State = Doubtful
		}
		last := *c.Last
		last.Status, last.Reason = w.Status, w.Reason
		after.Last = &last
		_, err = c.store.Put(ctx, &after, c.at)
	}
	if err != nil {
		r.Reason = fmt.Sprintf("%s (what came of it couldn't be noted: %v; the letter is doubtful soon)", r.Reason, err)
	}
	return r
}
