package inference

import (
	"container/heap"
	"iter"
	"math/rand/v2"
	"time"
)

// world is virtual time, and the processes that live in it. One process runs at a time, and nothing depends on the machine: the same
// seed gives the same run. The exception is what depends on the product's hashes, which each process seeds anew: see highscores.
type world struct {
	*rand.Rand
	now   time.Duration
	queue alarms
	count uint64 // alarms so far: those of one moment ring in the order in which they were set
}

func newWorld(seed uint64) *world { return &world{Rand: rand.New(rand.NewPCG(seed, 1))} }

// process is something that sleeps and goes on.
type process struct {
	w     *world
	next  func() (time.Duration, bool)
	yield func(time.Duration) bool
}

// forever is a sleep that only wake ends.
const forever = time.Duration(-1)

// start begins a process at the present moment.
func (w *world) start(run func(p *process)) *process {
	p := &process{w: w}
	p.next, _ = iter.Pull(func(yield func(time.Duration) bool) {
		p.yield = yield
		run(p)
	})
	w.set(p, 0)
	return p
}

// run goes on until nobody does anything any more.
func (w *world) run() {
	for len(w.queue) > 0 {
		a := heap.Pop(&w.queue).(alarm)
		w.now = a.at
		if d, more := a.p.next(); more && d != forever {
			w.set(a.p, d)
		}
	}
}

func (w *world) set(p *process, in time.Duration) {
	w.count++
	heap.Push(&w.queue, alarm{w.now + in, w.count, p})
}

// sleep has the process go on after d.
func (p *process) sleep(d time.Duration) { p.yield(d) }

// park has the process go on when somebody wakes it.
func (p *process) park() { p.yield(forever) }

// wake has a process go on that is parked.
func (w *world) wake(p *process) { w.set(p, 0) }

// about is a random time, of which the mean is this.
func (w *world) about(mean time.Duration) time.Duration {
	return time.Duration(w.ExpFloat64()*float64(mean)/2) + mean/2 + time.Duration(w.IntN(1000))
}

// chance reports whether something of that probability happens.
func (w *world) chance(probability float64) bool { return w.Float64() < probability }

type alarm struct {
	at    time.Duration
	order uint64
	p     *process
}

type alarms []alarm

func (a alarms) Len() int { return len(a) }

func (a alarms) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}

func (a alarms) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *alarms) Push(x any) { *a = append(*a, x.(alarm)) }

func (a *alarms) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
