package proxy

import "time"

// Limits bound what clients can cost. The zero value of a field means its default; a negative duration switches that
// limit off, a negative count or size does too where it says so.
type Limits struct {
	// MaxConnections is how many clients may be connected at once. A client over it gets 503 too_many_connections and is
	// disconnected: an answer at once is better than a place in a queue that nobody sees. Default 10000, negative: no limit.
	MaxConnections int
	// HeaderTimeout is the time from a head's first byte to its end. Default 10s. A head that comes drop by drop is
	// answered with 408.
	HeaderTimeout time.Duration
	// BodyTimeout is how long a request body may make no progress while the proxy waits for it; progress is MinRate.
	// Default 30s. Time that the engine takes to accept bytes doesn't count. Over it: 408.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take nothing of its answer; progress is MinRate. Default 30s. What the kernel's
	// send buffer takes counts as taken. Over it the connection is closed.
	WriteTimeout time.Duration
	// MinRate is the least bytes a second, averaged over one timeout's length of waiting, that a body or an answer must move to
	// count as progress. Default 240. Negative: one byte is progress.
	MinRate int
	// IdleTimeout is how long a connection may stay open between requests. Default 2m: longer than the pools of usual
	// clients and balancers keep theirs (Go 90s, AWS 60s), so that the client closes first and never meets a closed door.
	IdleTimeout time.Duration
	// MaxHeader is the largest head in bytes, request line included. Default 64 KiB. Over it: 431.
	MaxHeader int
	// MaxBody is the largest body in bytes that Exchange.Body collects, whatever its caller allows. Default 100 MiB, the
	// engine's own http.max_content_length. Bodies that are only forwarded have no limit here: the engine has one.
	MaxBody int64
	// Linger is how long a connection is read and thrown away after an answer that came before the request's end, so that a
	// client that is still sending gets to read the answer instead of a reset. It ends after a sixth of that without a byte.
	// Default 30s.
	Linger time.Duration
	// MaxLinger is how many bytes are thrown away like that. Default 128 MiB: somewhat above what the engine takes, because
	// some clients send a whole body before they read.
	MaxLinger int64
	// Tick is how often the connections are looked at: the resolution of the time limits above, and how soon a client that
	// left while the engine was working is noticed. Default 100ms.
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
