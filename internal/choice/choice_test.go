package choice

import (
	"testing"

	"optimist/internal/doc"
)

func num(n int64) doc.Numbers { return doc.Numbers{SeqNo: n, PrimaryTerm: 1} }

// Reads and views of the specification below. A read's place in the order is that of its revision.
func readOf(n int64) Read { return Read{Numbers: num(n), Order: uint64(n)} }

func readInDoubt(n int64) Read {
	r := readOf(n)
	r.Doubt = true
	return r
}

func viewOf(n int64, sent string) *View {
	return &View{Numbers: num(n), Sent: []byte(sent), Stored: true}
}

// mergedView is what a write left that was merged: its answer named another revision than the one that it left.
func mergedView(n int64, sent string, answer int64) *View {
	v := viewOf(n, sent)
	v.Stored, v.Answer = false, num(answer)
	return v
}

func numbersOf(n int64) *doc.Numbers { x := num(n); return &x }

func reads(r ...Read) []Read { return r }

// TestChoose is the specification of what a write has as its base.
func TestChoose(t *testing.T) {
	const (
		all  = ^uint64(0) // the write came after all reads
		sent = "what is sent"
	)
	doubtful := func(d Decision) Decision { d.Doubtful = true; return d }
	ambiguous := func(d Decision) Decision { d.Ambiguous = true; return d }
	theRead := func(i int) Decision { return Decision{Action: TakeRead, Read: i} }
	theView, theSent, theGiven := Decision{Action: TakeView}, Decision{Action: TakeSent}, Decision{Action: TakeExplicit}
	nothing, wait := Decision{}, Decision{Action: WaitForBase}

	type rule struct {
		when string
		k    Input
		r    func(*Request)
		then Decision
	}
	for _, group := range []struct {
		what  string
		r     Request
		rules []rule
	}{
		{"a write that names nothing", Request{Before: all}, []rule{
			{"nothing is known", Input{}, nil, nothing},
			{"there is one read", Input{Reads: reads(readOf(5))}, nil, theRead(0)},
			{"there are several reads", Input{Reads: reads(readOf(5), readOf(6))}, nil, Decision{Action: RankAll, Read: 2}},
			{"there is an own view", Input{View: viewOf(5, "mine")}, nil, theView},
			{"a read comes before the own view", Input{Reads: reads(readOf(5)), View: viewOf(6, "mine")}, nil, theRead(0)},
			{"a delete's client has seen a document", Input{Reads: reads(Read{Order: 3}), View: &View{Numbers: num(5), Order: 4}}, nil, theView},
			{"it was looked for again since", Input{Reads: reads(Read{Order: 5}), View: &View{Numbers: num(5), Order: 4}}, nil, theRead(0)},
			{"a write that isn't a delete may make it", Input{Reads: reads(Read{Order: 3}), View: &View{Numbers: num(5), Order: 4}},
				func(r *Request) { r.Sent = []byte(sent) }, theRead(0)},
			{"a named session knows what it found", Input{Reads: reads(Read{Order: 3}), View: &View{Numbers: num(5), Order: 4}},
				func(r *Request) { r.Named = true }, theRead(0)},
			{"a read comes before those who wait", Input{Reads: reads(readOf(5)), OthersWait: true}, nil, theRead(0)},

			{"the view is reserved", Input{InFlight: true}, nil, wait},
			{"a read is reserved, and so outstanding", Input{InFlight: true, ReadsOfEarlier: true, View: viewOf(5, "mine")}, nil, wait},
			{"a write in flight reserves neither", Input{InFlight: true, View: viewOf(5, "mine")}, nil, theView},
			{"others wait for the view", Input{View: viewOf(5, "mine"), OthersWait: true}, nil, wait},

			{"a read was made while it waited, and it can wait on", Input{Reads: reads(readOf(5)), InFlight: true}, func(r *Request) { r.Before = 4 }, wait},
			{"a read was made while it waited, and the view is there",
				Input{Reads: reads(readOf(5)), View: viewOf(4, "mine")}, func(r *Request) { r.Before = 4 }, theView},
			{"a read was made while it waited, and there is nothing else", Input{Reads: reads(readOf(5))}, func(r *Request) { r.Before = 4 }, theRead(0)},
			{"one of two was made while it waited", Input{Reads: reads(readOf(4), readOf(5))}, func(r *Request) { r.Before = 4 }, theRead(0)},
		}},
		{"a write whose first try was acknowledged", Request{Before: all, Sent: []byte(sent), Repeat: UnheardRepeat}, []rule{
			{"nothing else is known", Input{}, nil, theSent},
			{"the view is what is sent", Input{View: viewOf(5, sent)}, nil, theView},
			{"the view is another client's", Input{View: viewOf(5, "other")}, nil, theSent},
			{"others have reads, which may be its own", Input{Reads: reads(readOf(5))}, nil, ambiguous(theSent)},
			{"others have reads, and it has waited for its first try", Input{Reads: reads(readOf(5))},
				func(r *Request) { r.Repeat = AwaitedRepeat }, theSent},
			{"others wait", Input{OthersWait: true}, nil, theSent},
			{"it names numbers that were read", Input{Reads: reads(readOf(5))}, func(r *Request) { r.Explicit = num(5) }, theSent},
		}},
		{"a write of bytes that the session sent before", Request{Before: all, Sent: []byte(sent), Repeat: SameSent}, []rule{
			{"a read is there, so it is an equal change", Input{Reads: reads(readOf(5))}, nil, theRead(0)},
			{"only the view of another client is there", Input{View: viewOf(5, "other"), Past: true, Shared: true}, nil, ambiguous(theSent)},
			{"nothing shows that there are others, so it sets the document back", Input{View: viewOf(5, "other")}, nil, theView},
			{"the view is what is sent", Input{View: viewOf(5, sent)}, nil, theView},
		}},
		{"a write whose first try is in doubt", Request{Before: all, Sent: []byte(sent), Doubt: numbersOf(5)}, []rule{
			{"its read was given back", Input{Reads: reads(readInDoubt(5))}, nil, doubtful(theRead(0))},
			{"others have read since", Input{Reads: reads(readInDoubt(5), readOf(6))}, nil, doubtful(ambiguous(theRead(0)))},
			{"its view was given back", Input{View: &View{Numbers: num(5), Doubt: true}}, nil, doubtful(theView)},
			{"its base is gone", Input{Reads: reads(readOf(6))}, nil, theRead(0)},
			{"the revision was read again by one client", Input{Reads: reads(readOf(5))}, nil, theRead(0)},
		}},
		{"a write that names its revision, in a session of many", Request{Explicit: num(5), Served: true}, []rule{
			{"the session knows nothing", Input{}, nil, theGiven},
			{"it was read", Input{Reads: reads(readOf(4), readOf(5))}, nil, theRead(1)},
			{"only others were read", Input{Reads: reads(readOf(4), readOf(6))}, nil, theGiven},
			{"it was written as it is there", Input{View: viewOf(5, "mine")}, nil, theView},
			{"something else was sent than is there", Input{View: mergedView(5, "mine", 5)}, nil, theGiven},
			{"the answer to a merged write named it", Input{View: mergedView(7, "mine", 5)}, nil, theGiven},
			{"a write is in flight: it doesn't wait", Input{InFlight: true}, nil, theGiven},
			{"others wait: it doesn't", Input{View: viewOf(5, "mine"), OthersWait: true}, nil, theView},
			{"the view is of a delete", Input{View: &View{Absent: true}}, nil, theGiven},
		}},
		{"numbers that may be a revision's or an answer's", Request{Explicit: num(5), OfAnswer: true}, []rule{
			{"nobody has read them", Input{Reads: reads(readOf(6))}, nil, theGiven},
			{"they were read, maybe by another client", Input{Reads: reads(readOf(5))}, nil, ambiguous(theRead(0))},
			{"they are known to be those of a revision", Input{Reads: reads(readOf(5))}, func(r *Request) { r.Served = true }, theRead(0)},
		}},
		{"a write that names numbers, in a named session", Request{Explicit: num(5), Named: true, Sent: []byte(sent)}, []rule{
			{"an answer named them for what it sent", Input{View: mergedView(7, "mine", 5)}, nil, theView},
			{"what it sent was merged, and they are those of the result", Input{View: mergedView(5, "mine", 4)}, nil, theGiven},
			{"it wrote from them, and sends the same again", Input{View: viewOf(7, sent)}, func(r *Request) { r.Spent = true }, theView},
			{"it wrote from them, and sends something else", Input{View: viewOf(7, "mine")}, func(r *Request) { r.Spent = true }, theGiven},
			{"it read them since its answer named them", Input{Reads: reads(readOf(5)), View: mergedView(7, "mine", 5)}, nil, theRead(0)},
		}},
		{"a write of a thread of work that names numbers", Request{Explicit: num(5), Named: true, Thread: true}, []rule{
			{"they were read", Input{Reads: reads(readOf(5)), InFlight: true, OthersWait: true}, nil, theRead(0)},
			{"its write is in flight", Input{InFlight: true}, nil, wait},
			{"its write is in flight, and an answer named them", Input{InFlight: true, View: viewOf(5, "mine")}, nil, wait},
			{"others wait", Input{View: viewOf(5, "mine"), OthersWait: true}, nil, wait},
			{"nothing is in flight", Input{}, nil, theGiven},
		}},
	} {
		for _, rule := range group.rules {
			t.Run(group.what+"/"+rule.when, func(t *testing.T) {
				r := group.r
				if rule.r != nil {
					rule.r(&r)
				}
				if got := Choose(&rule.k, &r); got != rule.then {
					t.Errorf("%+v, want %+v", got, rule.then)
				}
			})
		}
	}
}
