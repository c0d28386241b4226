package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"optimist/internal/obs"
)

// Move moves letters from the folder to the store, whenever there are some, until ctx ends. Those that an earlier process has left come
// first.
func (d *Desk) Move(ctx context.Context) {
	if d.o.Folder == nil {
		return
	}
	cause := ""
	for {
		err := d.moveAll(ctx)
		switch before := cause; {
		case err != nil:
			if cause = causeOf(err); cause != before {
				d.o.Log.Warn("dead letters wait in the folder: the store doesn't take them", obs.KeyError, err.Error())
			}
		case before != "":
			cause = ""
			d.o.Log.Info("the dead letters of the folder are in the store")
		}
		again := d.wake
		var later <-chan time.Time
		if err != nil {
			later, again = time.After(d.o.Again), nil
		}
		select {
		case <-again:
		case <-later:
		case <-ctx.Done():
			return
		}
	}
}

// causeOf is which of the stores' errors an error is.
func causeOf(err error) string {
	for _, cause := range []error{ErrAway, ErrUnsure, ErrFull, ErrTaken, ErrStore} {
		if errors.Is(err, cause) {
			return cause.Error()
		}
	}
	return err.Error()
}

// maxRefused is how many letters the store may refuse before the others wait, too: it may refuse all.
const maxRefused = 16

// moveAll moves what is in the folder now. A letter that somebody replays stays until that has ended, and one that can't be read stays
// until somebody deletes it. If the store refuses a letter, the next ones still have their turn.
func (d *Desk) moveAll(ctx context.Context) (refused error) {
	var q Query
	for n := 0; ; {
		list, err := d.o.Folder.List(ctx, &q)
		if err != nil || len(list) == 0 {
			return errors.Join(refused, err)
		}
		for _, s := range list {
			if err := ctx.Err(); err != nil {
				return errors.Join(refused, err)
			}
			q.After = s.ID
			err := d.move(context.WithoutCancel(ctx), s.ID) // broken off, the letter would be doubtful; the store's timeout bounds it
			if err == nil {
				continue
			}
			if n++; !errors.Is(err, ErrStore) || errors.Is(err, ErrUnsure) || n > maxRefused {
				return err
			}
			refused = err
		}
	}
}

// move moves one letter, so that whatever ends it halfway, no two letters are left that both wait to be replayed:
//
//  1. The folder notes that the letter is leaving.
//  2. The store gets it as a doubtful one. If this arrives late, the letter is doubtful there.
//  3. The store gets it as it is, under the guard of step 2.
//  4. The folder deletes it.
//
// If the note of step 1 is found later, and the store doesn't show the letter, somebody may have replayed it from there: it is doubtful.
func (d *Desk) move(ctx context.Context, id string) error {
	d.moves.Lock()
	defer d.moves.Unlock()
	return d.moveOne(ctx, id)
}

// moveOne is move for who holds d.moves.
func (d *Desk) moveOne(ctx context.Context, id string) error {
	l, at, err := d.o.Folder.Get(ctx, id)
	switch {
	case err == nil && l.State == Damaged:
		d.tellDamaged(l)
		return nil
	case errors.Is(err, ErrNoLetter), err == nil && l.State == Replaying && !d.lapsed(l):
		return nil
	case err != nil:
		return err
	}
	before, err := d.o.Folder.Leave(id, at, true)
	switch {
	case err != nil:
		return err
	case before:
		err = d.goOn(ctx, l, nil)
	default:
		err = d.hand(ctx, l)
		if err != nil && !errors.Is(err, ErrUnsure) { // it isn't there, and won't be
			_, noted := d.o.Folder.Leave(id, at, false)
			err = errors.Join(err, noted)
		}
	}
	if err != nil {
		return err
	}
	return ignore(d.o.Folder.Delete(ctx, id, at), ErrNoLetter)
}

// tellDamaged logs, once, that a letter in the folder can't be read. d.moves is held.
func (d *Desk) tellDamaged(l *Letter) {
	if d.damaged[l.ID] != l.Detail {
		d.damaged[l.ID] = l.Detail
		d.o.Log.Error("a dead letter in the folder can't be read: it stays until it is deleted", obs.KeyFile, l.ID, obs.KeyError, l.Detail)
	}
}

// hand brings a letter to the store that was never sent there. Of an error without ErrUnsure, nothing is left there.
func (d *Desk) hand(ctx context.Context, l *Letter) error {
	first := *l
	if first.Arriving = l.State == Waiting; first.Arriving {
		first.State, first.Last = Doubtful, d.note("it is being moved from the folder of another process")
	}
	at, err := d.o.Store.Put(ctx, &first, Revision{})
	switch {
	case errors.Is(err, ErrUnsure):
		return d.goOn(ctx, l, err)
	case errors.Is(err, ErrTaken): // when it was kept, the store's answer was lost
		return nil
	case err != nil || !first.Arriving:
		return err
	}
	return d.arrive(ctx, l, at)
}

// goOn goes on with a move that was begun. just is why this process doesn't know how far it has come; nil: it was begun before, perhaps by
// an earlier process.
func (d *Desk) goOn(ctx context.Context, l *Letter, just error) error {
	there, at, err := d.o.Store.Get(ctx, l.ID)
	switch {
	case errors.Is(err, ErrNoLetter) && just != nil: // it may arrive yet
		return just
	case errors.Is(err, ErrNoLetter):
		lost := *l
		lost.State, lost.Last = Doubtful, d.note("its move to the store was broken off: it may have been replayed there")
		_, err = d.o.Store.Put(ctx, &lost, Revision{})
		return ignore(err, ErrTaken)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	case there.Arriving:
		return d.arrive(ctx, l, at)
	}
	return nil
}

// arrive is the last step in the store: the letter is there as it was. If somebody has changed it since, it stays so.
func (d *Desk) arrive(ctx context.Context, l *Letter, at Revision) error {
	_, err := d.o.Store.Put(ctx, l, at)
	switch {
	case errors.Is(err, ErrTaken), errors.Is(err, ErrNoLetter):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return nil
}

func (d *Desk) note(reason string) *Replay {
	return &Replay{At: d.o.Now().UTC().Truncate(time.Millisecond), Reason: reason}
}

// settled is place for who changes the letter. Of a letter that may be in the store already, it ends the move first.
func (d *Desk) settled(ctx context.Context, id string) (Store, *Letter, Revision, error) {
	if d.o.Folder != nil && d.o.Folder.isLeaving(id) {
		if err := d.moveOne(ctx, id); err != nil {
			return nil, nil, Revision{}, err
		}
	}
	return d.place(ctx, id)
}
