package catalog

import (
	"context"
	"errors"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/session"
)

// shardAt is a shard as a node sees it.
type shardAt struct {
	shard es.Shard
	node  string
	realm session.Credentials
}

// primary is the term under which a node sends writes to a shard. Who has its turn looks at it.
type primary struct {
	turn
	term    int64
	since   time.Time // when the term was first known
	askedAt time.Time // when it was last asked for
	refused time.Time // until when there is no use in asking
}

// quickest is less than the shortest time in which a primary was seen to die, to be replaced, and the write to be answered: 13 ms.
const quickest = 10 * time.Millisecond

// Conflict is a guarded write that the engine answered with a conflict, or several of one change.
type Conflict struct {
	Guard          doc.Numbers // zero for a create
	Sent, Answered time.Time   // of the first, and of the last
	Index          string      // concrete
	Shard          string      // as the answer names it; "" where it doesn't
	Node           string      // which node was asked
	Term           int64       // of a write of the document that was acknowledged before; 0: none is known
}

// Quick reports whether the answer came sooner than a change of primary takes.
func (f *Conflict) Quick() bool { return f.Answered.Sub(f.Sent) < quickest }

// quick is Quick, of a conflict after which nothing speaks of another primary. current is the document's term now; 0: there is none.
func (f *Conflict) quick(current int64) bool {
	return f.Quick() && (!f.Guard.Known() || current == 0 || current == f.Guard.PrimaryTerm)
}

// SamePrimary reports whether the shard had one and the same primary while the write was out. The engine itself sends a write
// again after a change of primary, and may conflict with its own first try; under one primary, a conflict proves that the write
// wasn't applied.
//
// SamePrimary asks the node to which the write was sent: that node tries again by itself, but only once it knows of another primary.
// Terms only grow, so equal terms before and after prove it. The guard's own term is one from before. So is that of a write that was
// acknowledged before, if the document still has this term: the terms of an index that was made anew begin at 1 again, and those of the
// index before it say nothing. Without a proof the result is false. current is the term of the document as it is now; 0: there is none. If
// optimist may not ask for the term, the time that the write took decides: a change of primary takes a while.
func (c *Catalog) SamePrimary(ctx context.Context, asker Asker, f *Conflict, current int64) bool {
	key := shardAt{es.Shard{Index: f.Index, Number: f.Shard}, f.Node, asker.Realm}
	p := c.primaries.GetOrAdd(asker.network(), key, &primary{turn: newTurn()})
	began := time.Now()
	ctx = context.WithoutCancel(ctx) // also for a client that has left: the write is in doubt
	if p.take(ctx, &asker) != nil {
		return false
	}
	defer p.leave()
	bound := asker.patience()
	if time.Now().Before(p.refused) {
		return f.quick(current)
	}
	if p.askedAt.Before(f.Answered) {
		if p.failure.Load().counts(began, bound) {
			return false
		}
		ctx, cancel := detached(ctx, bound)
		defer cancel()
		switch err := c.askTerm(ctx, asker, p, key); {
		case err == nil:
		case errors.Is(err, es.ErrNoTerm):
			return f.quick(current)
		case es.IsAnswer(err):
			p.refused = time.Now().Add(refusalAge)
			return f.quick(current)
		default:
			p.failure.Store(&failure{time.Now(), bound, err})
			return false
		}
	}
	if !p.since.After(f.Sent) {
		return true
	}
	before := int64(1) // there was never another
	if f.Guard.Known() {
		before = f.Guard.PrimaryTerm // one that the shard never had, of a client's own making, was no document's
	}
	return p.term <= before || p.term == f.Term && current == f.Term
}

// askTerm renews what is known of the shard's primary. The caller has the turn.
func (c *Catalog) askTerm(ctx context.Context, asker Asker, p *primary, at shardAt) error {
	began := time.Now()
	term, err := c.Engine.PrimaryTerm(ctx, c.asker(asker), at.shard, at.node)
	if err != nil {
		return err
	}
	if term != p.term {
		p.term, p.since = term, time.Now()
	}
	p.askedAt = began
	return nil
}
