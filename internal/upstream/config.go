package upstream

import (
	"errors"
	"fmt"
	"time"

	"optimist/internal/hook"
	"optimist/internal/wire"
)

// Config says where the engine is and how it is talked to. Zero values take the defaults that the fields name.
type Config struct {
	// URLs are the nodes, http or https, with an optional base path that is put before every request target. Credentials
	// in them are refused: they belong in files.
	URLs []string
	// TLS is for the https ones among URLs.
	TLS TLS
	// Authorization is the ready value of the field, attached only to requests with Own. It is a secret and never part of
	// an error. Empty: our own requests are anonymous.
	Authorization string

	// ConnectTimeout bounds name resolution, connect and TLS handshake together. Default 2s.
	ConnectTimeout time.Duration
	// AcquireTimeout bounds the wait for one of MaxConns connections; after it the request fails as NotSent. Default 5s.
	AcquireTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept. It should be below that of everything between us and the
	// engine, or writes are lost on connections that were just closed. Default 50s.
	IdleTimeout time.Duration
	// MaxConns bounds the open connections to one node, MaxIdle the unused ones. Defaults 512, and MaxConns.
	MaxConns, MaxIdle int
	// MaxHead bounds an answer's head in bytes. Default wire.DefaultMaxHead.
	MaxHead int
	// MaxAnswer bounds the body in bytes that Do collects. Default 128 MiB: the engine takes documents of up to 100 MiB.
	MaxAnswer int64

	// HealthInterval is how often every node is asked for "GET /". Negative: no checks at all, and an ejected node comes
	// back only when it is tried for want of another. Default 10s.
	HealthInterval time.Duration
	// HealthTimeout bounds one check. Default 3s.
	HealthTimeout time.Duration
	// EjectMin and EjectMax are the waits before an ejected node is checked again: it doubles from the one to the other.
	// Defaults 100ms and 10s.
	EjectMin, EjectMax time.Duration

	// Hooks are told what happens, for metrics and logs.
	Hooks Hooks
}

// TLS says who the nodes are and who we are. The zero value trusts the system's authorities.
type TLS struct {
	// CAFile is a PEM file of the authorities that are trusted instead of the system's.
	CAFile string
	// CertFile and KeyFile are our client certificate and its key, both PEM, both or none.
	CertFile, KeyFile string
	// ServerName is the name that the nodes' certificate must have. Default: the host in the URL.
	ServerName string
	// Insecure accepts any certificate. Danger: whoever is on the path reads and changes everything, credentials included.
	Insecure bool
}

// Hooks are called on the path of requests, from many goroutines at once: they must be quick and must not block. Any may be nil.
// The first argument of most is the node: always a configured URL, so that it may be a metric's label.
type Hooks struct {
	// Dialed reports an attempt to connect and how long it took, in success with a nil error.
	Dialed hook.Func3[string, time.Duration, error]
	// Waited reports that a request waited for a free connection.
	Waited hook.Func2[string, time.Duration]
	// Resent reports that a request is tried again after err.
	Resent hook.Func1[*Error]
	// Ejected reports that a node is out of the rotation, Returned that it is back.
	Ejected  hook.Func2[string, error]
	Returned hook.Func1[string]
	// Credentials reports that a node refuses Config.Authorization, with the status of its answer to "GET /"; or, with a status
	// of 0, that the node accepts it again.
	Credentials hook.Func2[string, int]
}

// Source is a request's body, or the rest of it, while it is still arriving. The goroutine that calls Next is not the one
// that called Send.
type Source interface {
	// Next returns the next bytes, valid until the following call, and io.EOF after the last ones. *wire.Body has it.
	Next() ([]byte, error)
	// Interrupt makes a Next that is under way, and all later ones, return an error soon. It is called from another
	// goroutine, and only when the rest of the body isn't wanted any more.
	Interrupt()
}

// Request is what goes to the engine. It must not change until the exchange is finished.
type Request struct {
	Method string
	// Target is sent as it is, behind the node's base path.
	Target []byte
	// Fields are the end-to-end fields, sent in their order and spelling. Without a Host among them the node's is added. A
	// Content-Length keeps its place; its value is that of the body. "Expect: 100-continue" is left out unless Expect is set.
	Fields []wire.Field
	// Body is the whole body or, with Stream, what is here of it. Nil is no body, and then no Content-Length is added; empty
	// and not nil is a Content-Length of 0.
	Body []byte
	// Stream is the rest of the body, nil if Body is all. A request is never sent again once Stream was asked for bytes.
	Stream Source
	// Length is, with Stream, the length of the whole body in bytes, Body included. If it is negative the body is sent
	// chunked, also one that is whole.
	Length int64
	// Expect passes on an "Expect: 100-continue" among Fields. Nothing waits for the 100 here: a Stream whose bytes come only
	// after it does, and Interim tells of it.
	Expect bool
	// Interim, if not nil, is called with the head of each interim answer (1xx), in the goroutine that called Send. It must not
	// keep the head.
	Interim func(h *wire.Head)
	// Repeatable says that sending it twice does no harm: then a lost answer is followed by one more try.
	Repeatable bool
	// Timeout bounds, with Set.Do only, the time until the whole answer is here; it then fails as a context with that deadline
	// has it fail, and costs less. Zero is no bound.
	Timeout time.Duration
	// Node is the URL of the node that is asked first, if it is alive: one that a Response names. Empty: whichever's turn it is.
	Node string
	// Own attaches Config.Authorization in place of any Authorization among Fields: for our own indices, never for a
	// client's request.
	Own bool
}

const (
	defaultConnect = 2 * time.Second
	defaultAcquire = 5 * time.Second
	defaultIdle    = 50 * time.Second
	defaultConns   = 512
	defaultAnswer  = 128 << 20
	defaultHealth  = 10 * time.Second
	defaultCheck   = 3 * time.Second
	defaultEject   = 100 * time.Millisecond
	defaultEjected = 10 * time.Second
	maxNodes       = 64 // one bit each in the set of those already tried
)

// withDefaults fills in what is zero and refuses what can't work.
func (c Config) withDefaults() (Config, error) {
	if len(c.URLs) == 0 {
		return c, errors.New("upstream: no URL")
	}
	if len(c.URLs) > maxNodes {
		return c, errors.New("upstream: more than 64 URLs")
	}
	for _, d := range []struct {
		name       string
		v          *time.Duration
		d          time.Duration
		switchable bool // a negative value switches it off
	}{
		{"ConnectTimeout", &c.ConnectTimeout, defaultConnect, false},
		{"AcquireTimeout", &c.AcquireTimeout, defaultAcquire, false},
		{"IdleTimeout", &c.IdleTimeout, defaultIdle, false},
		{"HealthInterval", &c.HealthInterval, defaultHealth, true},
		{"HealthTimeout", &c.HealthTimeout, defaultCheck, false},
		{"EjectMin", &c.EjectMin, defaultEject, false},
		{"EjectMax", &c.EjectMax, defaultEjected, false},
	} {
		if *d.v == 0 {
			*d.v = d.d
		}
		if *d.v < 0 && !d.switchable {
			return c, fmt.Errorf("upstream: %s is negative", d.name)
		}
	}
	if c.MaxConns <= 0 {
		c.MaxConns = defaultConns
	}
	if c.MaxIdle <= 0 || c.MaxIdle > c.MaxConns {
		c.MaxIdle = c.MaxConns
	}
	if c.MaxAnswer <= 0 {
		c.MaxAnswer = defaultAnswer
	}
	return c, nil
}
