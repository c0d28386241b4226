package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// pause is how long a worker waits that couldn't read, before it tries again: its server may be starting.
const pause = 5 * time.Millisecond

// worker goes the rounds.
type worker struct {
	*Application
	account
	client *client
	random *rand.Rand

	doc  document // what it holds: what it read, or sent last
	rev  revision
	left int // writes that it still makes from doc
}

// worker makes the i-th of the application's workers, on connections of its own or on those of the pool.
func (a *Application) worker(i int, pool *http.Transport) *worker {
	number := a.First + i
	c := &client{url: a.URLs[i%len(a.URLs)] + a.Path, guard: a.Guard, header: http.Header{}}
	switch a.Sessions {
	case Named:
		c.header.Set(SessionHeader, "worker-"+strconv.Itoa(number))
	case Credentialed:
		r := http.Request{Header: c.header}
		r.SetBasicAuth("worker-"+strconv.Itoa(number), "secret")
	}
	transport := pool
	if a.Sessions != Pooled {
		transport, c.owned = a.transport(2), true
	}
	c.http = &http.Client{Transport: transport, Timeout: a.Timeout}
	return &worker{
		Application: a, account: account{number: number}, client: c,
		random: rand.New(rand.NewPCG(uint64(number), uint64(a.Shape))), //nolint:gosec // the same for every run
	}
}

func (w *worker) run(ctx context.Context) {
	for n := 0; n < w.Rounds && ctx.Err() == nil; n++ {
		w.round(ctx, n)
		w.rounds++
		if w.Round != nil {
			w.Round()
		}
	}
}

// round is one read, one change, one write. A guarded worker begins again after a conflict.
func (w *worker) round(ctx context.Context, n int) {
	if w.chance(w.Looks) && !w.look(ctx) {
		return
	}
	idle := w.chance(w.Idle)
	step := 1 + w.random.IntN(max(w.Steps, 1))
	for ctx.Err() == nil {
		if !w.hold(ctx) {
			return
		}
		var size int64
		var entries []string
		if !idle {
			size, entries = w.Shape.change(w.doc, w.number, n, step)
		}
		again := w.save(ctx, idle, size, entries)
		if !again {
			return
		}
	}
}

func (w *worker) chance(percent int) bool { return percent > 0 && w.random.IntN(100) < percent }

// watch reads for display, until ctx ends.
func (w *worker) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w.look(ctx)
	}
}

// look reads for display only.
func (w *worker) look(ctx context.Context) bool {
	_, _, err := w.client.get(ctx)
	return err == nil || w.missed(ctx, err)
}

// hold gets a document to change: from memory, or by a read.
func (w *worker) hold(ctx context.Context) bool {
	if w.left > 0 {
		w.left--
		return true
	}
	for {
		d, rev, err := w.client.get(ctx)
		if err == nil {
			w.doc, w.rev, w.left = d, rev, max(w.Memory, 1)-1
			return true
		}
		if !w.missed(ctx, err) {
			return false
		}
	}
}

// missed counts a read that failed. It reports whether there is any use in another one.
func (w *worker) missed(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var s *StatusError
	if errors.As(err, &s) {
		w.refuse(s.Status, []byte(s.Body))
	} else {
		w.fail(err)
	}
	w.pause(ctx)
	return ctx.Err() == nil
}

// pause waits for a server that may be starting.
func (w *worker) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// save writes what the worker holds and books the answer. again says that the round begins anew.
func (w *worker) save(ctx context.Context, idle bool, size int64, entries []string) (again bool) {
	body, err := encode(w.doc)
	if err != nil {
		w.fail(err)
		return false
	}
	r, err := w.client.send(ctx, body, w.rev)
	broken := false
	for err != nil && (w.Resends || timedOut(err)) && ctx.Err() == nil {
		w.repeats++
		if broken = broken || !timedOut(err); broken {
			w.pause(ctx)
		}
		r, err = w.client.send(ctx, body, w.rev)
	}
	if err != nil {
		w.fail(fmt.Errorf("writing: %w", err))
		w.unsureOf(size, entries)
		w.left = 0
		return false
	}
	if w.OnAnswer != nil {
		w.OnAnswer(r.status, r.header)
	}
	switch {
	case r.acknowledged():
		w.acknowledge(idle, size, entries)
		w.rev = r.revision
		return false
	case r.status >= 500, broken: // the first try may have been applied
		w.unsureOf(size, entries)
	}
	w.left = 0 // what it holds isn't what is stored: it reads again
	w.refuse(r.status, r.body)
	if r.status == http.StatusConflict && (w.Guard == ByNumbers || w.Guard == ByAnswer) {
		w.conflicts++
		return true
	}
	return false
}

func (w *worker) acknowledge(idle bool, size int64, entries []string) {
	if idle {
		w.idle++
	}
	w.acknowledged += size
	w.sure = append(w.sure, entries...)
}

func (w *worker) unsureOf(size int64, entries []string) {
	w.unknown += size
	w.unsure = append(w.unsure, entries...)
}

func timedOut(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
