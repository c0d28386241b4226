package locks_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"optimist/lockrouter/state"
)

// judge is the specification of a lock with leases, as a history of requests and answers is held against it. What the queue decides
// isn't in it: that somebody was refused is right whenever somebody else had the lock.
type judge struct {
	// timed says that leases are judged by the document's clock, which the answers tell. Else only what clients may believe by the true
	// time counts: their leases from before they asked.
	timed bool
	// ahead is how far a proxy's clock is ahead of the true time, in ms; nil: none is, and what clients believe counts, too.
	ahead []int64
	// copies says that a look may be answered by a copy that lags behind.
	copies bool
	// chains says that a lock may go from hand to hand in a proxy before its document, from which others are told, says so. Those of trees
	// never do.
	chains bool
	// lost are the owners of requests for locks that had no answer: they may have got them, and don't know.
	lost map[string]bool
}

// asked is a request for a lock.
type asked struct {
	do    string // acquire, renew, release, look
	proxy int
	lock  string // the document's
	path  string // within a tree
	mode  state.Mode
	owner string
	token int64
	ttl   int64
	try   bool  // it didn't wait
	wall  int64 // ms since 1970 when it was sent
	call  int64 // ns of the recorder's clock, as returned below
}

// told is the answer to it.
type told struct {
	status  int
	unknown bool // there was no answer, or one that says that nobody knows
	token   int64
	at      int64 // by the document's clock, with a lease
	until   int64 // its end
	waited  int64
	ends    int64 // ns: its end by what the client may count on
	wall    int64 // ms since 1970 when it came
	ret     int64
	holders []holder // of a refusal, or a look
}

type holder struct {
	owner string
	until int64
}

// held is a lease in the model's state.
type held struct {
	token, until, ends int64
	soon, maybe        int64 // the end that others may be told: of a lease that was promised, or that a request without an answer made longer
	owner, path        string
	mode               state.Mode
}

// book is the state: it is never changed, only made anew.
type book struct {
	clock  int64 // the document's is at least that
	last   int64
	leases []held
	freed  []int64
}

func (b *book) with(clock int64, change func(*book)) *book {
	n := &book{clock: max(b.clock, clock), last: b.last, leases: slices.Clone(b.leases), freed: b.freed}
	change(n)
	return n
}

func (b *book) find(token int64) int {
	return slices.IndexFunc(b.leases, func(h held) bool { return h.token == token })
}

// slack is by how many ms two processes may read the same clock apart.
const slack = 20

// least is the time that the document's clock shows at least when a request is carried out that writes.
func (j *judge) least(b *book, in *asked) int64 {
	if !j.timed {
		return 0
	}
	ahead := int64(0)
	if j.ahead != nil {
		ahead = j.ahead[in.proxy]
	}
	return max(b.clock, in.wall+ahead-slack)
}

// most is the time that it shows at most.
func (j *judge) most(out *told) int64 {
	if !j.timed {
		return math.MaxInt64
	}
	ahead := int64(0)
	for _, a := range j.ahead {
		ahead = max(ahead, a)
	}
	return out.wall + ahead + slack
}

// over reports whether a lease may have ended when a request was carried out, at the latest by the time at.
func (j *judge) over(h *held, at int64, out *told) bool {
	if j.timed && h.until >= at { // the ms in which it ends is its own
		return false
	}
	return j.ahead != nil && j.timed || h.ends <= out.ret
}

func (j *judge) step(s, input, output any) (bool, any) {
	b, in, out := s.(*book), input.(*asked), output.(*told)
	switch in.do {
	case "acquire":
		return j.acquire(b, in, out)
	case "renew":
		return j.renew(b, in, out)
	case "release":
		return j.release(b, in, out)
	}
	return j.look(b, out)
}

