// Package zookeeper gives out locks by ZooKeeper's own means. A request is a sequential ephemeral node below the lock's node. A
// watch on the one node before it reports when the request may be next.
//
// All locks of a proxy are in the proxy's one session. If the proxy dies, ZooKeeper removes its locks with the session. So no
// lease is longer than a session lasts without its proxy. The foreground always goes before the background, which may starve.
package zookeeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"optimist/internal/timer"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// Keeper is a lockrouter.Keeper. It is safe for concurrent use; make it with New, and Close it.
type Keeper struct {
	o       Options
	session *session
	over    context.Context
	close   context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex
	leases map[string]*ownLease // of this proxy's session, by the path of their nodes
	closed bool
}

// Ability is what the Keeper can do.
func Ability() lockrouter.Ability { return lockrouter.Ability{Store: "zookeeper"} }

// New makes a Keeper. The servers may be away: it goes on to look for them.
func New(o Options) (*Keeper, error) {
	o.Root = cmp.Or(strings.TrimSuffix(o.Root, "/"), "/optimist")
	o.SessionTimeout = cmp.Or(max(o.SessionTimeout, 0), 5*time.Second)
	o.RetryDelay = cmp.Or(max(o.RetryDelay, 0), time.Second)
	o.Retries = max(cmp.Or(o.Retries, 5), 0)
	o.Foreground, o.Background = cmp.Or(o.Foreground, "A"), cmp.Or(o.Background, "B")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	k := &Keeper{o: o, leases: map[string]*ownLease{}}
	k.over, k.close = context.WithCancel(context.Background())
	var err error
	k.session, err = dial(&o)
	return k, err
}

// Close ends the session. ZooKeeper keeps its nodes for the session's time, if this proxy has given out leases that haven't ended: their
// holders count on them. Call it when nobody waits any more.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	for _, h := range k.leases {
		h.timer.Stop()
	}
	leases := len(k.leases)
	k.mu.Unlock()
	defer time.AfterFunc(time.Second, k.close).Stop()
	k.wg.Wait()
	k.close()
	k.session.end(leases > 0)
}

// attempt tries a step, and again if the lock has changed meanwhile, or, as often as Options says, if there was no connection. A step looks
// first what there is: so it finds what a try without an answer has done.
func (k *Keeper) attempt(ctx context.Context, step func(ctx context.Context) error) error {
	for lost := 0; ; {
		err := step(ctx)
		switch {
		case errors.Is(err, errAgain):
		case !errors.Is(err, lockrouter.ErrStore) || lost >= k.o.Retries || timer.Sleep(ctx, k.o.RetryDelay) != nil:
			return err
		default:
			lost++
		}
	}
}

// within bounds how long a request goes on without a connection.
func (k *Keeper) within(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(least, k.o.SessionTimeout, time.Duration(k.o.Retries)*k.o.RetryDelay))
}

// Renew makes the lease begin anew. If another proxy has given it out, its node moves to the session of this one.
func (k *Keeper) Renew(ctx context.Context, c *lockrouter.Claim) (l *lockrouter.Lease, err error) {
	ctx, cancel := k.within(ctx, 0)
	defer cancel()
	err = k.attempt(ctx, func(ctx context.Context) error {
		v, err := k.mine(ctx, c)
		if errors.Is(err, errReleased) {
			return lockrouter.Refuse(c.Lock, state.Expired)
		}
		if err == nil {
			l, err = k.extend(ctx, c, v)
		}
		return err
	})
	return l, err
}

// extend makes the lease of the holder begin anew.
func (k *Keeper) extend(ctx context.Context, c *lockrouter.Claim, v *view) (*lockrouter.Lease, error) {
	next, h := v.top, *v.top.Holder
	next.Holder = &h
	h.TTL = cmp.Or(c.TTL.Milliseconds(), h.TTL)
	h.Note = cmp.Or(c.Note, h.Note)
	path := v.parent + "/" + h.Node
	_, at, err := k.session.read(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case at == nil:
		return nil, errAgain
	}
	h.Until = k.keep(path, c.Lock, &h)
	ops := []any{&zk.SetDataRequest{Path: v.parent, Data: next.bytes(), Version: v.version}}
	if at.EphemeralOwner != k.session.id() {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1},
			&zk.CreateRequest{Path: path, Data: h.bytes(), Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral})
	} else {
		ops = append(ops, &zk.SetDataRequest{Path: path, Data: h.bytes(), Version: -1})
	}
	if err := k.session.multi(ctx, ops...); err != nil {
		return nil, err
	}
	k.kept(path, c.Lock, h.Until)
	return k.lease(&h), nil
}

