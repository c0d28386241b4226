package catalog

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/session"
)

// identified is an index that a realm's clients were told of.
type identified struct {
	uuid        string // "": it isn't there any more, or is another one
	oneShard    bool
	credentials session.Credentials
}

// incarnation is one of the indices that have had a name.
type incarnation struct{ name, uuid string }

// maxQuestions is how often the engine is asked what an index is, while other clients say that it isn't the same any more.
const maxQuestions = 3

// holds reports whether an answer is believed now: it is fresh, and other clients haven't said since that the index isn't the same any
// more.
func (c *Catalog) holds(a *answer[Index], asker Asker, now time.Time, maxAge time.Duration) bool {
	if !a.fresh(now, maxAge) {
		return false
	}
	_, open := c.Sessions.Suspicion(asker.Credentials, a.value.Name)
	return !open
}

// identify asks the engine what a name stands for. It asks again if a suspicion has come up meanwhile, which the answer doesn't settle.
func (c *Catalog) identify(ctx context.Context, asker Asker, name string) (ix es.Index, err error) {
	for range maxQuestions {
		asked := c.Sessions.Epoch()
		if ix, err = c.Engine.ResolveIndex(ctx, c.asker(asker), name); err != nil {
			return ix, err
		}
		if mark, open := c.Sessions.Suspicion(asker.Credentials, ix.Name); !open || mark <= asked {
			c.note(asker, ix, mark, open)
			break
		}
	}
	if why := whyNotMerged(ix); why != "" {
		c.Unguardable.Call(ix.Name, why)
	}
	return ix, nil
}

// note compares an index with what was known of its name: the engine accepts old numbers in an index that was made anew. The comparison
// settles a suspicion that is open since the mark.
func (c *Catalog) note(asker Asker, ix es.Index, mark session.Epoch, open bool) {
	key, is := nameKey{ix.Name, asker.Realm}, incarnation{ix.Name, ix.UUID}
	before, found := c.uuids.Peek(key)
	since, known := c.indices.Get(is)
	switch other := before.uuid != "" && before.uuid != ix.UUID; {
	case open:
		switch {
		case other:
			since = c.Sessions.Begin() // what was read since the mark may be of the index before, too
		case !known || since > mark:
			since = mark // nothing shows that the index is older
		}
		c.Sessions.Settle(asker.Credentials, ix.Name, mark, since)
		if before.uuid != ix.UUID {
			c.forgetUUID(asker.Credentials, ix.Name)
		}
	case other, !found && !known && c.wasIdentified(key).Load() && c.hasOther(is): // or what was known had to make room
		c.Recreated.Call(asker.Credentials, ix.Name)
		c.forgetUUID(asker.Credentials, ix.Name)
	}
	if !known {
		c.indices.Add(asker.network(), is, c.Sessions.Begin())
	}
	c.wasIdentified(key).Store(true)
	c.uuids.Add(asker.network(), key, identified{ix.UUID, ix.OneShard, asker.Credentials})
}

// IsSame asks the engine whether the index (concrete) is still the one that it was, and waits as Patience says. The index is the same
// unless the engine says something else, or nobody knows what it was.
func (c *Catalog) IsSame(ctx context.Context, asker Asker, index string) bool {
	before, _ := c.uuids.Peek(nameKey{index, asker.Realm})
	if before.uuid == "" {
		return false
	}
	ix, err := c.resolveSoon(ctx, asker, index, time.Nanosecond)
	return err != nil || ix.Unknown != "" || ix.UUID == before.uuid
}

// wasIdentified is whether a name has ever had a UUID in a realm. Names may share that: then an index is taken for one that was made anew.
func (c *Catalog) wasIdentified(key nameKey) *atomic.Bool {
	return &c.identified[maphash.Comparable(c.seed, key)%maxNames]
}

// hasOther reports whether another index is known that has, or had, the name.
func (c *Catalog) hasOther(ix incarnation) bool {
	return c.indices.Has(func(other incarnation) bool { return other.name == ix.name && other.uuid != ix.uuid })
}

// Missing notes that the engine has no index of the name (concrete). If there was one, its knowledge is void: an index that is created
// again counts from zero, and the engine accepts the old numbers.
func (c *Catalog) Missing(asker Asker, index string) {
	if is, _ := c.uuids.Peek(nameKey{index, asker.Realm}); is.uuid != "" {
		c.Recreated.Call(asker.Credentials, index)
		c.forgetUUID(asker.Credentials, index)
	}
}

// noIndex notes that the engine has no index of the name. The index for which it stood, if any, isn't believed any more: once nobody
// suspects that one, it would be taken for an index that is made anew. What searches have shown the name to stand for stays.
func (c *Catalog) noIndex(e *entry, asker Asker, name string) {
	c.Missing(asker, name)
	if a := e.index.last.Load(); a != nil && a.value.Exists() {
		c.void(e, a, "")
	}
}

// forgetUUID forgets which index a name (concrete) stands for, for clients with those credentials.
func (c *Catalog) forgetUUID(credentials session.Credentials, index string) {
	c.uuids.Change(func(key nameKey, is identified) (identified, bool) {
		return identified{credentials: credentials}, key.name == index && is.credentials == credentials
	})
}

func whyNotMerged(ix es.Index) string {
	switch {
	case ix.NoSeqNo:
		return outcome.ReasonSeqNo
	case ix.Partial:
		return outcome.ReasonSource
	case ix.Pipeline:
		return outcome.ReasonPipeline
	}
	return ""
}