func (j *judge) acquire(b *book, in *asked, out *told) (bool, any) {
	switch {
	case out.status == 200: // re-entered
		i := b.find(out.token)
		if i < 0 || b.leases[i].owner != in.owner || j.timed && b.leases[i].maybe < out.at {
			return false, b
		}
		return true, b.with(out.at, func(n *book) { n.leases[i].extend(out) })
	case out.status != 201:
		return j.holds(b, in, out), b
	case out.token <= b.last:
		return false, b
	}
	var left []held
	for i := range b.leases {
		h := &b.leases[i]
		switch {
		case h.owner == in.owner || !exclude(h.path, h.mode, in.path, in.mode):
			left = append(left, *h)
		case !j.over(h, out.at, out):
			return false, b
		}
	}
	return true, b.with(out.at, func(n *book) {
		h := held{token: out.token, until: out.until, soon: out.until, maybe: out.until, ends: out.ends, owner: in.owner, path: in.path, mode: in.mode}
		if out.waited > 0 {
			h.soon, h.maybe = 0, out.until+in.ttl // a lease that was promised begins anew when the one before it is released
		}
		n.leases, n.last = append(left, h), out.token
	})
}

func exclude(aPath string, aMode state.Mode, bPath string, bMode state.Mode) bool {
	return (aMode != state.Shared || bMode != state.Shared) && state.Related(aPath, bPath)
}

func (h *held) extend(out *told) {
	// A proxy that doesn't know the time to the ms gives as much more; the next one, who knows it, doesn't.
	h.until, h.soon, h.maybe, h.ends = out.until, min(h.soon, out.until), out.until, max(out.ends, h.ends)
}

// holds reports whether somebody that a refusal names had the lock.
func (j *judge) holds(b *book, in *asked, out *told) bool {
	return j.lost[out.holders[0].owner] || slices.ContainsFunc(b.leases, func(h held) bool {
		return h.owner == out.holders[0].owner && h.owner != in.owner && exclude(h.path, h.mode, in.path, in.mode)
	})
}

func (j *judge) renew(b *book, in *asked, out *told) (bool, any) {
	i := b.find(in.token)
	switch {
	case out.unknown && i >= 0:
		return true, b.with(0, func(n *book) { n.leases[i].maybe = math.MaxInt64 })
	case out.unknown:
		return true, b
	case out.status != 200:
		return j.refused(b, in, out, i)
	case i < 0 || b.leases[i].owner != in.owner || j.timed && b.leases[i].maybe < out.at:
		return false, b
	}
	return true, b.with(out.at, func(n *book) {
		n.leases[i].extend(out)
		n.leases[i].ends = out.ends
	})
}

func (j *judge) release(b *book, in *asked, out *told) (bool, any) {
	i := b.find(in.token)
	switch {
	case out.unknown && i < 0, !out.unknown && out.status == 200 && i < 0 && slices.Contains(b.freed, in.token):
		return true, b
	case !out.unknown && out.status != 200:
		return j.refused(b, in, out, i)
	case i < 0, b.leases[i].owner != in.owner, !out.unknown && j.timed && b.leases[i].maybe < j.least(b, in):
		return out.unknown, b
	}
	return true, b.with(j.least(b, in), func(n *book) {
		n.leases = slices.Delete(n.leases, i, i+1)
		n.freed = append(slices.Clone(b.freed[max(len(b.freed)-20, 0):]), in.token)
	})
}

// refused judges an answer that says that a token is good for nothing: it must be so, and stays so.
func (j *judge) refused(b *book, in *asked, out *told, i int) (bool, any) {
	switch {
	case out.status == 403:
		return i >= 0 && b.leases[i].owner != in.owner, b
	case out.status == 404:
		return i < 0, b
	case out.status != 410:
		return false, b
	case i < 0:
		return in.token <= b.last, b
	case j.chains && b.leases[i].owner != in.owner:
		return true, b // the document doesn't say yet that the token was given to another owner
	case b.leases[i].until >= j.most(out) || (j.ahead == nil || !j.timed) && b.leases[i].ends > out.ret:
		return false, b
	}
	return true, b.with(b.leases[i].until, func(n *book) { n.leases = slices.Delete(n.leases, i, i+1) })
}

