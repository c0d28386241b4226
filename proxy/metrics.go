package proxy

import (
	"sync/atomic"

	"optimist/internal/api"
)

// Metrics is told what the door did. Its methods are called on the path of every request, by many goroutines: they must
// neither block nor allocate, and must not keep what they are given.
type Metrics interface {
	// Request is called once for every request whose head was read, at its end. d is valid during the call.
	Request(d *Done)
	// Failed is called with the Type of each error that the door itself answers: refusals, and failures upstream.
	Failed(typ string)
}

// Done is one request at its end.
type Done struct {
	Kind     api.Kind
	Status   int   // of the final answer; 0 if the client left before there was one
	Received int64 // bytes of the request's body, without transfer coding
	Sent     int64 // bytes of the answer's body, without transfer coding
}

// Counters is a Metrics that counts in memory. The zero value is ready; it may be read while it is written.
type Counters struct {
	requests       [api.Kinds][6]atomic.Int64
	failed         [len(failureTypes)]atomic.Int64
	received, sent atomic.Int64
}

// Request implements Metrics.
func (c *Counters) Request(d *Done) {
	class := d.Status / 100
	if class < 0 || class > 5 {
		class = 0
	}
	if int(d.Kind) < api.Kinds {
		c.requests[d.Kind][class].Add(1)
	}
	if d.Received > 0 {
		c.received.Add(d.Received)
	}
	if d.Sent > 0 {
		c.sent.Add(d.Sent)
	}
}

// Failed implements Metrics.
func (c *Counters) Failed(typ string) {
	for i, t := range failureTypes {
		if t == typ {
			c.failed[i].Add(1)
			return
		}
	}
}

// Requests returns how many requests of a kind were answered with a status of that class (2 for 2xx; 0 where the client
// left before an answer).
func (c *Counters) Requests(k api.Kind, class int) int64 { return c.requests[k][class].Load() }

// Failures returns how many errors of that Type the door answered.
func (c *Counters) Failures(typ string) int64 {
	for i, t := range failureTypes {
		if t == typ {
			return c.failed[i].Load()
		}
	}
	return 0
}

// Bytes returns how many bytes of bodies came from clients and went to them.
func (c *Counters) Bytes() (received, sent int64) { return c.received.Load(), c.sent.Load() }
