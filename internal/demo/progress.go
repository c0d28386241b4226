package demo

import (
	"fmt"
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"optimist/internal/demo/app"
)

// progress shows how far the work has come: bars on a terminal, else a line for each turn when it is over.
type progress struct {
	out   io.Writer
	bars  *mpb.Progress // nil without a terminal
	total int
}

func newProgress(out io.Writer, terminal bool, total int) *progress {
	p := &progress{out: out, total: total}
	if terminal {
		p.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(40))
	}
	return p
}

// close waits until the bars are drawn for the last time.
func (p *progress) close() {
	if p.bars != nil {
		p.bars.Wait()
	}
}

// turn is the progress of one run of the application.
type turn struct {
	p    *progress
	name string
	bar  *mpb.Bar
}

func (p *progress) start(name string) *turn {
	t := &turn{p: p, name: name}
	if p.bars != nil {
		t.bar = p.bars.AddBar(int64(p.total),
			mpb.PrependDecorators(decor.Name(name, decor.WC{W: 42, C: decor.DindentRight})),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d rounds")))
	}
	return t
}

// step is called after each round, by all workers.
func (t *turn) step() {
	if t.bar != nil {
		t.bar.Increment()
	}
}

// done ends the turn, also one that failed: a bar that is never full is waited for, for ever.
func (t *turn) done(r *app.Result, err error) {
	switch {
	case t.bar != nil && err != nil:
		t.bar.Abort(false)
	case t.bar != nil:
		t.bar.SetTotal(-1, true)
	case err == nil:
		fmt.Fprintf(t.p.out, "%s: %d changes acknowledged, %s lost, %.0f rounds/s\n", t.name, r.Acknowledged, lost(r), r.PerSecond())
	}
}
