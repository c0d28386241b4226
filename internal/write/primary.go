package write

import (
	"bytes"
	"context"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/catalog"
	"optimist/internal/doc"
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

func (t *try) conflict(index string) *catalog.Conflict {
	return &catalog.Conflict{Guard: t.guard, Sent: t.sent, Answered: t.answered, Index: index, Shard: t.shard, Node: t.node}
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
	stayed := f.s.catalog.SamePrimary(ctx, f.open[0].req.asker(), d.conflict(f.open[0].doc.Index), f.cur.PrimaryTerm)
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
