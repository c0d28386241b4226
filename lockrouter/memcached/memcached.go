// Package memcached gives out locks that are items of memcached: it adds an item with a time to live, and only its owner removes
// it.
//
// It is best effort. memcached keeps nothing for certain: if it evicts an item, or loses it at a restart, another client can have
// the lock at once. There is no queue: waiting clients try again and again, and the one that tries at the right moment is next.
package memcached

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"optimist/internal/timer"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// Options say where memcached is. Servers is required.
type Options struct {
	// Servers are host:port. The name of a lock decides on which of them the lock is.
	Servers []string
	// Prefix begins all keys: "optimist-".
	Prefix string
	// Timeout is how long memcached may take for an answer: 500ms.
	Timeout time.Duration
	// Delay is the time between two tries of a request that waits, if it doesn't say: 50ms.
	Delay time.Duration
}

// Keeper is a lockrouter.Keeper. It is safe for concurrent use; make it with New.
type Keeper struct {
	o      Options
	client *memcache.Client
}

// Ability is what the Keeper can do.
func Ability() lockrouter.Ability { return lockrouter.Ability{Store: "memcached", BestEffort: true} }

// New makes a Keeper. It doesn't reach for the servers before there is something to do.
func New(o Options) *Keeper {
	o.Prefix = cmp.Or(o.Prefix, "optimist-")
	o.Timeout = cmp.Or(max(o.Timeout, 0), 500*time.Millisecond)
	o.Delay = cmp.Or(max(o.Delay, 0), 50*time.Millisecond)
	c := memcache.NewFromSelector(servers(o.Servers))
	c.Timeout, c.MaxIdleConns = o.Timeout, 64
	c.DialContext = dial
	return &Keeper{o, c}
}

// Close closes the connections that nobody uses.
func (k *Keeper) Close() { _ = k.client.Close() } // there is nothing left to be lost

// item is what stands in memcached.
type item struct {
	Lock  string `json:"lock"`
	Owner string `json:"owner"`
	Token int64  `json:"token"` // 0: not drawn yet
	Note  string `json:"note"`
	Since int64  `json:"since"` // in ms, by the clock of the proxy that gave the lease out, as Until
	Until int64  `json:"until"`
	TTL   int64  `json:"ttl"` // in ms
}

// found is an item with what a change of it is guarded by.
type found struct {
	item
	raw *memcache.Item
}

// Acquire adds the lock's item, and tries again for as long as the claim says while it is somebody else's.
func (k *Keeper) Acquire(ctx context.Context, c *lockrouter.Claim) (*lockrouter.Lease, error) {
	began := time.Now()
	for tries := 0; ; tries++ {
		l, holder, err := k.try(c, began)
		if l != nil || err != nil {
			return l, err
		}
		if c.Tries >= 0 && tries >= c.Tries || !pause(ctx, min(cmp.Or(c.Delay, k.o.Delay), c.Wait-time.Since(began))) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			var theirs *lockrouter.Lease
			if holder != nil {
				theirs = holder.lease()
			}
			return nil, lockrouter.HeldFailure(c.Lock, theirs, c.Wait > 0, 0)
		}
	}
}

// pause waits, and reports whether it is worth to try again.
func pause(ctx context.Context, d time.Duration) bool { return d > 0 && timer.Sleep(ctx, d) == nil }

// try tries once. Without an error it gives the lease, or the holder, which may be nil if it has just gone.
//
// If the item changes under the try, that is mostly another request of the same owner. So the try begins anew at once: an owner who has the
// lock, or is about to get it, isn't in its own way.
func (k *Keeper) try(c *lockrouter.Claim, began time.Time) (*lockrouter.Lease, *found, error) {
	const rounds = 5
	for range rounds {
		if l, holder, err := k.step(c, began); !errors.Is(err, errChanged) {
			return l, holder, err
		}
	}
	return nil, nil, nil
}

// step is a try that ends with errChanged if the item changes under it.
//
// The token is drawn when the item is there already. A token that was drawn before might be smaller than that of an owner who has had the
// lock since. Until the item has its token, nobody has the lease.
func (k *Keeper) step(c *lockrouter.Claim, began time.Time) (*lockrouter.Lease, *found, error) {
	holder, err := k.read(c.Lock)
	if err == nil && holder == nil {
		holder, err = k.add(c)
	}
	if err != nil || holder.Owner != c.Owner {
		return nil, holder, err
	}
	again, waited := *c, since(began)
	again.TTL = max(again.TTL, time.Duration(holder.TTL)*time.Millisecond) // never shorter: the first request relies on its answer
	reentered := holder.Token != 0
	if !reentered {
		if holder.Token, err = k.token(); err != nil {
			k.forget(c, nil)
			return nil, nil, err
		}
	}
	l, err := k.extend(&again, holder)
	if err != nil {
		if !reentered && !errors.Is(err, errChanged) {
			k.forget(c, &holder.item)
		}
		return nil, nil, err
	}
	l.Reentered, l.Waited = reentered, waited
	return l, nil, nil
}

