package write

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/upstream"
)

// try is a write of ours that a conflict answered, or several of one flight: what tells whether it was applied all the same.
type try struct {
	guard          doc.Numbers // zero for a create
	version        int64       // of the revision that it was guarded by; 0: none, or not known
	body           []byte
	sent, answered time.Time
	node, shard    string // which node was asked, and which shard it named in the conflict, if that was in JSON
}

// conflicted takes note of the engine's answer. Errors are served whole, whatever filter_path says.
func (t *try) conflicted(res *upstream.Response) {
	t.answered, t.node = time.Now(), res.Node
	t.shard = gjson.GetBytes(res.Payload, "error.shard").String()
}

// othersWrote reports whether the revision just read shows by itself that the last try wasn't applied: one write has been made since the
// guard, and it left something else.
func (f *flight) othersWrote() bool {
	t := &f.try
	return (t.version > 0 || !t.guard.Known()) && f.cur.Version == t.version+1 && !f.open[0].rewritten() &&
		!bytes.Equal(bytes.TrimSpace(f.cur.Source), bytes.TrimSpace(t.body))
}

// doubtful reports whether a conflict may have been one with a try of the flight's own.
func (f *flight) doubtful() bool { return !f.try.answered.IsZero() || !f.doubt.answered.IsZero() }

// primaryStayed reports whether the conflicts of which that isn't known yet were conflicts with others: if so they are dispelled, else all
// open changes may have been applied.
func (f *flight) primaryStayed(ctx context.Context) bool {
	d := &f.doubt
	switch {
	case d.answered.IsZero():
		*d = f.try
	case !f.try.answered.IsZero():
		d.answered, d.node, d.shard = f.try.answered, f.try.node, f.try.shard
	}
	f.try = try{}
	if d.answered.IsZero() {
		return true
	}
	stayed := f.s.gates.primaryStayed(ctx, f.open[0], d, f.cur.PrimaryTerm)
	for _, changes := range [2][]*change{f.open, f.alone} {
		for _, c := range changes {
			c.lost = c.lost || !stayed
		}
	}
	*d = try{}
	return stayed
}

// settleDoubt is for when a change is refused, or trying ends: a conflict is the answer only if it was one with others.
func (f *flight) settleDoubt(ctx context.Context) {
	if len(f.open) > 0 && f.doubtful() {
		f.primaryStayed(ctx)
	}
}

// quickest is in how short a time no primary was seen to die, be replaced, and answer what had been asked of it: 13 ms is the shortest.
const quickest = 10 * time.Millisecond

// shardAt is a shard as a node sees it.
type shardAt struct {
	shard es.Shard
	node  string
}

// primary is the term under which a node sends writes to a shard. Its mutex makes many that are in doubt ask once.
type primary struct {
	mu    sync.Mutex
	term  int64
	since time.Time // when it was first known to be that
	asked time.Time // when it was last asked for
	never time.Time // until when there is no use in asking
}

// primaryStayed reports whether the shard had one and the same primary while the tries were out. It is asked of the node that was to
// write: that node tries again by itself, and only once it knows of another primary. Terms only grow, so that equal ones before and
// after prove it; the guard's own is one from before. What isn't proven is false. now is the term of the document as it is.
//
// Where the term may not be asked for, the time that the tries took decides: a change of primary takes a while.
func (g *gates) primaryStayed(ctx context.Context, c *change, t *try, now int64) bool {
	p := g.primary(shardAt{es.Shard{Index: c.doc.Index, Number: t.shard}, t.node})
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.never) {
		return t.quick(now)
	}
	if p.asked.Before(t.answered) {
		if err := g.ask(ctx, c, p, t); err != nil {
			switch {
			case errors.Is(err, es.ErrNoTerm):
			case es.Answered(err):
				p.never = time.Now().Add(gateRefused)
			default:
				return false
			}
			return t.quick(now)
		}
	}
	switch {
	case !p.since.After(t.sent):
		return true
	case t.guard.Known():
		return p.term <= t.guard.PrimaryTerm // one that the shard never had, of a client's own making, was no document's
	}
	return p.term == 1 // there was never another
}

func (t *try) quick(now int64) bool {
	return t.answered.Sub(t.sent) < quickest && (!t.guard.Known() || now == 0 || now == t.guard.PrimaryTerm)
}

// ask renews what is known of the shard's primary. p is locked.
func (g *gates) ask(ctx context.Context, c *change, p *primary, t *try) error {
	ctx, cancel := asking(ctx)
	defer cancel()
	who := c.req.Caller
	if g.ownAuth {
		who = es.Caller{Own: true}
	}
	began := time.Now()
	term, err := g.engine.PrimaryTerm(ctx, who, es.Shard{Index: c.doc.Index, Number: t.shard}, t.node)
	if err != nil {
		return err
	}
	if term != p.term {
		p.term, p.since = term, time.Now()
	}
	p.asked = began
	return nil
}

func (g *gates) primary(s shardAt) *primary {
	if p, ok := g.terms.Get(s); ok {
		return p
	}
	p := &primary{}
	if before, found, _ := g.terms.PeekOrAdd(s, p); found {
		return before
	}
	return p
}
