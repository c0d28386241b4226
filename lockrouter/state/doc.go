// Package state is the content of a lock document, and how the operations of a call change it: which owner may have a lock, which
// one is next, and with which token.
//
// It does no I/O and reads no clock: the same document, call and clock give the same result. It is the model that the engine's script
// follows line by line, and the code that runs where the engine has no scripts.
package state

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Kind says what a lock document stands for.
type Kind string

// The kinds. A document of the kind Tree holds all locks of one tree, told apart by their paths; the others hold one lock, whose path is
// empty.
const (
	Global   Kind = "global"
	Document Kind = "doc"
	Tree     Kind = "tree"
)

// Class is who goes first.
type Class string

// The classes.
const (
	Foreground Class = "foreground"
	Background Class = "background"
)

// Mode is who may hold a lock together.
type Mode string

// The modes. Shared ones are for readers: they go with each other, never with an exclusive one.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
)

// Doc is a lock document. The zero value is one that isn't there yet. Times are in ms since 1970 by the document's own clock, which never
// goes back: see Clock.
type Doc struct {
	Lock string `json:"lock"` // the lock's path, as users name it; of a tree, that of its root
	Kind Kind   `json:"kind"`
	Seen int64  `json:"seen"` // when it was last written
	Last int64  `json:"last"` // the last token that was given
	Beat int64  `json:"beat"` // counts writes: what was written by the same one has the same beat

	Owners []string `json:"owners,omitempty"` // of Holds, for searches; nil if nobody holds anything
	Since  int64    `json:"since,omitempty"`  // the oldest of Holds, for searches

	Holds []Hold  `json:"holds"` // leases, in the order in which they were given; those that have lapsed stay until the next call
	Queue []Entry `json:"queue"` // who waits
	Freed []int64 `json:"freed"` // the tokens that were released last, so that a release can be repeated

	// Chain are leases that are promised to waiters of one proxy, Promiser, in their order: each waiter has its lease once all leases
	// before it have been released. The proxy may hand them over by itself. While nobody holds the lock, there are no promises.
	Chain    []Hold `json:"chain,omitempty"`
	Promiser string `json:"promiser,omitempty"`

	Lapsed  []Hold   `json:"lapsed"` // leases that the last call found lapsed and took away
	Results []Result `json:"said"`   // what the last call came to, by operation
}

