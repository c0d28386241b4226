package proxy

import "optimist/internal/api"

// Metrics gets the events of the door. Many goroutines call its methods on the path of every request: they must neither block
// nor allocate, and must not keep their arguments.
type Metrics interface {
	// Request is called at the end of every request whose head was read. d is valid during the call.
	Request(d *Done)
	// Failed is called with the Type of each error that the door itself answers: refusals, and failures upstream.
	Failed(typ string)
}

// Done describes a request that has ended.
type Done struct {
	Kind     api.Kind
	Status   int   // of the final answer; 0 if the client left before there was one
	Received int64 // bytes of the request's body, without transfer coding
	Sent     int64 // bytes of the answer's body, without transfer coding
}

// noMetrics is a Metrics that keeps nothing.
type noMetrics struct{}

func (noMetrics) Request(*Done) {}

func (noMetrics) Failed(string) {}
