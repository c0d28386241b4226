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
