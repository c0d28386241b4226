package compat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
	"optimist/retry"
)

// result is what became of an intent. Either word says what was done, or fail says why nothing was. Or it isn't known: then err says why.
type result struct {
	in      *intent
	todo    []int64 // tokens of the leases that are still to be released: the session had them at the first look
	word    string  // what the engine's answer to such a write would say: created, updated, deleted, noop or not_found
	token   int64
	version int64
	fail    *failure
	err     error
}

// owner is the name of a lease's owner. It has the process, if the document names one, then the session, then the id of the request. If a
// session creates a lock twice, the second request is another owner, and is refused.
func owner(process, session, rid string) string {
	if process != "" {
		process = "process:" + process + " "
	}
	return process + "session:" + session + " #" + rid
}

// ownedBy reports whether the session has the lease h.
func ownedBy(h *state.Hold, session string) bool {
	i := strings.LastIndex(h.Owner, " #")
	return i > 0 && (strings.HasSuffix(h.Owner[:i], " session:"+session) || h.Owner[:i] == "session:"+session)
}

// run carries out the intents of one request. Each succeeds or fails by itself. Those of different locks run together; those of the same
// lock run one after the other, in the order of the request.
func (c *Compat) run(ctx context.Context, q *Request, list []intent) []result {
	out := make([]result, len(list))
	for from := 0; from < len(list); {
		seen := map[string]bool{}
		to := from
		for to < len(list) && !seen[list[to].id] {
			seen[list[to].id] = true
			to++
		}
		var pending []*result
		for i := from; i < to; i++ {
			list[i].client = q.Client
			out[i].in = &list[i]
			if out[i].fail = list[i].bad; out[i].fail == nil {
				pending = append(pending, &out[i])
			}
		}
		c.contend(ctx, q.Session, pending)
		from = to
	}
	return out
}

// contention bounds how often one request looks at a lock. It looks again if other clients have changed the lock after its last look, and
// once for each shared lease that it releases.
var contention = retry.Policy{MaxAttempts: 64, BaseInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}

// contend makes rounds until each result is known, or contention allows no more.
func (c *Compat) contend(ctx context.Context, session string, pending []*result) {
	err := retry.Do(ctx, contention, func(ctx context.Context, _ int) error {
		if pending = c.round(ctx, session, pending); len(pending) > 0 {
			return doc.ErrConflict
		}
		return nil
	})
	for _, r := range pending {
		switch {
		case r.word != "" || r.fail != nil || r.err != nil:
		case errors.Is(err, doc.ErrConflict):
			r.fail = refusal(r.in, nil, "other clients keep changing it")
		default:
			r.err = err
		}
	}
}

// round looks at the locks once, and asks the router for what their state allows. It returns the results that need another round.
func (c *Compat) round(ctx context.Context, session string, list []*result) (again []*result) {
	docs, err := c.look(ctx, list)
	if err != nil {
		for _, r := range list {
			r.err = err
		}
		return nil
	}
	var asks []lockrouter.Ask
	var asking []*result
	for i, r := range list {
		if op, ok := c.op(r, docs[i], session); ok {
			asks, asking = append(asks, lockrouter.Ask{ID: r.in.id, Op: op}), append(asking, r)
		}
	}
	for i, done := range c.o.Locks.Direct(ctx, c.o.Index, asks) {
		if asking[i].settle(&asks[i].Op, &done, session) {
			again = append(again, asking[i])
		}
	}
	return again
}

// look reads the documents of the locks. It leaves out the intents create and share, which are asked for in the same way whatever the
// state of the lock is: their documents are nil.
func (c *Compat) look(ctx context.Context, list []*result) ([]*state.Doc, error) {
	docs := make([]*state.Doc, len(list))
	var ids []string
	var places []int
	for i, r := range list {
		if r.in.do != create && r.in.do != share {
			ids, places = append(ids, r.in.id), append(places, i)
		}
	}
	if len(ids) == 0 {
		return docs, nil
	}
	found, err := c.o.Locks.Look(ctx, c.o.Index, ids)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		docs[i] = found[n]
	}
	return docs, nil
}

// op is the operation that carries out the intent of r on the lock d. If there is nothing to do, ok is false, and r has the answer.
func (c *Compat) op(r *result, d *state.Doc, session string) (op state.Op, ok bool) {
	in := r.in
	op = state.Op{Do: state.Acquire, Rid: c.o.Locks.Rid(), Mode: state.Exclusive, Class: state.Foreground, Note: string(in.source),
		Client: in.client, TTL: c.o.TTL.Milliseconds()}
	op.Owner = owner(processOf(gjson.Parse(in.process)), session, op.Rid)
	switch in.do {
	case share:
		op.Mode = state.Shared
	case reenter:
		if h := find(d, session, func(h *state.Hold) bool {
			return h.Mode == state.Exclusive && gjson.Get(h.Note, "process_id").Raw == in.same
		}); h != nil {
			op.Do, op.Owner, op.Token, op.Note = state.Renew, h.Owner, h.Token, ""
		}
	case unshare, remove:
		if r.todo == nil {
			r.plan(d, session, c.o.Locks.Now())
		}
		if len(r.todo) == 0 {
			return op, false
		}
		h, _ := d.Holding(r.todo[0])
		op.Do, op.Owner, op.Token = state.Release, h.Owner, h.Token
	}
	return op, true
}