// look judges who is told to hold a lock.
func (j *judge) look(b *book, out *told) (bool, any) {
	for _, h := range out.holders {
		if !j.lost[h.owner] && !slices.ContainsFunc(b.leases, func(l held) bool {
			return l.owner == h.owner && h.until >= l.soon && h.until <= l.maybe
		}) {
			return false, b
		}
	}
	return true, b
}

func (j *judge) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return &book{} },
		Step: j.step,
		Equal: func(x, y any) bool {
			a, b := x.(*book), y.(*book)
			return a.clock == b.clock && a.last == b.last && slices.Equal(a.leases, b.leases) && slices.Equal(a.freed, b.freed)
		},
		Hash: func(x any) uint64 {
			b := x.(*book)
			return uint64(b.clock)*31 + uint64(b.last)*17 + uint64(len(b.leases))*7 + uint64(len(b.freed))
		},
	}
}

// check holds a history against the model, each lock's by itself, and says what can't be; empty if all can. That nobody is told to hold a
// lock, or that it wasn't to be had in time, is always right, as far as can be told: proxies don't show what has lapsed, and the queue
// isn't in the model.
func (j *judge) check(history []porcupine.Operation) string {
	locks := map[string][]porcupine.Operation{}
	for _, o := range history {
		in, out := o.Input.(*asked), o.Output.(*told)
		if j.always(in, out) {
			continue // it would have to be tried at every time
		}
		locks[in.lock] = append(locks[in.lock], o)
	}
	var b strings.Builder
	for lock, part := range locks {
		switch result, info := porcupine.CheckOperationsVerbose(j.model(), part, 2*time.Minute); result {
		case porcupine.Illegal:
			fmt.Fprintf(&b, "%s: no order explains what was answered\n", lock)
			j.blame(&b, part, info)
		case porcupine.Unknown:
			fmt.Fprintf(&b, "%s: whether an order explains what was answered to %d requests wasn't found out in time\n", lock, len(part))
		}
	}
	return b.String()
}

// always reports whether an answer is right whatever the state is.
func (j *judge) always(in *asked, out *told) bool {
	if in.do == "acquire" && out.status != 200 && out.status != 201 {
		return len(out.holders) == 0 || !in.try || j.chains && in.path == ""
	}
	return in.do == "look" && (len(out.holders) == 0 || j.copies || j.chains && in.path == "")
}

// blame describes the requests after which a history can't go on.
func (j *judge) blame(b *strings.Builder, part []porcupine.Operation, info porcupine.LinearizationInfo) {
	const enough = 12
	var longest []porcupine.Operation
	for _, partial := range slices.Concat(info.PartialLinearizationsOperations()...) {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	done := map[any]bool{}
	var s any = &book{}
	for i, o := range longest {
		done[o.Input] = true
		if _, s = j.step(s, o.Input, o.Output); i >= len(longest)-enough {
			fmt.Fprintf(b, "  %s\n", j.line(o))
		}
	}
	fmt.Fprintf(b, "  then %+v, and not\n", *s.(*book))
	rest := slices.DeleteFunc(slices.Clone(part), func(o porcupine.Operation) bool { return done[o.Input] })
	for _, o := range rest[:min(len(rest), enough)] {
		fmt.Fprintf(b, "  %s\n", j.line(o))
	}
}

func (j *judge) line(o porcupine.Operation) string {
	in, out := o.Input.(*asked), o.Output.(*told)
	return fmt.Sprintf("%d…%d ms: %s p%d %s %s %s token %d: %d unknown %v token %d at %d until %d ends %d holders %v", o.Call/1e6, o.Return/1e6,
		in.do, in.proxy, in.path, in.mode, in.owner, in.token, out.status, out.unknown, out.token, out.at, out.until, out.ends/1e6, out.holders)
}
