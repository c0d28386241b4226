package proxy

import "time"

// Limits bound what clients can cost. The zero value of a field means its default; a negative duration switches that
// limit off, a negative count or size does too where it says so.
type Limits struct {
	// MaxConnections is how many clients may be connected at once. A further client gets 503 too_many_connections and is
	// disconnected: an answer at once is better than a place in an invisible queue. Default 10000, negative: no limit.
	MaxConnections int
	// HeaderTimeout is the time from a head's first byte to its end. Over it: 408. Default 10s.
	HeaderTimeout time.Duration
	// BodyTimeout is how long a request's body may move more slowly than MinRate while optimist waits for it. Time in which the
	// engine doesn't take bytes doesn't count. Over it: 408. Default 30s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take its answer more slowly than MinRate. Bytes that the client's system has
	// acknowledged count as taken, or, where that can't be asked, those in our own system's buffer. Over it the
	// connection is closed. Default 30s.
	WriteTimeout time.Duration
	// MinRate is how many bytes a second a body or an answer must move, averaged over one timeout. Default 240. Negative: one
	// byte in the whole timeout is enough.
	MinRate int
	// IdleTimeout is how long a connection may stay open between requests. Default 2m: longer than the pools of usual
	// clients and balancers keep theirs (Go 90s, AWS 60s), so that the client closes first and never meets a closed door.
	IdleTimeout time.Duration
	// MaxHeader is the largest head in bytes, request line included. Default 64 KiB. Over it: 431.
	MaxHeader int
	// MaxBody is the largest body in bytes that Exchange.Body collects, whatever its caller allows. Default 100 MiB, the
	// engine's own http.max_content_length. Bodies that are only forwarded have no limit here: the engine has one.
	MaxBody int64
	// Outcome is how long the answer to a write is waited for after its client has left. Then the write's outcome is unknown, and its
	// place upstream is another client's. Default 5s, negative: no limit.
	Outcome time.Duration
	// Linger is how long optimist reads and drops what a client still sends after its answer. It is for answers that come before
	// the request's end: without it the client would get a reset instead of the answer. Without a byte it ends after a sixth of
	// that time. Default 30s.
	Linger time.Duration
	// MaxLinger is how many bytes are dropped like that. Some clients send a whole body before they read. Default 128 MiB: a
	// little more than the engine takes.
	MaxLinger int64
	// Tick is how often the watcher looks at the connections. It is the resolution of the time limits above, and a client that
	// leaves while the engine works is noticed within two of them. Default 100ms.
	Tick time.Duration
}

// withDefaults fills in the fields that are zero.
func (l Limits) withDefaults() Limits {
	setDefault(&l.MaxConnections, 10000)
	setDefault(&l.HeaderTimeout, 10*time.Second)
	setDefault(&l.BodyTimeout, 30*time.Second)
	setDefault(&l.WriteTimeout, 30*time.Second)
	setDefault(&l.MinRate, 240)
	setDefault(&l.IdleTimeout, 2*time.Minute)
	setDefault(&l.MaxHeader, 64<<10)
	setDefault(&l.MaxBody, 100<<20)
	setDefault(&l.Outcome, 5*time.Second)
	setDefault(&l.Linger, 30*time.Second)
	setDefault(&l.MaxLinger, 128<<20)
	setDefault(&l.Tick, 100*time.Millisecond)
	if l.Tick < time.Millisecond {
		l.Tick = time.Millisecond
	}
	return l
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
