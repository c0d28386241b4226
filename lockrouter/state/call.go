package state

// Verb is what an operation asks for.
type Verb string

// The verbs.
const (
	Acquire Verb = "acquire" // a lease: a new one, or a longer one for who has it
	Renew   Verb = "renew"
	Release Verb = "release"
	Abandon Verb = "abandon" // release whatever was given to a request whose client has left
	Leave   Verb = "leave"   // give up an entry of the queue
)

// Op is one operation. All can be repeated: what a lost answer leaves in doubt is found out by asking again.
type Op struct {
	Do    Verb   `json:"do"`
	Owner string `json:"owner"`
	Token int64  `json:"token"` // of Renew and Release
	Rid   string `json:"rid"`   // the request, of Acquire and Abandon: unique
	Path  string `json:"path"`
	Mode  Mode   `json:"mode"`
	Class Class  `json:"class"`
	Note  string `json:"note"`
	// Client identifies the client of the lease. (Anybody can make up an owner's name.) No client gets more than a share of a document.
	// Empty: no client.
	Client string `json:"client"`
	Size   int64  `json:"size"` // of Acquire and Renew: bytes that the lease takes in the document, with the note. See Measure
	TTL    int64  `json:"ttl"`  // ms; 0 in Renew: as it was
	Salt   int64  `json:"salt"` // of Acquire: a random number from 0 on, so that nobody can tell which token it gets

	// Wait has an Acquire that can't be granted put into the queue, or kept there. It must be the one of its proxy, class, path and mode
	// that has waited longest.
	Wait   bool   `json:"wait"`
	Age    int64  `json:"age"`    // ms that it has waited
	Left   int64  `json:"left"`   // ms that it will wait
	Behind Behind `json:"behind"` // who waits behind it in its proxy, in the same class, for the same

	// Chain has an Acquire that waits be promised its lease, if it is the next in the queue, and the chain isn't that long yet: see
	// Doc.Chain. Locks of a tree aren't promised, nor leases that no clock judges.
	Chain int64 `json:"chain"`
}

// Behind is who comes next.
type Behind struct {
	Count int64  `json:"count"` // 0: nobody
	Owner string `json:"owner"` // of the next one, and so on
	Rid   string `json:"rid"`
	Age   int64  `json:"age"`
	Left  int64  `json:"left"` // the longest of all
}

// Call is what is done to a document at once.
type Call struct {
	Lock  string `json:"lock"`
	Kind  Kind   `json:"kind"`
	Proxy string `json:"proxy"`
	Ops   []Op   `json:"ops"`
	// Bound is how many of the foreground may go past one of the background.
	Bound int64 `json:"bound"`
	// Grace is how many ms the first of the queue may take to take its lock before the next one may.
	Grace int64 `json:"grace"`
	// Most is how many leases a document may hold, and Bytes how many bytes they may take together. 0: no bound.
	Most  int64 `json:"most"`
	Bytes int64 `json:"bytes"`
}

// Lapse is a call that only ends the leases that are over. Nobody in the queue loses a turn by it.
func (d *Doc) Lapse() *Call {
	const day = 24 * 60 * 60 * 1000
	return &Call{Lock: d.Lock, Kind: d.Kind, Ops: []Op{}, Bound: 1 << 30, Grace: day}
}

// Clock tells the time. With Unchanged nil, times are compared: Now is that of the engine, so that all proxies mean the same by it. Else
// no time is compared, and only how long this process has seen something unchanged counts; Now then only has to grow, for tokens and for
// the order of the queue.
type Clock struct {
	Now       int64
	Slack     int64            // how much later it may be: whatever is to last is made to last that much longer
	Unchanged func(Mark) int64 // ms; 0 for what was never seen
}

// Mark is something that whoever is alive changes. It is comparable.
type Mark struct {
	Token int64 // of a lease; 0 for an entry
	Proxy string
	Class Class
	Path  string
	Mode  Mode
	Turn  bool // since when the entry could have had its lock
	Beat  int64
}

// Mark is what tells that the lease was renewed.
func (h *Hold) Mark() Mark { return Mark{Token: h.Token, Beat: h.Beat} }

// Mark is what tells that the entry was renewed.
func (e *Entry) Mark() Mark {
	return Mark{Proxy: e.Proxy, Class: e.Class, Path: e.Path, Mode: e.Mode, Beat: e.Beat}
}

// TurnMark is what tells that the entry's turn came anew.
func (e *Entry) TurnMark() Mark {
	return Mark{Proxy: e.Proxy, Class: e.Class, Path: e.Path, Mode: e.Mode, Turn: true, Beat: e.TurnBeat}
}

const (
	maxFreed = 16      // releases that can be repeated
	ofTrees  = 128     // and of a tree, of which one call may release many
	maxExact = 1 << 53 // tokens are below: a number of JSON is a float to many
	perMs    = 1024    // tokens a millisecond
	maxAhead = 1 << 38 // how far the tokens of a lock may be ahead of the clock: about three days
	leastGap = 1 << 10 // among how many tokens the next one is, at least
)

// Token is the next token after last. Tokens grow with the clock, so that a lock whose document was removed goes on with larger ones. In
// between they are random: whoever knows when a lease was given can't tell its token. The next one is among 2^28 if the lock is
// taken rarely. A lock that is taken every second has tokens that are ahead of the clock, and its next one is among 2^21: what is held for
// a short time needn't withstand as many guesses.
func Token(last, now, salt int64) int64 {
	var floor int64
	if now < maxExact/perMs {
		floor = now * perMs
	}
	ahead := max(last-floor, 0)
	return max(last+1, floor) + salt%max(leastGap, (maxAhead-ahead)/leastGap)
}