// lease is what a holder is told. The lease is promised for no longer than ZooKeeper keeps the session of a proxy that has died.
func (k *Keeper) lease(h *holder) *lockrouter.Lease {
	left := min(time.Duration(h.TTL)*time.Millisecond, k.session.timeout())
	return lockrouter.NewLease(h.Owner, h.Note, h.Token, time.UnixMilli(h.Since), left)
}

// Release ends the lease, and notes its token, so that the release can be repeated.
func (k *Keeper) Release(ctx context.Context, c *lockrouter.Claim) error {
	ctx, cancel := k.within(ctx, 0)
	defer cancel()
	return k.attempt(ctx, func(ctx context.Context) error {
		v, err := k.mine(ctx, c)
		switch {
		case errors.Is(err, errReleased):
			return nil
		case err != nil:
			return err
		}
		return k.free(ctx, v, true)
	})
}

// free takes the holder's node away.
func (k *Keeper) free(ctx context.Context, v *view, released bool) error {
	next, path := v.top, v.parent+"/"+v.top.Holder.Node
	if released {
		next.freed(v.top.Holder.Token)
	}
	next.Holder = nil
	err := k.session.multi(ctx, &zk.SetDataRequest{Path: v.parent, Data: next.bytes(), Version: v.version},
		&zk.DeleteRequest{Path: path, Version: -1})
	if err == nil {
		k.forget(path)
	}
	return err
}

// errReleased reports that the lease of a token was released before.
var errReleased = errors.New("the lease was released")

// mine looks at a lock whose holder has to be a claim's owner with its token.
func (k *Keeper) mine(ctx context.Context, c *lockrouter.Claim) (*view, error) {
	v, err := k.look(ctx, c.Lock)
	if err != nil {
		return nil, err
	}
	verdict := state.Expired
	switch h := v.holder(); {
	case v.top.Last == 0:
		verdict = state.Missing
	case h != nil && h.Token == c.Token && h.Owner == c.Owner:
		return v, nil
	case c.Token != 0 && v.top.wasFreed(c.Token):
		return nil, errReleased
	case h == nil && c.Token == 0:
		verdict = state.Missing
	case h != nil && h.Owner != c.Owner && (h.Token == c.Token || c.Token == 0):
		verdict = state.NotOwner
	case c.Token == 0:
		verdict = state.NoToken
	}
	return nil, lockrouter.Refuse(c.Lock, verdict)
}

// Look reads who has the lock. How much is left of the lease is told by two proxies' clocks.
func (k *Keeper) Look(ctx context.Context, lock lockrouter.Lock) (l *lockrouter.Lease, err error) {
	ctx, cancel := k.within(ctx, 0)
	defer cancel()
	err = k.attempt(ctx, func(ctx context.Context) error {
		v, err := k.look(ctx, lock)
		if err != nil {
			return err
		}
		if h := v.holder(); h != nil {
			waiting := int64(len(v.queue))
			l = lockrouter.NewLease(h.Owner, h.Note, h.Token, time.UnixMilli(h.Since), time.Until(time.UnixMilli(h.Until)))
			l.Waiting = &waiting
		}
		return nil
	})
	return l, err
}

// look reads a lock.
func (k *Keeper) look(ctx context.Context, lock lockrouter.Lock) (*view, error) {
	v := &view{parent: k.o.Root + "/" + nodeName(lock.ID), version: -1}
	data, at, err := k.session.read(ctx, v.parent)
	if err != nil || at == nil {
		return v, err
	}
	v.version, v.zxid = at.Version, max(at.Mzxid, at.Pzxid)
	if len(data) > 0 {
		if err := json.Unmarshal(data, &v.top); err != nil || v.top.Last < 0 {
			return nil, fmt.Errorf("%w: what ZooKeeper has at %s is no lock", lockrouter.ErrStore, v.parent)
		}
	}
	names, err := k.session.children(ctx, v.parent)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch _, _, ok := parse(name); {
		case v.top.Holder != nil && name == v.top.Holder.Node:
			v.holds = true
		case ok:
			v.queue = append(v.queue, name)
		}
	}
	slices.SortFunc(v.queue, func(a, b string) int {
		class, seq, _ := parse(a)
		class2, seq2, _ := parse(b)
		return cmp.Or(cmp.Compare(class, class2), cmp.Compare(seq, seq2))
	})
	return v, nil
}

// newName begins the name of a node: its class, and what tells it from all others, also if the answer that would name it is lost. ZooKeeper
// puts the sequence behind it.
func (k *Keeper) newName(c state.Class) string {
	class := k.o.Foreground
	if c == state.Background {
		class = k.o.Background
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails, says its documentation
	return class + "-" + hex.EncodeToString(id) + "-"
}