// plan puts into todo the leases that the session has to release: one shared lease for unshare, all of its leases for remove. If there is
// none, or if the client names another revision than the lock has, r has the answer.
func (r *result) plan(d *state.Doc, session string, now int64) {
	in := r.in
	for d != nil {
		h := find(d, session, func(h *state.Hold) bool {
			return (in.do == remove || h.Mode == state.Shared) && (len(r.todo) == 0 || h.Token > r.todo[len(r.todo)-1])
		})
		if h == nil {
			break
		}
		r.todo = append(r.todo, h.Token)
		if in.do == unshare {
			break
		}
	}
	switch {
	case len(r.todo) == 0:
		r.setAbsent(d, session, now)
	case in.guard != 0 && !slices.Contains(r.todo, in.guard):
		r.todo, r.fail = []int64{}, conflict(in, "the lock has another _seq_no")
	case in.guard != 0:
		r.todo = []int64{in.guard}
	}
}

// find returns the session's first lease that is accepts, or nil.
func find(d *state.Doc, session string, is func(h *state.Hold) bool) *state.Hold {
	if d == nil {
		return nil
	}
	for i := range d.Holds {
		if h := &d.Holds[i]; ownedBy(h, session) && is(h) {
			return h
		}
	}
	return nil
}

// setAbsent sets the answer for a session that has no lease to release: another session has the lock, or nobody has.
func (r *result) setAbsent(d *state.Doc, session string, now int64) {
	var h *state.Hold
	if d != nil {
		for i := range d.Holds {
			if o := &d.Holds[i]; o.Until >= now && !ownedBy(o, session) {
				h = o
			}
		}
	}
	switch {
	case r.in.do == unshare:
		r.fail = &failure{404, "document_missing_exception", "[" + r.in.id + "]: document missing", nil}
	case h != nil:
		r.fail = &failure{403, lockrouter.TypeNotOwner, "[" + r.in.id + "]: " + holderText(h) + ", which isn't this session", nil}
	default:
		r.word, r.version = "not_found", 1
	}
}

// settle makes the result of what the router answered to an operation. It reports whether the lock needs another look.
func (r *result) settle(op *state.Op, t *lockrouter.AskResult, session string) (again bool) {
	in := r.in
	if t.Err != nil {
		r.err = t.Err
		return false
	}
	switch v := t.Result.Verdict; {
	case v == state.Acquired:
		r.word, r.token, r.version = "created", t.Result.Token, 1
		if n := sharers(t.Doc); in.do == share && n > 1 {
			r.word, r.version = "updated", n
		}
	case v == state.Renewed:
		r.word, r.token, r.version = "noop", t.Result.Token, 1
	case op.Do == state.Release:
		r.settleRelease(op, t, session)
		return len(r.todo) > 0
	case op.Do == state.Renew: // the lease ended after the look
		return true
	case v == state.Full, v == state.Large, v == state.Share:
		r.fail = &failure{429, lockrouter.TypeFull, "[" + in.id + "]: the lock, or this client, has as many shared leases as it may have", nil}
	default:
		h, ok := t.Doc.Conflict(op.Owner, op.Path, op.Mode)
		same := ok && in.do == reenter && ownedBy(&h, session) && gjson.Get(h.Note, "process_id").Raw == in.same
		if same {
			return true // another request of the same process got the lock after the look
		}
		why := "others wait for it"
		if ok {
			why = holderText(&h)
		}
		r.fail = refusal(in, &h, why)
	}
	return false
}

// settleRelease makes the result of what the router answered to a release. A lease that ended after the look needs no release. A lease that
// the session got after the look stays: another process or thread of the session asked for it.
func (r *result) settleRelease(op *state.Op, t *lockrouter.AskResult, session string) {
	r.todo = r.todo[1:]
	n := sharers(t.Doc)
	switch {
	case t.Result.Verdict != state.Released:
		if r.word == "" && len(r.todo) == 0 {
			r.setAbsent(t.Doc, session, t.Doc.Seen)
		}
	case r.in.do == unshare && n > 0:
		r.word, r.token, r.version = "updated", op.Token, n+1
	default:
		r.word, r.token, r.version = "deleted", op.Token, 2
	}
}

// sharers counts the leases of a shared lock.
func sharers(d *state.Doc) (n int64) {
	for i := range d.Holds {
		if d.Holds[i].Mode == state.Shared {
			n++
		}
	}
	return n
}

// conflict is the failure of a write whose document isn't as the client requires: the engine's answer is a 409.
func conflict(in *intent, why string) *failure {
	return &failure{http.StatusConflict, "version_conflict_engine_exception", "[" + in.id + "]: version conflict, " + why, nil}
}

// refusal is the failure of a request that doesn't get the lock, because h or others have it. A create gets a conflict, as from the engine.
// A script gets the answer that its own failed assertion would have caused.
func refusal(in *intent, h *state.Hold, why string) *failure {
	if in.do == create {
		return conflict(in, "document already exists (current version [1]): "+why)
	}
	cause := object{"type": lockrouter.TypeHeld, "reason": "[" + in.id + "]: " + why}
	if h != nil {
		cause["expires_at"] = instant(h.Until)
	}
	return &failure{http.StatusBadRequest, "illegal_argument_exception", "failed to execute script", object{"type": "script_exception",
		"reason": "runtime error", "script": in.script, "lang": "painless", "caused_by": cause}}
}

// holderText says who has the lease h, and until when.
func holderText(h *state.Hold) string {
	return fmt.Sprintf("held by [%s] until %s", h.Owner, instant(h.Until))
}
