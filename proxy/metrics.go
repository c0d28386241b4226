package proxy

// Metrics gets the events of the door; *obs.Metrics is one. Many goroutines call its methods on the path of every request: they must
// neither block nor allocate.
type Metrics interface {
	// Request is called at the end of every request whose head was read: with its operation, the status of the final answer (0 if the
	// client left before there was one), and the bytes of the request's and the answer's body, without transfer coding.
	Request(op string, status int, received, sent int64)
	// Failed is called with the type of each error that isn't the engine's, but of the door or of an interceptor.
	Failed(errorType string)
}
