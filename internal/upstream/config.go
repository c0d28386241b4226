package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"optimist/internal/hook"
	"optimist/internal/share"
	"optimist/internal/wire"
)

// Config says where the engine is and how to reach it. A zero value means the default that the field names.
type Config struct {
	// URLs are the nodes, http or https. A base path is put before every request's target. Credentials in a URL are refused: they
	// belong in files.
	URLs []string
	// TLS is for the https ones among URLs.
	TLS TLS
	// Authorization is the value of that field for requests with Own, and only for those. It is a secret and never part of an
	// error. Empty: our own requests are anonymous.
	Authorization string

	// ConnectTimeout bounds name resolution, connect and TLS handshake together. Default 2s.
	ConnectTimeout time.Duration
	// AcquireTimeout bounds the wait for a free connection. After it the request fails as NotSent. Default 5s.
	AcquireTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept. It should be shorter than the idle timeout of everything between us
	// and the engine. Otherwise a write may meet a connection that is just being closed, and its outcome is unknown. Default 50s.
	IdleTimeout time.Duration
	// MaxConns bounds the open connections to one node, MaxIdle the unused ones. Defaults: 512, and MaxConns.
	MaxConns, MaxIdle int
	// MaxAnswer bounds the body in bytes that Do collects. Default 128 MiB: the engine takes documents of up to 100 MiB.
	MaxAnswer int64

	// HealthInterval is how often every node is asked for "GET /". Negative: never; then an ejected node comes back only when a
	// request tries it because all other nodes are down. Default 10s.
	HealthInterval time.Duration
	// HealthTimeout bounds one check. Default 3s.
	HealthTimeout time.Duration
	// EjectMin is the wait before an ejected node is checked again. It doubles with each check that fails, up to EjectMax.
	// Defaults: 100ms and 10s.
	EjectMin, EjectMax time.Duration

	// Hooks are called when something happens, for metrics and logs.
	Hooks Hooks
}

// TLS says whose certificates the nodes and we have. The zero value trusts the system's authorities.
type TLS struct {
	// CAFile is a PEM file with the authorities that are trusted instead of the system's.
	CAFile string
	// CertFile and KeyFile are our client certificate and its key in PEM. Set both or none.
	CertFile, KeyFile string
	// ServerName is the name that the nodes' certificate must have. Default: the host in the URL.
	ServerName string
	// Insecure accepts any certificate. Danger: anybody on the path can read and change everything, credentials included.
	Insecure bool
	// Log gets a line when changed files are in force, or can't be used. Nil: nobody does.
	Log *slog.Logger
}

// Hooks are called on the path of requests, by many goroutines at once: they must be quick and must not block. A hook may be
// nil. The first argument of most is the node's configured URL, so that it may be a metric's label.
type Hooks struct {
	// Dialed reports an attempt to connect and how long it took. The error is nil if it succeeded.
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

// Source is a request's body, or the rest of it, while it is still arriving. Another goroutine than that of Send calls Next.
type Source interface {
	// Next returns the next bytes, valid until the following call, and io.EOF after the last ones. *wire.Body has it.
	Next() ([]byte, error)
	// Interrupt makes a Next that is under way, and all later ones, return an error soon. Another goroutine calls it, and only
	// when the rest of the body isn't wanted any more.
	Interrupt()
}

// Request is what goes to the engine. It must not change until the exchange is finished.
type Request struct {
	Method string
	// Target is sent as it is, behind the node's base path.
	Target []byte
	// Fields are the end-to-end fields. They are sent in their order and spelling. If there is no Host among them, the node's is
	// added. A Content-Length keeps its place and gets the length of the body. "Expect: 100-continue" is left out unless Expect
	// is set.
	Fields []wire.Field
	// Body is the whole body or, with Stream, the beginning of it. Nil means no body and no Content-Length. Empty and not nil
	// means a Content-Length of 0.
	Body []byte
	// Stream is the rest of the body, nil if Body is the whole. A request isn't sent again after a byte was taken from Stream.
	Stream Source
	// Length is, with Stream, the length of the whole body in bytes, Body included. If it is negative the body is sent chunked,
	// with or without Stream.
	Length int64
	// Expect passes on an "Expect: 100-continue" among Fields. Send doesn't wait for the 100. The Stream does, if its bytes come
	// only after Interim got the 100.
	Expect bool
	// Interim, if not nil, is called with the head of each interim answer (1xx), in the goroutine of Send. It must not keep the
	// head.
	Interim func(h *wire.Head)
	// Repeatable says that the request may be sent twice. If its answer is lost it is sent once more.
	Repeatable bool
	// Timeout bounds the time until the whole answer is here. Only Set.Do heeds it. It has the effect of a context with that
	// deadline, and costs less. Zero: no bound.
	Timeout time.Duration
	// Node is the URL of the node that is tried first, if it is alive: one that a Response named. Empty: the next one in turn.
	Node string
	// Client is on whose behalf it is sent: nobody gets all connections. The zero value is ourselves.
	Client share.Client
	// Background says that other requests go first where they have to wait in line: see package pressure.
	Background bool
	// Own replaces any Authorization among Fields by Config.Authorization. It is for our own indices, never for a client's
	// request.
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

// withDefaults sets the fields that are zero, and refuses values that can't work.
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
