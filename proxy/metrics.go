package proxy

import "optimist/internal/api"

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

// nobody is told, and keeps nothing.
type nobody struct{}

func (nobody) Request(*Done) {}

func (nobody) Failed(string) {}
