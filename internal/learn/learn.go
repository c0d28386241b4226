// Package learn finds out from conflicts which rules would help: which numbers are counted together, which lists are sets, and
// which documents have many conflicts.
//
// Its knowledge is a sample, held in bounded memory and gone at the end of the process. It never decides about a write: it looks
// at what two clients did to a document, and counts.
package learn

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"optimist/internal/doc"
	"optimist/internal/hook"
	"optimist/internal/identity"
	"optimist/internal/obs"
	"optimist/internal/quota"
	"optimist/internal/session"
	"optimist/rewrite/merge"
)

// The bounds of what is remembered. An index takes at most about 150 KiB, a document 4 KiB.
const (
	maxIndices   = 64
	maxDocuments = 512
	maxWritten   = 4       // writes of a document
	writtenBytes = 8 << 20 // of what was written last, in observe mode
)

// What it may cost. Beyond it, every conflict is counted, but not looked into.
const (
	timeShare   = 20                     // one in so many parts of a processor's time
	timeSaved   = 250 * time.Millisecond // that may be spent at once
	maxCompared = 256 << 10              // bytes of the three documents together: their client waits
)

// Client tells a client from others, in a word. It is asked only for writes that met a conflict.
type Client interface{ Name() string }

// Conflict is a write that met changes which its client hadn't seen. Everything in it may be used during the call only.
type Conflict struct {
	Ref     doc.Ref // by the index's own name
	Name    string  // of the index, as the client names it
	Client  Client
	Network identity.Network // where the client is
	Outcome string           // a word: merged, refused, lost
	Rule    string           // that took the write
	// Merger is that of the rule that took the write.
	Merger *merge.Merger
	// Setter is that rule: of values that it sets itself there is nothing to learn. Nil: it sets none.
	Setter merge.Setter
	// Base is what the client had read, nil for no document; Sent what it sent; Current what others had made of the document
	// meanwhile, nil where that isn't known.
	Base, Sent, Current []byte
}

// sets reports whether the rule sets the value at a path itself.
func (c *Conflict) sets(path string) bool { return c.Setter != nil && c.Setter.Sets(path) }

// Options are what a Learner needs. All may be missing.
type Options struct {
	// ShowClients says that clients are named; otherwise a number stands for each, another one after a restart.
	ShowClients bool
	Log         *slog.Logger
	// EqualMove is called with the index where two clients moved a number equally, and no rule says whether both count.
	EqualMove hook.Func1[string]
	// Blind is called with the index where a client overwrote a document that it hadn't read here.
	Blind hook.Func1[string]
	Now   func() time.Time
}

// Learner collects what conflicts teach. Its methods may be called by any goroutine.
type Learner struct {
	o       Options
	neutral *merge.Merger // without rules: what was done is the evidence, not what a rule made of it
	seed    maphash.Seed

	mu        sync.Mutex
	conflicts int
	indices   *quota.Map[identity.Network, place, *index]      // by who was the first to need them: nobody else has them forgotten
	documents *quota.Map[identity.Network, doc.Ref, *document] // likewise
	written   *lru.LRU[doc.Ref, []written]                     // newest last
	bytes     int                                              // of written
	budget    time.Duration                                    // that may be spent on comparing
	filled    time.Time                                        // when budget was
	logged    time.Time                                        // when the last line about a number was
}

// written is what a client wrote in observe mode, where nobody reads what it overwrote.
type written struct {
	doc.Numbers
	base doc.Numbers // of what it had read
	body []byte
}

// New makes a Learner.
func New(o Options) *Learner {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Learner{o: o, seed: maphash.MakeSeed(), budget: timeSaved, filled: o.Now()}
	l.neutral, _ = merge.New(merge.Sent, nil) // no rule can be wrong
	l.indices = quota.NewMap[identity.Network, place, *index](maxIndices)
	l.documents = quota.NewMap[identity.Network, doc.Ref, *document](maxDocuments)
	l.written, _ = lru.NewLRU(maxDocuments, func(_ doc.Ref, list []written) { l.bytes -= size(list) })
	return l
}

// Observe learns from a conflict.
func (l *Learner) Observe(c *Conflict) {
	name, began := l.name(c.Client), l.o.Now()
	var found []merge.Decision
	if c.Current != nil && c.Sent != nil && len(c.Base)+len(c.Sent)+len(c.Current) <= maxCompared && l.mayCompare(began) {
		_, found, _ = l.neutral.Explain(c.Base, c.Sent, c.Current) // of what is no document there is nothing to learn
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.budget -= l.o.Now().Sub(began) }()
	l.conflicts++
	d := l.document(c)
	d.name, d.rule = c.Name, c.Rule
	d.count(began, name, c.Outcome)
	for i := range found {
		if bothChanged(&found[i]) && !c.sets(found[i].Path) {
			l.learn(c, d, read(&found[i]), name)
		}
	}
}

