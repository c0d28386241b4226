// Package app is an application that doesn't use versions. Its workers read a document, change it, and write it back whole, all
// at once. It counts the changes that were acknowledged, and those that are in the document at the end.
//
// It counts honestly, but writes carelessly: without a guard it loses most of its writes. This is its purpose.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Sessions says how the workers look from outside.
type Sessions uint8

const (
	// Unnamed workers have connections of their own, and nothing else tells them apart.
	Unnamed Sessions = iota
	// Named workers send the name of their thread of work in the field SessionHeader.
	Named
	// Pooled workers share connections, fewer than there are workers: requests of several come mixed on each.
	Pooled
	// Credentialed workers have credentials of their own.
	Credentialed
)

// SessionHeader is the field by which a named worker tells its thread of work.
const SessionHeader = "Optimist-Session"

// Guard says what a worker that knows of versions does with them. It is for the writers beside the unmodified ones.
type Guard uint8

const (
	// Unguarded workers know nothing of versions.
	Unguarded Guard = iota
	// ByNumbers workers send if_seq_no and if_primary_term as they last got them, and begin again after a 409.
	ByNumbers
	// ByMatch workers send the ETag that they last got as If-Match.
	ByMatch
	// ByAnswer workers write their first change unguarded, and later changes under the numbers of the last answer. They begin again after
	// a 409.
	ByAnswer
)

// Application is a program with many workers on one document. Its fields must not change while it works.
type Application struct {
	// URLs are where the workers send their requests to; they take turns. One at least.
	URLs []string
	// Store is where the document is put first and counted in the end. Default the first of URLs.
	Store string
	// Path of the document: /index/_doc/id.
	Path string

	Shape   Shape
	Workers int
	// First is the number of the first worker: several applications on one document must not share numbers.
	First int
	// Entries are in the list from the start. Default none.
	Entries int
	// Rounds that each worker goes: a read, and a write of what was read.
	Rounds   int
	Sessions Sessions
	Guard    Guard

	// Steps is how large a change is at most: of 1 to Steps. Default 1.
	Steps int
	// Readers is how many there are beside the workers that read the document without a pause and never write. Default none.
	Readers int
	// Looks is how many of 100 rounds have a read for display only, before the one that counts.
	Looks int
	// Idle is how many of 100 rounds save what they read, unchanged.
	Idle int
	// Memory is how many writes a worker makes from one read: after the first, it changes what it sent last. Default 1.
	Memory int
	// Timeout is after how long a worker gives a request up. 0: never. A write that was given up is sent again, as it was.
	Timeout time.Duration

	// Resends has workers send a write again, as it was, whose connection broke, until it is answered.
	Resends bool

	// Round, if any, is called when a round ends, by all workers at once.
	Round func()
	// Answered, if any, is called with each answer to a write, by all workers at once.
	OnAnswer func(status int, header http.Header)
}

// Run does it all: puts the document there, lets the workers work, and counts. The error says why it couldn't be done;
// what the workers met is in the Result.
func (a *Application) Run(ctx context.Context) (Result, error) {
	if err := a.Prepare(ctx); err != nil {
		return Result{}, err
	}
	return a.Count(ctx, a.Work(ctx))
}

// Prepare puts the document there as it is before any change.
func (a *Application) Prepare(ctx context.Context) error {
	c := a.storeClient()
	defer c.close()
	d := a.Shape.seed(a.First, a.Workers)
	if a.Shape == List {
		d[listField] = a.entries()
	}
	r, err := c.put(ctx, d, revision{})
	if err != nil {
		return fmt.Errorf("putting the document there: %w", err)
	}
	if !r.acknowledged() {
		return fmt.Errorf("putting the document there: %w", &StatusError{r.status, string(r.body)})
	}
	return nil
}

// Work lets all workers go their rounds, or until ctx ends, and returns the account of each.
func (a *Application) Work(ctx context.Context) *Tally {
	pool := a.transport(max(a.Workers/2, 1))
	defer pool.CloseIdleConnections()
	t := &Tally{workers: make([]account, a.Workers)}
	watching, enough := context.WithCancel(ctx)
	var readers, wg sync.WaitGroup
	for i := range a.Readers {
		readers.Go(func() {
			w := a.worker(a.Workers+i, pool)
			defer w.client.close()
			w.watch(watching)
		})
	}
	start := time.Now()
	for i := range a.Workers {
		wg.Go(func() {
			w := a.worker(i, pool)
			defer w.client.close()
			w.run(ctx)
			t.workers[i] = w.account
		})
	}
	wg.Wait()
	t.elapsed = time.Since(start)
	enough()
	readers.Wait()
	return t
}

// Count reads the document and compares it with the accounts of all tallies, which must be of one shape.
func (a *Application) Count(ctx context.Context, tallies ...*Tally) (Result, error) {
	c := a.storeClient()
	defer c.close()
	d, rev, err := c.get(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("counting: %w", err)
	}
	if !rev.found {
		return Result{}, errors.New("counting: the document isn't there any more")
	}
	var accounts []account
	r := Result{Statuses: make(map[int]int64)}
	for _, t := range tallies {
		accounts = append(accounts, t.workers...)
		r.Elapsed = max(r.Elapsed, t.elapsed)
	}
	for i := range accounts {
		r.add(&accounts[i])
	}
	a.Shape.count(d, accounts, &r)
	a.countEntries(d, &r)
	return r, nil
}

func (a *Application) storeClient() *client {
	base := cmp.Or(a.Store, a.URLs[0])
	return &client{url: base + a.Path, http: &http.Client{Transport: a.transport(1)}}
}

func (a *Application) transport(connections int) *http.Transport {
	return &http.Transport{
		MaxConnsPerHost:     connections,
		MaxIdleConnsPerHost: connections,
		DisableCompression:  true,
	}
}
