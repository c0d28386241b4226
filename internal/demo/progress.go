package demo

import (
	"fmt"
	"io"
	"sync"

	"optimist/internal/demo/app"
)

// turn is the progress of one run of the application: on a terminal one line that is drawn over and over, else a line when it is over.
type turn struct {
	out      io.Writer
	terminal bool
	name     string
	total    int

	mu     sync.Mutex
	rounds int
}

// step is called after each round, by all workers. It draws a hundred times at most.
func (t *turn) step() {
	t.mu.Lock()
	defer t.mu.Unlock()
	percent := t.rounds * 100 / t.total
	t.rounds++
	if t.terminal && t.rounds*100/t.total > percent {
		fmt.Fprintf(t.out, "\r%-42s %d / %d rounds", t.name, t.rounds, t.total)
	}
}

// done ends the turn, also one that failed.
func (t *turn) done(r *app.Result, err error) {
	switch {
	case t.terminal:
		fmt.Fprintln(t.out)
	case err == nil:
		fmt.Fprintf(t.out, "%s: %d changes acknowledged, %s lost, %.0f rounds/s\n", t.name, r.Acknowledged, lost(r), r.PerSecond())
	}
}
