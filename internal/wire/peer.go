package wire

import (
	"context"
	"errors"
	"net"
	"sync"
)

// peer is the other end of a connection, as the context of its requests knows it.
type peer struct {
	nc    net.Conn
	mu    sync.Mutex
	probe *Probe // made when it is first asked
}

type peerKey struct{}

// WithPeer returns a context for the requests of a connection, of which PeerLeft then tells.
func WithPeer(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, &peer{nc: nc})
}

// PeerLeft reports whether the client whose request ctx is of has left: whether it was cancelled, or the connection is closed on the other
// side by now, which is seldom known at once. That costs a system call. Any goroutine may ask. A deadline that passed says nothing.
func PeerLeft(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) || PeerClosed(ctx)
}

// PeerClosed reports whether the connection of the request that ctx is of is closed, on either side, by now. What became of ctx itself says
// nothing: it may be one for a part of the work, which is over. Otherwise it is as PeerLeft.
func PeerClosed(ctx context.Context) bool {
	p, ok := ctx.Value(peerKey{}).(*peer)
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probe == nil {
		p.probe = NewProbe(p.nc)
	}
	return p.probe.State() == PeerGone
}
