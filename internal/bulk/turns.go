package bulk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Turns are steps that a few goroutines do in turn, since most steps wait for nothing. A step that waits holds up no other: another
// goroutine goes on with the rest.
type Turns struct {
	do    func(t *Turns, k int)
	steps int64
	next  atomic.Int64
	mu    sync.Mutex
	watch *time.Timer
	seen  int64 // next, when the watch looked last
}

// stalled is how long no step may begin. After that each step that is left gets a goroutine.
const stalled = 2 * time.Millisecond

// InTurn begins to call do for each number below steps. It doesn't wait for them.
func InTurn(steps int, do func(t *Turns, k int)) {
	t := &Turns{do: do, steps: int64(steps)}
	for range min(runtime.GOMAXPROCS(0), steps) {
		go t.work()
	}
	if steps > 1 {
		t.mu.Lock()
		t.watch = time.AfterFunc(stalled, t.look)
		t.mu.Unlock()
	}
}

// Wait says that the step of the calling goroutine will wait for something. Call it before that.
func (t *Turns) Wait() {
	if t.next.Load() < t.steps {
		go t.work()
	}
}

// work does steps until none is left.
func (t *Turns) work() {
	for t.step() {
	}
}

// step does the next step. It reports false if none is left.
func (t *Turns) step() bool {
	k := t.next.Add(1) - 1
	if k >= t.steps {
		return false
	}
	t.do(t, int(k))
	return true
}

// look gives each step that is left a goroutine, if no step has begun since it looked last.
func (t *Turns) look() {
	next := t.next.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case next >= t.steps:
	case next == t.seen:
		for range t.steps - next {
			go t.step()
		}
	default:
		t.seen = next
		t.watch.Reset(stalled)
	}
}
