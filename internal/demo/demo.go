// Package demo is `optimist demo`. It lets an application that doesn't use versions work, first directly on an engine and then
// through optimist, and shows how many changes were lost each time.
//
// Its figures are of this machine and this minute; e2e/bench has the ones to quote.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"optimist/internal/demo/app"
)

// ErrInterrupted reports that the demonstration was ended before its table was there: nothing is known about changes.
var ErrInterrupted = errors.New("interrupted before the table was there")

// ErrLost reports that the document lacks a change that was acknowledged through optimist, or has a change that no worker made.
var ErrLost = errors.New("changes were lost through optimist")

// Run runs the demonstration, and prints it to out. It returns ErrLost if optimist lost a change. Other errors say why the demonstration
// couldn't run, or ErrInterrupted. The end of the context is no error for a demonstration that serves on after its table.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	s := &stage{Options: o, out: out, index: "demo-" + strings.ToLower(rand.Text()[:8])}
	end, err := s.open(ctx)
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return unlessEnded(ctx, err)
	}
	fmt.Fprintf(out, "%s\n\n", s.banner())
	c, err := s.configuration()
	if err != nil {
		return err
	}
	proxy, stop, err := o.Optimist(ctx, c)
	if err != nil {
		return fmt.Errorf("starting optimist: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()
	s.proxy = proxy
	results, err := s.play(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	printTable(out, s, results)
	if !o.Once {
		if err := s.invite(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		<-ctx.Done()
	}
	return verdict(results)
}

// unlessEnded returns err, or ErrInterrupted if the context has ended: then that is the cause of err.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// play lets the application work on each shape, straight at the engine and through optimist.
func (s *stage) play(ctx context.Context) ([]outcome, error) {
	var results []outcome
	for _, shape := range app.Shapes() {
		o := outcome{shape: shape}
		for _, side := range []struct {
			where, url, doc string
			into            *app.Result
		}{
			{"without optimist", s.engine, "direct", &o.direct},
			{"through optimist", s.proxy, "through", &o.through},
		} {
			a := app.Application{
				URLs: []string{side.url}, Store: s.engine, Path: "/" + s.index + "/_doc/" + shape.String() + "-" + side.doc,
				Shape: shape, Workers: s.Workers, Rounds: s.Rounds,
			}
			line := &turn{out: s.out, terminal: s.Terminal, name: labelOf(shape) + ", " + side.where, total: s.Workers * s.Rounds}
			a.Round = line.step
			r, err := a.Run(ctx)
			if err == nil {
				err = ctx.Err()
			}
			line.done(&r, err)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", labelOf(shape), side.where, err)
			}
			*side.into = r
		}
		results = append(results, o)
	}
	return results, nil
}

// verdict is an error if a change went missing, or came from nowhere, through optimist.
func verdict(results []outcome) error {
	for _, o := range results {
		r := &o.through
		switch {
		case r.Lost > 0 || r.Invented > 0:
			return fmt.Errorf("%w: %s: %d lost, %d invented", ErrLost, labelOf(o.shape), r.Lost, r.Invented)
		case len(r.Damaged) > 0:
			return fmt.Errorf("%w: %s: %s", ErrLost, labelOf(o.shape), r.Damaged[0])
		case r.Acknowledged == 0:
			return fmt.Errorf("%w: %s: no change was acknowledged: %s", ErrLost, labelOf(o.shape), r)
		}
	}
	return nil
}