// Hold is a lease.
type Hold struct {
	Owner string `json:"owner"`
	Token int64  `json:"token"`
	Path  string `json:"path"` // within a tree: see Path
	Mode  Mode   `json:"mode"`
	Since int64  `json:"since"`
	Until int64  `json:"until"`
	TTL   int64  `json:"ttl"`  // ms from the last renewal to Until
	Beat  int64  `json:"beat"` // of the document when the lease was given or renewed
	Rid   string `json:"rid"`  // the request that it was given to
	Note  string `json:"note"`
	// Client is who asked, as Op.Client; Size is what the lease takes, as Op.Size. Leases of before there were these have neither.
	Client string `json:"client,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// Entry is a place in the queue. There is one for each proxy, class, path and mode; the proxy keeps the order of those who wait behind
// it.
type Entry struct {
	Proxy     string `json:"proxy"`
	Class     Class  `json:"class"`
	Path      string `json:"path"`
	Mode      Mode   `json:"mode"`
	Owner     string `json:"owner"`  // of the one who has waited longest
	Rid       string `json:"rid"`    // its request
	Since     int64  `json:"since"`  // when it came
	Count     int64  `json:"count"`  // how many wait, as far as the proxy has said
	Left      int64  `json:"left"`   // ms until the last of them stops waiting, from the entry's last renewal
	Until     int64  `json:"until"`  // that, by the document's clock: nobody waits here any more
	Beat      int64  `json:"beat"`   // of the document when the entry was made or renewed
	Passed    int64  `json:"passed"` // how many of the foreground went past, where the class is Background
	TurnSince int64  `json:"called"` // since when it could have its lock; 0 if it can't
	TurnBeat  int64  `json:"bell"`   // the document's beat at that time
}

// Result is what an operation came to.
type Result struct {
	Verdict Verdict `json:"v"`
	Token   int64   `json:"t"` // of the lease, where there is one
}

// Verdict is an operation's result.
type Verdict string

// The verdicts.
const (
	Acquired  Verdict = "acquired"  // a new lease
	Reentered Verdict = "reentered" // the owner had it already; the lease is longer now
	Renewed   Verdict = "renewed"
	Released  Verdict = "released" // now, or by one of the last releases
	Left      Verdict = "left"     // the entry is gone
	Promised  Verdict = "promised" // not to be had now; the lease is in the chain
	Queued    Verdict = "queued"   // not to be had now; the entry is in the queue
	Held      Verdict = "held"     // not to be had now: somebody else's, or others come first
	Full      Verdict = "full"     // the tree holds as many leases as it may
	Large     Verdict = "large"    // the leases of the tree take as many bytes as they may, with this one
	Share     Verdict = "share"    // the owner, or the client, has as much of the tree as others leave to it
	Expired   Verdict = "expired"  // the lease that the token was given for has lapsed, or was released long ago; or it was never given
	Missing   Verdict = "missing"  // nobody was ever given a token; or the lease is of another path
	NotOwner  Verdict = "not_owner"
	NoToken   Verdict = "no_token" // the owner's, but the token wasn't said
)

// Grants reports whether whoever asked has the lock now.
func (v Verdict) Grants() bool { return v == Acquired || v == Reentered }

// Ended reports whether nobody has the lease any more.
func (v Verdict) Ended() bool { return v == Released || v == Expired || v == Missing }

// Positive reports whether a verdict may only be told once the document that says so was written.
func (v Verdict) Positive() bool {
	return v.Grants() || v == Renewed || v == Released || v == Left || v == Queued || v == Promised
}

// Parse reads a document.
func Parse(source []byte) (*Doc, error) {
	d := new(Doc)
	if err := json.Unmarshal(source, d); err != nil {
		return nil, fmt.Errorf("lock document: %w", err)
	}
	return d, nil
}

// Clone is a copy that shares nothing that Apply changes.
func (d *Doc) Clone() *Doc {
	c := *d
	c.Holds, c.Queue, c.Freed, c.Chain = slices.Clone(d.Holds), slices.Clone(d.Queue), slices.Clone(d.Freed), slices.Clone(d.Chain)
	return &c
}

// Holding is the lease of a token.
func (d *Doc) Holding(token int64) (Hold, bool) {
	for i := range d.Holds {
		if d.Holds[i].Token == token {
			return d.Holds[i], true
		}
	}
	return Hold{}, false
}

// Conflict is the oldest lease of others that keeps an owner from having the path in that mode, lapsed or not.
func (d *Doc) Conflict(owner, path string, mode Mode) (Hold, bool) {
	for i := range d.Holds {
		if h := &d.Holds[i]; h.Owner != owner && against(h.Path, h.Mode, path, mode) {
			return *h, true
		}
	}
	return Hold{}, false
}

// Ahead counts the entries in the queue before the one of that proxy, class, path and mode. If there is none, it counts the entries
// before a new one.
func (d *Doc) Ahead(proxy string, class Class, path string, mode Mode, bound int64) int64 {
	me := Entry{Proxy: proxy, Class: class, Path: path, Mode: mode, Since: d.Seen + 1}
	if i := d.entry(&me); i >= 0 {
		me = d.Queue[i]
	}
	var n int64
	for i := range d.Queue {
		e := &d.Queue[i]
		if !e.same(&me) && against(e.Path, e.Mode, path, mode) && before(e, &me, bound) {
			n += e.Count
		}
	}
	return n
}

// Entry is the queue's entry of that proxy, class, path and mode.
func (d *Doc) Entry(proxy string, class Class, path string, mode Mode) (Entry, bool) {
	if i := d.entry(&Entry{Proxy: proxy, Class: class, Path: path, Mode: mode}); i >= 0 {
		return d.Queue[i], true
	}
	return Entry{}, false
}

// Waiting counts those who wait for the path, as far as the document says.
func (d *Doc) Waiting(path string) int64 {
	var n int64
	for i := range d.Queue {
		if d.Queue[i].Path == path {
			n += d.Queue[i].Count
		}
	}
	return n
}

// Ends reports whether anything ends by the clock up to that time, or any entry's turn has come: that depends on more than times.
func (d *Doc) Ends(by int64) bool {
	lapses := func(h Hold) bool { return h.Until < by }
	return slices.ContainsFunc(d.Holds, lapses) || slices.ContainsFunc(d.Chain, lapses) ||
		slices.ContainsFunc(d.Queue, func(e Entry) bool { return e.Until < by || e.TurnSince > 0 })
}

func (d *Doc) entry(e *Entry) int {
	return slices.IndexFunc(d.Queue, func(q Entry) bool { return q.same(e) })
}

func (e *Entry) same(o *Entry) bool {
	return e.Proxy == o.Proxy && e.Class == o.Class && e.Path == o.Path && e.Mode == o.Mode
}

// Against reports whether a lease keeps others from having the path in that mode.
func (h *Hold) Against(path string, mode Mode) bool { return against(h.Path, h.Mode, path, mode) }

// Has reports whether the document knows a lease of that token that it hasn't found lapsed, or a promise of one.
func (d *Doc) Has(token int64) bool {
	is := func(h Hold) bool { return h.Token == token }
	return d != nil && (slices.ContainsFunc(d.Holds, is) || slices.ContainsFunc(d.Chain, is))
}

// Lasts reports whether a lease of that token lasts at a time, in ms by the document's clock.
func (d *Doc) Lasts(token, now int64) bool {
	return slices.ContainsFunc(d.Holds, func(h Hold) bool { return h.Token == token && h.Until >= now })
}
