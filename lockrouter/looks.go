package lockrouter

import (
	"context"
	"errors"
	"sync"

	"optimist/lockrouter/state"
)

// looks read lock documents and gates for writes. Looks that are asked for while others are out go together, with one request: it starts
// after all of them have come, so that none is told what was before it.
type looks struct {
	r *Router

	mu   sync.Mutex
	out  int   // requests under way
	next *look // what goes with the next one; nil: nobody has come
}

// mostLooks is how many requests may be out at once.
const mostLooks = 2

// look is one request.
type look struct {
	ids   map[string]bool
	gates map[string]bool
	docs  map[string]*state.Doc // as they are; not there: nil
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

// start sends what has come. The caller holds mu.
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
	if l.out--; l.next != nil {
		l.start()
	}
}

// lookFor carries a look out.
func (r *Router) lookFor(k *look) {
	ids, names := keys(k.ids), keys(k.gates)
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
		r.gates.note(name, found[i].State, read, r.o.Quiet)
		if r.gates.tend(name) && !r.beside(func() { r.tend(name) }) {
			r.gates.tended(name, r.o.Quiet)
		}
	}
}

// missed takes note that a gate couldn't be read.
func (g *gates) missed(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(name).asking = false
}

func keys(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for k := range set {
		list = append(list, k)
	}
	return list
}

// beside runs something beside requests. It reports false after Close.
func (r *Router) beside(run func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.wg.Go(run)
	return true
}