// learn notes what two clients did to one path.
func (l *Learner) learn(c *Conflict, d *document, v *sides, client string) {
	ix := l.index(c.Network, place{c.Ref.Index, c.Rule})
	ix.name = c.Name
	path, s := ix.at(v.path)
	if s == nil {
		return
	}
	d.paths.add(path)
	equal := s.add(v, client, l.o.Now())
	if rule, strategy := c.Merger.Ruled(path); !equal || rule != "" || strategy != merge.Sent {
		return
	}
	l.o.EqualMove.Call(c.Ref.Index)
	if now := l.o.Now(); !s.logged && now.Sub(l.logged) >= time.Minute {
		s.logged, l.logged = true, now
		l.o.Log.Warn("two clients moved a number equally, and no rule says whether both changes count: one of them may be lost. "+
			"If both count, add the line to a rule for the index; `optimist suggest` prints all such lines",
			obs.KeyIndex, c.Ref.Index, obs.KeyPath, path, obs.KeyAdd, "merge: {paths: {"+quote(path)+": sum}}")
	}
}

// Observed learns from a write in observe mode. Only the earlier writes show what this one has overwritten. Two writes from the same base
// are as good as the sides of a merge; others aren't, because writes in between may have erased something themselves. lost says that the
// write erased others' changes; base are the numbers that its client had read, stored those of the written revision.
func (l *Learner) Observed(c *Conflict, lost bool, base, stored doc.Numbers) {
	l.mu.Lock()
	list, _ := l.written.Get(c.Ref)
	for i := range list {
		if w := &list[i]; lost && w.base == base && w.PrimaryTerm == stored.PrimaryTerm && w.SeqNo < stored.SeqNo {
			c.Current = w.body
		}
	}
	l.wrote(c.Ref, list, written{stored, base, c.Sent})
	l.mu.Unlock()
	if lost {
		l.Observe(c)
	}
}

// wrote remembers what was written, after what is known of the document.
func (l *Learner) wrote(ref doc.Ref, list []written, w written) {
	if len(w.body) > writtenBytes/8 {
		return
	}
	w.body = bytes.Clone(w.body)
	l.written.Remove(ref)
	list = append(slices.Clone(list[max(0, len(list)+1-maxWritten):]), w)
	l.written.Add(ref.Clone(), list)
	for l.bytes += size(list); l.bytes > writtenBytes; {
		l.written.RemoveOldest()
	}
}

func size(list []written) (bytes int) {
	for i := range list {
		bytes += len(list[i].body)
	}
	return bytes
}

// manyBlind is the number of blind writers from which on Blind warns: one or two may well be jobs that copy data, but so many clients
// probably read elsewhere.
const manyBlind = 8

// Blind notes that a session overwrote a document of an index that it hadn't read through this optimist.
func (l *Learner) Blind(name string, s session.Session) {
	l.o.Blind.Call(name)
	client := maphash.Comparable(l.seed, s.Bare()) // many programs begin a trace with each request
	l.mu.Lock()
	defer l.mu.Unlock()
	ix := l.index(s.Network(), place{index: name})
	if ix.warned {
		return
	}
	ix.blind[client] = true
	if len(ix.blind) < manyBlind {
		return
	}
	ix.warned, ix.blind = true, nil
	l.o.Log.Warn("many clients overwrite documents that they never read here: there may be a second optimist, or a way around this one. "+
		"Clients may also read by searches, which no rule watches (base.reads), or in a form that optimist can't read (format=yaml)",
		obs.KeyIndex, name, obs.KeyCount, manyBlind)
}

// place is an index, and the rule that took the writes there. Clients or operations of one index may have rules of their own.
type place struct{ index, rule string }

// index is what is known of a place; of most there is nothing yet.
func (l *Learner) index(from identity.Network, at place) *index {
	ix, ok := l.indices.Get(at)
	if !ok {
		ix = &index{stars: map[string]bool{}, blind: map[uint64]bool{}}
		ix.paths, _ = lru.NewLRU[string, *stats](maxPaths, nil)
		l.indices.Add(from, place{strings.Clone(at.index), at.rule}, ix)
	}
	return ix
}

// mayCompare reports whether there is time for comparing documents.
func (l *Learner) mayCompare(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.budget = min(l.budget+now.Sub(l.filled)/timeShare, timeSaved)
	l.filled = now
	return l.budget > 0
}

// name is the word for a client in what is told of it.
func (l *Learner) name(c Client) string {
	if c == nil {
		return "unknown"
	}
	name := c.Name()
	if l.o.ShowClients {
		return name
	}
	return strconv.FormatUint(maphash.String(l.seed, name)>>32, 16)
}

// document is what is known of a document.
func (l *Learner) document(c *Conflict) *document {
	d, ok := l.documents.Get(c.Ref)
	if !ok {
		d = &document{}
		l.documents.Add(c.Network, c.Ref.Clone(), d)
	}
	return d
}
