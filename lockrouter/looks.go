package lockrouter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"optimist/lockrouter/state"
)

// looks reads lock documents and gates for writes. While requests are out, further looks are collected, and go with one request. That
// request starts after all of its looks were asked for, so that none of them gets an older state.
type looks struct {
	r *Router

	mu   sync.Mutex
	out  int   // requests under way
	next *look // what goes with the next request; nil: nothing
}

// mostLooks is how many requests may be out at once.
const mostLooks = 2

// look is one request.
type look struct {
	ids   map[string]bool
	gates map[string]bool
	docs  map[string]*state.Doc // the documents that were read; nil: there is none
	err   error
	done  chan struct{}
}

// do reads documents and gates, and takes note of the gates.
func (l *looks) do(ctx context.Context, ids, gates []string) (*look, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &look{ids: map[string]bool{}, gates: map[string]bool{}, done: make(chan struct{})}
	}
	k := l.next
	for _, id := range ids {
		k.ids[id] = true
	}
	for _, name := range gates {
		k.gates[name] = true
	}
	if l.out < mostLooks {
		l.start()
	}
	l.mu.Unlock()
	select {
	case <-k.done:
		return k, k.err
	case <-ctx.Done():
		return nil, errors.Join(ErrStore, context.Cause(ctx))
	}
}

// start sends the next request, if there is room for one. The caller holds mu.
func (l *looks) start() {
	k := l.next
	l.next = nil
	l.out++
	if !l.r.beside(func() { l.run(k) }) {
		k.err = errClosed
		l.out--
		close(k.done)
	}
}

func (l *looks) run(k *look) {
	l.r.lookFor(k)
	close(k.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out--
	if l.next != nil {
		l.start()
	}
}

// lookFor makes the request of a look.
func (r *Router) lookFor(k *look) {
	ids, names := slices.Collect(maps.Keys(k.ids)), slices.Collect(maps.Keys(k.gates))
	docs, found, read, err := r.readGates(r.ctx, ids, names)
	if err != nil {
		k.err = err
		for _, name := range names {
			r.gates.missed(name)
		}
		return
	}
	k.docs = make(map[string]*state.Doc, len(ids))
	for i, id := range ids {
		k.docs[id] = docs[i]
	}
	for i, name := range names {
		r.gates.note(name, found[i].State, read)
		if r.gates.tend(name) && !r.beside(func() { r.tend(name) }) {
			r.gates.tended(name)
		}
	}
}
