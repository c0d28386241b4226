package session

import (
	"fmt"
	"testing"

	"optimist/internal/doc"
)

// Reads and views of the specification below. A read's place in the order is that of its revision.
func readOf(n int64) read {
	return read{seen: seen{numbers: num(n), order: uint64(n)}, body: &body{data: fmt.Appendf(nil, "read %d", n)}, count: 1}
}

func readInDoubt(n int64) read {
	r := readOf(n)
	r.doubt = true
	return r
}

func viewOf(n int64, sent string) *view {
	b := &body{data: []byte(sent)}
	return &view{seen: seen{numbers: num(n)}, set: true, sentBody: b, storedBody: b}
}

// mergedView is what a write left that was merged: its answer named another revision than the one that it left.
func mergedView(n int64, sent string, answer int64) *view {
	v := viewOf(n, sent)
	v.storedBody, v.answer = &body{data: []byte(sent + " and more")}, num(answer)
	return v
}

func numbersOf(n int64) *doc.Numbers { x := num(n); return &x }

func reads(r ...read) []read { return r }

// TestChoose is the specification of what a write has as its base.
func TestChoose(t *testing.T) {
	const (
		all  = ^uint64(0) // the write came after all reads
		sent = "what is sent"
	)
	doubtful := func(d decision) decision { d.doubtful = true; return d }
	ambiguous := func(d decision) decision { d.ambiguous = true; return d }
	theRead := func(i int) decision { return decision{action: takeRead, read: i} }
	theView, theSent, theGiven := decision{action: takeView}, decision{action: takeSent}, decision{action: takeGiven}
	nothing, wait := decision{}, decision{action: waitForBase}

	type rule struct {
		when string
		k    known
		r    func(*request)
		then decision
	}
	for _, group := range []struct {
		what  string
		r     request
		rules []rule
	}{
		{"a write that names nothing", request{before: all}, []rule{
			{"nothing is known", known{}, nil, nothing},
			{"there is one read", known{reads: reads(readOf(5))}, nil, theRead(0)},
			{"there are several reads", known{reads: reads(readOf(5), readOf(6))}, nil, decision{action: rankAll, read: 2}},
			{"there is an own view", known{view: viewOf(5, "mine")}, nil, theView},
			{"a read comes before the own view", known{reads: reads(readOf(5)), view: viewOf(6, "mine")}, nil, theRead(0)},
			{"a read comes before those who wait", known{reads: reads(readOf(5)), othersWait: true}, nil, theRead(0)},

			{"the view is reserved", known{inFlight: 1}, nil, wait},
			{"a read is reserved, and so outstanding", known{inFlight: 1, readsInFlight: 1, view: viewOf(5, "mine")}, nil, wait},
			{"a write in flight reserves neither", known{inFlight: 1, view: viewOf(5, "mine")}, nil, theView},
			{"others wait for the view", known{view: viewOf(5, "mine"), othersWait: true}, nil, wait},

			{"a read was made while it waited, and it can wait on", known{reads: reads(readOf(5)), inFlight: 1}, func(r *request) { r.before = 4 }, wait},
			{"a read was made while it waited, and the view is there",
				known{reads: reads(readOf(5)), view: viewOf(4, "mine")}, func(r *request) { r.before = 4 }, theView},
			{"a read was made while it waited, and there is nothing else", known{reads: reads(readOf(5))}, func(r *request) { r.before = 4 }, theRead(0)},
			{"one of two was made while it waited", known{reads: reads(readOf(4), readOf(5))}, func(r *request) { r.before = 4 }, theRead(0)},
		}},
		{"a write whose first try was acknowledged", request{before: all, sent: []byte(sent), repeat: unheardRepeat}, []rule{
			{"nothing else is known", known{}, nil, theSent},
			{"the view is what is sent", known{view: viewOf(5, sent)}, nil, theView},
			{"the view is another client's", known{view: viewOf(5, "other")}, nil, theSent},
			{"others have reads, which may be its own", known{reads: reads(readOf(5))}, nil, ambiguous(theSent)},
			{"others have reads, and it has waited for its first try", known{reads: reads(readOf(5))},
				func(r *request) { r.repeat = awaitedRepeat }, theSent},
			{"others wait", known{othersWait: true}, nil, theSent},
			{"it names numbers that were read", known{reads: reads(readOf(5))}, func(r *request) { r.given = num(5) }, theSent},
		}},
		{"a write of bytes that the session sent before", request{before: all, sent: []byte(sent), repeat: sameSent}, []rule{
			{"a read is there, so it is an equal change", known{reads: reads(readOf(5))}, nil, theRead(0)},
			{"only the view of another client is there", known{view: viewOf(5, "other")}, nil, theSent},
			{"the view is what is sent", known{view: viewOf(5, sent)}, nil, theView},
		}},
		{"a write whose first try is in doubt", request{before: all, sent: []byte(sent), doubt: numbersOf(5)}, []rule{
			{"its read was given back", known{reads: reads(readInDoubt(5))}, nil, doubtful(theRead(0))},
			{"others have read since", known{reads: reads(readInDoubt(5), readOf(6))}, nil, doubtful(ambiguous(theRead(0)))},
			{"its view was given back", known{view: &view{seen: seen{numbers: num(5), doubt: true}, set: true}}, nil, doubtful(theView)},
			{"its base is gone", known{reads: reads(readOf(6))}, nil, theRead(0)},
			{"the revision was read again by one client", known{reads: reads(readOf(5))}, nil, theRead(0)},
		}},
		{"a write that names its revision, in a session of many", request{given: num(5), served: true}, []rule{
			{"the session knows nothing", known{}, nil, theGiven},
			{"it was read", known{reads: reads(readOf(4), readOf(5))}, nil, theRead(1)},
			{"only others were read", known{reads: reads(readOf(4), readOf(6))}, nil, theGiven},
			{"it was written as it is there", known{view: viewOf(5, "mine")}, nil, theView},
			{"something else was sent than is there", known{view: mergedView(5, "mine", 5)}, nil, theGiven},
			{"the answer to a merged write named it", known{view: mergedView(7, "mine", 5)}, nil, theGiven},
			{"a write is in flight: it doesn't wait", known{inFlight: 1}, nil, theGiven},
			{"others wait: it doesn't", known{view: viewOf(5, "mine"), othersWait: true}, nil, theView},
			{"the view is of a delete", known{view: &view{set: true, absent: true}}, nil, theGiven},
		}},
		{"numbers that may be a revision's or an answer's", request{given: num(5), ofAnswer: true}, []rule{
			{"they were read, maybe by another client", known{reads: reads(readOf(5))}, nil, theGiven},
			{"they are known to be those of a revision", known{reads: reads(readOf(5))}, func(r *request) { r.served = true }, theRead(0)},
		}},
		{"a write that names numbers, in a named session", request{given: num(5), named: true, sent: []byte(sent)}, []rule{
			{"an answer named them for what it sent", known{view: mergedView(7, "mine", 5)}, nil, theView},
			{"what it sent was merged, and they are those of the result", known{view: mergedView(5, "mine", 4)}, nil, theGiven},
			{"it wrote from them, and sends the same again", known{view: viewOf(7, sent)}, func(r *request) { r.spent = true }, theView},
			{"it wrote from them, and sends something else", known{view: viewOf(7, "mine")}, func(r *request) { r.spent = true }, theGiven},
			{"it read them since its answer named them", known{reads: reads(readOf(5)), view: mergedView(7, "mine", 5)}, nil, theRead(0)},
		}},
		{"a write of a thread of work that names numbers", request{given: num(5), named: true, thread: true}, []rule{
			{"they were read", known{reads: reads(readOf(5)), inFlight: 1, othersWait: true}, nil, theRead(0)},
			{"its write is in flight", known{inFlight: 1}, nil, wait},
			{"its write is in flight, and an answer named them", known{inFlight: 1, view: viewOf(5, "mine")}, nil, wait},
			{"others wait", known{view: viewOf(5, "mine"), othersWait: true}, nil, wait},
			{"nothing is in flight", known{}, nil, theGiven},
		}},
	} {
		for _, rule := range group.rules {
			t.Run(group.what+"/"+rule.when, func(t *testing.T) {
				r := group.r
				if rule.r != nil {
					rule.r(&r)
				}
				if got := choose(rule.k, r); got != rule.then {
					t.Errorf("%+v, want %+v", got, rule.then)
				}
			})
		}
	}
}