// add adds the lock's item without a token, and reads it. Such an item lives as long as the steps to its token may take, not as long as the
// lease: if the proxy dies between the steps, nobody waits for a lease that no client has.
func (k *Keeper) add(c *lockrouter.Claim) (*found, error) {
	const steps = 6 // read, draw (three, if the counter is lost), and put back; and one more
	now := time.Now()
	i := &item{Lock: c.Lock.Name, Owner: c.Owner, Note: c.Note, Since: now.UnixMilli(), TTL: c.TTL.Milliseconds()}
	raw, err := k.fill(c.Lock, i, now, min(c.TTL, steps*k.o.Timeout))
	if err != nil {
		return nil, err
	}
	switch err := whole(func() error { return k.client.Add(raw) }); {
	case errors.Is(err, memcache.ErrNotStored):
		return nil, errChanged
	case err != nil:
		k.forget(c, nil)
		return nil, away(err)
	}
	f, err := k.read(c.Lock)
	switch {
	case err != nil:
		k.forget(c, nil)
	case f == nil:
		err = errChanged
	}
	return f, err
}

func since(began time.Time) *int64 {
	ms := time.Since(began).Milliseconds()
	return &ms
}

// forget takes back what a request without an answer may have put there: the owner's item without a token, or the one that was sent. If
// another request of the owner's is about to put a token into that item, it begins anew. An item that another request has renewed since
// stays: its client relies on it. If memcached is still away, the item's time to live ends it.
func (k *Keeper) forget(c *lockrouter.Claim, sent *item) {
	f, err := k.read(c.Lock)
	if err == nil && f != nil && f.Owner == c.Owner && (f.Token == 0 || sent != nil && f.item == *sent) {
		_ = k.remove(f) // the time to live ends it as well
	}
}

// Renew puts the item back with a new time to live, if it is still the one of the token.
func (k *Keeper) Renew(_ context.Context, c *lockrouter.Claim) (*lockrouter.Lease, error) {
	f, err := k.mine(c)
	if err != nil {
		return nil, err
	}
	l, err := k.extend(c, f)
	if errors.Is(err, errChanged) {
		return nil, lockrouter.Refuse(c.Lock, state.Expired)
	}
	return l, err
}

// errChanged reports that an item was changed, or has gone, since it was read.
var errChanged = errors.New("the item has changed")

// extend makes the lease of an item begin anew, unless somebody else has changed it. f is then what was sent.
func (k *Keeper) extend(c *lockrouter.Claim, f *found) (*lockrouter.Lease, error) {
	now := time.Now()
	f.TTL = cmp.Or(c.TTL.Milliseconds(), f.TTL)
	f.Note = cmp.Or(c.Note, f.Note)
	ttl := time.Duration(f.TTL) * time.Millisecond
	raw, err := k.fill(c.Lock, &f.item, now, ttl)
	if err != nil {
		return nil, err
	}
	raw.CasID = f.raw.CasID
	switch err := whole(func() error { return k.client.CompareAndSwap(raw) }); {
	case errors.Is(err, memcache.ErrCASConflict), errors.Is(err, memcache.ErrCacheMiss), errors.Is(err, memcache.ErrNotStored):
		return nil, errChanged
	case err != nil:
		return nil, away(err)
	}
	return f.leaseFor(ttl), nil
}

// Release takes the item away, if it is still the one of the token: memcached compares and removes in one step.
func (k *Keeper) Release(_ context.Context, c *lockrouter.Claim) error {
	f, err := k.mine(c)
	if err != nil {
		return err
	}
	if err = k.remove(f); errors.Is(err, errChanged) {
		return lockrouter.Refuse(c.Lock, state.Expired)
	}
	return err
}

// remove ends an item's time to live, unless somebody else has changed it. A delete can't be guarded.
func (k *Keeper) remove(f *found) error {
	end := &memcache.Item{Key: f.raw.Key, CasID: f.raw.CasID, Expiration: -1}
	switch err := whole(func() error { return k.client.CompareAndSwap(end) }); {
	case errors.Is(err, memcache.ErrCASConflict), errors.Is(err, memcache.ErrCacheMiss), errors.Is(err, memcache.ErrNotStored):
		return errChanged
	case err != nil:
		return away(err)
	}
	return nil
}

// mine is the item of a claim's owner and token.
func (k *Keeper) mine(c *lockrouter.Claim) (*found, error) {
	f, err := k.given(c.Lock)
	verdict := state.Expired
	switch {
	case err != nil:
		return nil, err
	case f == nil && c.Token == 0:
		verdict = state.Missing
	case f == nil: // nothing is kept of what was released, or has expired
	case c.Token == f.Token && c.Owner == f.Owner:
		return f, nil
	case c.Token == f.Token, c.Token == 0 && c.Owner != f.Owner:
		verdict = state.NotOwner
	case c.Token == 0:
		verdict = state.NoToken
	}
	return nil, lockrouter.Refuse(c.Lock, verdict)
}

