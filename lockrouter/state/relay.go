package state

import "slices"

// Relay holds a proxy's knowledge of the leases that one document has promised to the proxy's waiters. It decides when the proxy may hand
// the next one over without asking the document: when all holders before have certainly released. The zero value knows nothing. It is not
// safe for concurrent use. Times are ms of the proxy's own clock, which never goes back.
//
// This is safe for two reasons. A lease in the chain keeps all others from the lock until it ends, however far the document lags behind.
// And a seat is handed over while most of its lease is left, so the client gets its right end.
type Relay struct {
	lead  Hold   // whose release is enough to hand over; Token 0: nobody's that is known
	idle  bool   // the last one that was given its lease here has released, and nobody was given one since
	top   int64  // the highest token that is known to be, or to have been, somebody's
	seats []seat // promised and not handed over, in their order
	beat  int64  // of the document as it was last seen
}

type seat struct {
	hold Hold
	from int64 // when the call was sent that promised it: the lease isn't told to be longer than from then; or never
}

const never = -1 << 62

// fresh is the part of a lease after which it isn't handed over any more without asking the document, which makes it begin anew.
const fresh = 10

// NoteGrant takes note of a lease that the document gave to somebody here.
func (r *Relay) NoteGrant(h Hold) {
	if h.Token > r.top || h.Token == r.top && !r.idle {
		r.lead, r.idle = h, false
		r.reach(h.Token)
	}
}

func (r *Relay) reach(token int64) {
	r.top = token
	r.seats = slices.DeleteFunc(r.seats, func(s seat) bool { return s.hold.Token <= token })
}

// NotePromise takes note of a seat in the chain that a call has got, or made to begin anew, which was sent at the time from.
func (r *Relay) NotePromise(h Hold, from int64) {
	if h.Token <= r.top {
		return
	}
	i, found := slices.BinarySearchFunc(r.seats, h.Token, func(s seat, token int64) int { return int(max(min(s.hold.Token-token, 1), -1)) })
	if !found {
		r.seats = slices.Insert(r.seats, i, seat{})
	}
	r.seats[i] = seat{h, from}
}

// NoteDoc takes note of the document after the calls that NoteGrant and NotePromise have reported. If the answer to a call was lost, its
// seats block those behind them, until a call with an answer reports them.
func (r *Relay) NoteDoc(d *Doc, proxy string) {
	if d == nil || len(d.Holds) == 0 || d.Beat < r.beat {
		r.lead, r.idle, r.seats = Hold{}, false, nil
		if d != nil {
			r.beat = max(r.beat, d.Beat)
		}
		return
	}
	r.beat = d.Beat
	if h := d.Holds[0].Token; h > r.top { // it went on without us: somebody's lease has lapsed, or was released elsewhere
		r.lead, r.idle = Hold{}, false
		r.reach(h)
	}
	known := r.seats
	r.seats = nil
	for _, h := range d.Chain {
		if h.Token <= r.top || d.Promiser != proxy {
			continue
		}
		s := seat{h, never}
		if i := slices.IndexFunc(known, func(k seat) bool { return k.hold.Token == h.Token }); i >= 0 {
			s = known[i]
		}
		r.seats = append(r.seats, s)
	}
}

// Release takes note that an owner wants to give back the lease of a token. It returns the lease if all seats wait for this one.
func (r *Relay) Release(owner string, token int64) (Hold, bool) {
	h := r.lead
	if h.Token == 0 || h.Token != token || h.Owner != owner {
		return Hold{}, false
	}
	r.lead, r.idle = Hold{}, true
	return h, true
}

// Next hands the next lease over: its owner may be told at once.
func (r *Relay) Next(now int64) (Hold, bool) {
	if !r.idle || len(r.seats) == 0 || r.seats[0].from == never || now-r.seats[0].from > r.seats[0].hold.TTL/fresh {
		return Hold{}, false
	}
	r.lead, r.idle = r.seats[0].hold, false
	r.reach(r.lead.Token)
	return r.lead, true
}

// Leads reports whether a release that comes here hands the lease over by itself.
func (r *Relay) Leads() bool { return r.lead.Token != 0 }

// Seats is how many leases are promised and not handed over.
func (r *Relay) Seats() int { return len(r.seats) }

// Withdraw gives all seats up. The document has to be told by an Abandon of each.
func (r *Relay) Withdraw() { r.seats = nil }

// Leave gives a seat up whose waiter has left. The document has to be told by an Abandon.
func (r *Relay) Leave(rid string) {
	r.seats = slices.DeleteFunc(r.seats, func(s seat) bool { return s.hold.Rid == rid })
}
