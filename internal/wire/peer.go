package wire

import (
	"context"
	"errors"
	"net"
	"sync"
)

// peer is the client of a connection. The context of its requests carries it.
type peer struct {
	nc    net.Conn
	mu    sync.Mutex
	probe *Probe // made when it is first needed

	over bool                // the client left so long ago that nothing is done on its behalf any more
	work map[*Lasting]func() // what is done on its behalf, and what ends that
}

type peerKey struct{}

// WithPeer returns a context for the requests of a connection. PeerLeft and PeerClosed look at that connection.
func WithPeer(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, &peer{nc: nc})
}

// PeerLeft reports whether the client of ctx's request has left: ctx was cancelled, or the client has closed its connection by
// now, which may not have been noticed yet. A deadline that has passed doesn't count. It costs a system call. Any goroutine may
// call it.
func PeerLeft(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) || PeerClosed(ctx)
}

// PeerClosed reports whether the connection of ctx's request is closed by now, on either side. Unlike PeerLeft it ignores
// whether ctx was cancelled: ctx may be for a part of the work that is over.
func PeerClosed(ctx context.Context) bool {
	p, _ := ctx.Value(peerKey{}).(*peer)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probe == nil {
		p.probe = NewProbe(p.nc)
	}
	return p.probe.State() == PeerGone
}

// Lasting is the context of work whose outcome matters although the client may leave: a write that was sent. It doesn't end with the
// client's own context. Only HangUp ends the work, by the function that Hold was given.
type Lasting struct {
	context.Context // without its end
	// Client is the context of the client's request.
	Client context.Context
	peer   *peer // nil: there is none
}

// Last returns ctx for such work.
func Last(ctx context.Context) *Lasting {
	p, _ := ctx.Value(peerKey{}).(*peer)
	return &Lasting{context.WithoutCancel(ctx), ctx, p}
}

// Hold has abort called, in another goroutine, when the client left too long ago; at once if it has. Call Release before the next Hold. The
// requests of a bulk are work of one client at the same time: each has a Lasting of its own.
func (l *Lasting) Hold(abort func()) {
	if l.peer == nil {
		return
	}
	l.peer.mu.Lock()
	defer l.peer.mu.Unlock()
	if l.peer.work == nil {
		l.peer.work = make(map[*Lasting]func())
	}
	l.peer.work[l] = abort
	if l.peer.over {
		abort()
	}
}

// Release undoes Hold. It reports false if the function was called.
func (l *Lasting) Release() bool {
	if l.peer == nil {
		return true
	}
	l.peer.mu.Lock()
	defer l.peer.mu.Unlock()
	delete(l.peer.work, l)
	return !l.peer.over
}

// HangUp ends what is done on behalf of the client of ctx's connection, which has left.
func HangUp(ctx context.Context) {
	p, _ := ctx.Value(peerKey{}).(*peer)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for _, abort := range p.work {
		abort()
	}
}

// WithoutPeer returns ctx for work on behalf of several clients: none of them ends it by leaving.
func WithoutPeer(ctx context.Context) context.Context {
	return context.WithValue(ctx, peerKey{}, (*peer)(nil))
}