// Look reads the item.
func (k *Keeper) Look(_ context.Context, lock lockrouter.Lock) (*lockrouter.Lease, error) {
	f, err := k.given(lock)
	if err != nil || f == nil {
		return nil, err
	}
	return f.lease(), nil
}

// lease is an item as others see it: how much is left is told by two proxies' clocks.
func (i *item) lease() *lockrouter.Lease { return i.leaseFor(time.Until(time.UnixMilli(i.Until))) }

func (i *item) leaseFor(left time.Duration) *lockrouter.Lease {
	return lockrouter.NewLease(i.Owner, i.Note, i.Token, time.UnixMilli(i.Since), left)
}

// given reads the item of a lock that somebody has; nil: nobody has it, or its item has no token yet.
func (k *Keeper) given(lock lockrouter.Lock) (*found, error) {
	f, err := k.read(lock)
	if f != nil && f.Token == 0 {
		f = nil
	}
	return f, err
}

// read reads a lock's item; nil if there is none.
func (k *Keeper) read(lock lockrouter.Lock) (*found, error) {
	var raw *memcache.Item
	err := whole(func() (err error) { raw, err = k.client.Get(k.key(lock)); return err })
	switch {
	case errors.Is(err, memcache.ErrCacheMiss):
		return nil, nil
	case err != nil:
		return nil, away(err)
	}
	f := &found{raw: raw}
	if err := json.Unmarshal(raw.Value, &f.item); err != nil || f.Token < 0 || f.Owner == "" {
		return nil, fmt.Errorf("%w: what memcached has under the key of %s is no lock", lockrouter.ErrStore, lock.Name)
	}
	return f, nil
}

// monthOfSeconds is the longest time to live: more is a date to memcached.
const monthOfSeconds = 30 * 24 * 60 * 60

// seconds is a time to live as memcached takes it. It counts whole seconds, and may count the one that has begun: an item lives up to two
// seconds longer than its lease, and never shorter.
func seconds(life time.Duration) int64 { return int64((life+time.Second-1)/time.Second) + 1 }

// fill makes memcached's item, which lives for a time from now on. The lease that it is for must not be too long either.
func (k *Keeper) fill(lock lockrouter.Lock, i *item, now time.Time, life time.Duration) (*memcache.Item, error) {
	if seconds(time.Duration(i.TTL)*time.Millisecond) > monthOfSeconds {
		return nil, &lockrouter.Failure{Status: 400, Type: lockrouter.TypeBad, Reason: "memcached has no ttl longer than 30 days"}
	}
	i.Until = now.Add(life).UnixMilli()
	value, err := json.Marshal(i)
	return &memcache.Item{Key: k.key(lock), Value: value, Expiration: int32(seconds(life))}, err //nolint:gosec // it is at most a month
}

// key is a lock's key: readable if memcached takes that, up to its 250 bytes.
func (k *Keeper) key(lock lockrouter.Lock) string {
	key := k.o.Prefix + lock.Name
	if len(key) <= 250 {
		return key
	}
	sum := sha256.Sum256([]byte(lock.Name))
	return k.o.Prefix + "sha256:" + hex.EncodeToString(sum[:])
}

// token draws the next token: memcached counts, and all locks share the counter. A counter that memcached has lost begins again at the
// clock's time in ms × 1024, which is ahead of it, if fewer than 2000 locks a second were given out.
func (k *Keeper) token() (int64, error) {
	const steps = 1024
	key := k.o.Prefix + "token"
	step, err := rand.Int(rand.Reader, big.NewInt(steps-1))
	if err != nil {
		return 0, err
	}
	for {
		var n uint64
		err := whole(func() (err error) { n, err = k.client.Increment(key, step.Uint64()+1); return err })
		switch {
		case err == nil && n >= 1<<53:
			return 0, fmt.Errorf("%w: the counter of tokens in memcached is no number that clients can read", lockrouter.ErrStore)
		case err == nil:
			return int64(n), nil
		case !errors.Is(err, memcache.ErrCacheMiss):
			return 0, away(err)
		}
		first := strconv.FormatInt(time.Now().UnixMilli()*steps, 10)
		counter := &memcache.Item{Key: key, Value: []byte(first)}
		if err := whole(func() error { return k.client.Add(counter) }); err != nil && !errors.Is(err, memcache.ErrNotStored) {
			return 0, away(err)
		}
	}
}

// whole makes an error of a panic: the client takes for granted that answers are memcached's.
func whole(ask func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errNonsense, r)
		}
	}()
	return ask()
}

func away(err error) error { return fmt.Errorf("%w: memcached: %w", lockrouter.ErrStore, err) }
