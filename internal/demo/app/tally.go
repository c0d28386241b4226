package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tally is the accounts of all workers.
type Tally struct {
	workers []account
	elapsed time.Duration
}

// account is what the answers to one worker say. A change's size is its step: how much it adds to the counter, or how many entries to
// the list.
type account struct {
	number int // the worker's
	rounds int64

	acknowledged int64    // sizes of changes that were answered with success
	unknown      int64    // sizes of changes of which the worker never heard
	sure, unsure []string // the list's entries of both kinds

	refused   map[int]int64 // answers that weren't success, by status
	refusal   string        // the first of them
	conflicts int64         // of those, what a guarded worker expects: it begins again
	idle      int64         // acknowledged saves of what was read, unchanged
	repeats   int64         // writes sent again after a time-out
	errors    int64         // requests without an answer
	failure   error         // the first of them
}

func (a *account) refuse(status int, body []byte) {
	if a.refused == nil {
		a.refused = make(map[int]int64)
		a.refusal = fmt.Sprintf("%d %.500s", status, body)
	}
	a.refused[status]++
}

func (a *account) fail(err error) {
	a.errors++
	if a.failure == nil {
		a.failure = err
	}
}

// Result compares the answers to the application with what it found.
type Result struct {
	// Rounds that ended, whatever their end.
	Rounds int64
	// Acknowledged changes: the sum of their sizes.
	Acknowledged int64
	// Unknown changes: their writes had no answer, or an answer with an unknown outcome. They may be in the document or not.
	Unknown int64
	// Found changes in the document.
	Found int64
	// Lost changes: acknowledged, and not found. Missing names some of them, where they have names.
	Lost    int64
	Missing []string
	// Invented changes: found, and neither acknowledged nor unknown.
	Invented int64
	// Refused writes: answered, and not with success. Conflicts that a guarded worker expects aren't among them.
	Refused int64
	// Conflicts that guarded workers met.
	Conflicts int64
	// Idle saves, which changed nothing, that were acknowledged.
	Idle int64
	// Repeats are writes sent again after a time-out.
	Repeats int64
	// Errors are requests without an answer. FirstError is one of them.
	Errors     int64
	FirstError error
	// Damaged says what in the document no worker ever wrote, or is empty.
	Damaged []string
	// Statuses are the answers that weren't success, by status. FirstRefusal is one of them, with its body.
	Statuses     map[int]int64
	FirstRefusal string
	// Elapsed from the first read to the last answer.
	Elapsed time.Duration
}

func (r *Result) add(a *account) {
	r.Rounds += a.rounds
	r.Acknowledged += a.acknowledged
	r.Unknown += a.unknown
	r.Conflicts += a.conflicts
	r.Idle += a.idle
	r.Repeats += a.repeats
	r.Errors += a.errors
	if r.FirstError == nil {
		r.FirstError = a.failure
	}
	r.FirstRefusal = cmp.Or(r.FirstRefusal, a.refusal)
	r.Refused -= a.conflicts
	for status, n := range a.refused {
		r.Statuses[status] += n
		r.Refused += n
	}
}

// PerSecond is how many rounds ended in a second.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Rounds) / r.Elapsed.Seconds()
}

// String tells all that isn't zero.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds, %d acknowledged, %d found, %d lost, %d invented, %d refused", r.Rounds, r.Acknowledged, r.Found, r.Lost,
		r.Invented, r.Refused)
	for _, part := range []struct {
		name string
		n    int64
	}{{"unknown", r.Unknown}, {"conflicts", r.Conflicts}, {"idle", r.Idle}, {"repeats", r.Repeats}, {"errors", r.Errors}} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.name)
		}
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(&b, ", missing %v", r.Missing)
	}
	if r.FirstError != nil {
		fmt.Fprintf(&b, " (%v)", r.FirstError)
	}
	if len(r.Statuses) > 0 {
		fmt.Fprintf(&b, ", statuses %v, of them %s", r.Statuses, r.FirstRefusal)
	}
	if len(r.Damaged) > 0 {
		fmt.Fprintf(&b, ", damaged: %s", strings.Join(r.Damaged[:min(len(r.Damaged), 5)], "; "))
	}
	fmt.Fprintf(&b, ", %.0f rounds/s", r.PerSecond())
	return b.String()
}

func (r *Result) damaged(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.Damaged, s) {
		r.Damaged = append(r.Damaged, s)
	}
}
