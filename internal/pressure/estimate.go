package pressure

import "time"

// signal is what the end of a write says of the engine.
type signal uint8

const (
	unheard  signal = iota // nothing: its answer didn't come, or another reason than work ended the write
	done                   // the engine had time for it
	rejected               // the engine has too much to do
)

// estimate is how many writes may be out at once. It is the algorithm that Netflix published as Gradient (in concurrency-limits, 2018),
// with what TCP does at its start and when a packet is lost.
//
// Answers are looked at in windows. The quickest window of the last seconds shows what the engine needs for a write when none waits there.
// While answers take hardly longer than that, the limit grows. When they take more than half as long again, a line has formed in the
// engine, and the limit shrinks in proportion. From time to time the limit is halved for some windows, so that the line goes, and what the
// engine needs can be seen anew. A window in which the engine rejected a write cuts the limit by a tenth.
type estimate struct {
	limit, ceiling float64
	slowed         bool       // the limit has been too high before: it grows by steps since
	quickest       [2]float64 // window, in seconds an answer: since the last probe, and between the last two; 0: none
	probed         time.Time
	probing        int     // windows that the probe still lasts
	resume         float64 // the limit after it

	// The window.
	since    time.Time
	sum      time.Duration
	answers  int
	rejected bool
	most     int // writes that were out at once
}

const (
	floor     = 8   // places: below it a limit can't tell whether it is too low, and one address could have all of them
	tolerance = 1.5 // × the quickest isn't slow yet
	headroom  = 4   // places that a line in the engine may have, without which the limit would never grow
	smoothing = 0.2 // of a window's own result in the limit
	growth    = 1.2 // × a window, until an answer was slow for the first time
	cut       = 0.9

	window        = 100 * time.Millisecond // long enough for an engine's answers to be many
	windowAnswers = 10
	probeEvery    = 10 * time.Second
	probeWindows  = 3
)

func newEstimate(most int) estimate {
	return estimate{limit: floor, ceiling: float64(max(most, floor))}
}

// places is the limit.
func (e *estimate) places() int { return int(e.limit) }

// answered takes note of the end of a write.
func (e *estimate) answered(now time.Time, took time.Duration, s signal) {
	switch s {
	case done:
		e.sum += took
		e.answers++
	case rejected:
		e.rejected = true
	case unheard:
		return
	}
	if e.since.IsZero() {
		e.since, e.probed = now, now
	}
	if now.Sub(e.since) < window || e.answers < windowAnswers && !e.rejected {
		return
	}
	e.adjust(now)
	e.since, e.sum, e.answers, e.rejected, e.most = now, 0, 0, false, 0
}

// adjust ends a window.
func (e *estimate) adjust(now time.Time) {
	if e.rejected {
		e.limit, e.slowed, e.probing = max(floor, e.limit*cut), true, 0
		return
	}
	took := max(e.sum.Seconds()/float64(e.answers), 1e-9)
	if e.quickest[0] == 0 || took < e.quickest[0] {
		e.quickest[0] = took
	}
	switch {
	case e.probing > 1:
		e.probing--
	case e.probing == 1:
		e.limit, e.probing = e.resume, 0
	case now.Sub(e.probed) >= probeEvery:
		e.quickest = [2]float64{0, e.quickest[0]}
		e.probed, e.probing, e.resume = now, probeWindows, e.limit
		e.limit = max(floor, e.limit/2)
	case float64(e.most) >= e.limit/2: // else so few were out that their answers say nothing of the limit
		e.follow(took)
	}
}

// follow moves the limit after a window in which an answer took so many seconds.
func (e *estimate) follow(took float64) {
	quickest := e.quickest[0]
	if e.quickest[1] > 0 {
		quickest = min(quickest, e.quickest[1])
	}
	gradient := min(1, max(0.5, tolerance*quickest/took))
	e.slowed = e.slowed || gradient < 1
	next := e.limit * growth
	if e.slowed {
		next = e.limit*(1-smoothing) + (e.limit*gradient+headroom)*smoothing
	}
	e.limit = min(e.ceiling, max(floor, next))
}
