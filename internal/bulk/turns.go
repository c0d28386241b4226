package bulk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Turns are steps that a few goroutines do in turn, because most steps wait for nothing. A step that waits doesn't hold up the others:
// another goroutine goes on with them.
type Turns struct {
	do    func(t *Turns, k int)
	steps int64
	next  atomic.Int64
	mu    sync.Mutex
	watch *time.Timer
	seen  int64 // the value of next when look was called last
}

// stalled is the longest time in which no step begins. After that, each step that is left gets a goroutine.
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

// look gives each step that is left a goroutine, if no step has begun since the last look.
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
