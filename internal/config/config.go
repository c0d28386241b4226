// Package config is optimist's configuration: the structs of the file, their defaults, how they are read, and what is
// wrong with them, by line and column.
//
// It promises nothing about the world outside of the file: whether an upstream answers or a secret's file can be read is
// found out by those who use it. A *Config is read-only once Load or Parse has returned it, and may be shared.
//
// The comments on the structs are the manual: effect, unit, default, danger. Keys are written as in the json tags.
package config

import (
	"fmt"
	"net/netip"
	"strings"

	"optimist/internal/unit"

	"go.yaml.in/yaml/v4"
)

// Config is a whole configuration file. Default gives the values of keys that a file leaves out.
type Config struct {
	// Version of the file's format. Only 1 exists. May be left out.
	Version int `json:"version"`

	// Listen is the address of the data port, to which applications send what they sent to the engine. Default
	// 127.0.0.1:9280: only from this machine. `:9280` is every interface; optimist checks no credentials, it forwards
	// them, so whoever reaches this port reaches the engine as far as the engine lets them.
	Listen string `json:"listen"`

	// Admin is the address of the admin listener: health, readiness, metrics, mode, configuration in force, profiles.
	// Default 127.0.0.1:9281. It asks for no credentials: whoever reaches it can switch guarding off. optimist warns
	// in the log of every address but a loopback one. Empty switches the listener off.
	Admin string `json:"admin"`

	// Mode is what optimist does with writes: guard (default), observe (changes no byte, counts lost updates), off (the
	// pass-through alone). A rule's own mode can only do less than this. Changed while running by `optimist mode`; a reload
	// sets it again only if the file's value has changed.
	Mode Mode `json:"mode"`

	// Upstream is the engine.
	Upstream Upstream `json:"upstream"`

	// Limits hold against clients that are slow, large or many.
	Limits Limits `json:"limits"`

	// Sniffing is what clients get that ask for the engine's addresses.
	Sniffing Sniffing `json:"sniffing"`

	// Sessions says how optimist knows which reads and writes are one client's, and how long it remembers what was read.
	Sessions Sessions `json:"sessions"`

	// Locks are the paths under `_lock`.
	Locks Locks `json:"locks"`

	// Drain is how `serve` ends.
	Drain Drain `json:"drain"`

	// Log is what is written to standard error.
	Log Log `json:"log"`

	// Rules say which writes are guarded, and how their changes merge. The first that matches takes the request; a request
	// that none takes is forwarded as it is. With no rule at all there is one, named default, with the defaults of every key.
	// Rules of your own replace it; to keep it for the rest, end the list with `- name: rest`.
	Rules []Rule `json:"rules"`

	// RuleFiles are further files with rules, one a team for instance: names or patterns (`rules.d/*.yaml`), relative to this file. Each
	// holds `rules:` and nothing else, and each of their rules names its indices. They come after the rules of this file, by the files'
	// names; rules at the end of this file that name neither index nor header nor user stay the last. An index that is claimed in two
	// files is an error.
	RuleFiles []string `json:"rule_files"`

	file     string            // what was read, as named by the caller; empty if nothing was
	sources  []source          // the file, and those of rule_files
	at       map[string]spot   // where each key stands
	flags    map[string]string // the flag that a key's value came from, where it did
	builtIn  bool              // no file has rules
	warnings []Problem
}

// source is one file that was read.
type source struct {
	name  string
	lines []string // for messages
}

// spot is what stands for a key in one of the files.
type spot struct {
	*yaml.Node
	file int // among the sources
}

// Upstream is the engine: its nodes, and how they are reached.
type Upstream struct {
	// URLs are the nodes of one cluster: http or https, host, port, and a path if the engine is behind one; no user. No
	// default: `serve` doesn't start without one. Several are for availability: a node that fails is left out until it
	// answers again.
	URLs []string `json:"urls"`

	// TLS is for https nodes.
	TLS TLS `json:"tls"`

	// Auth holds optimist's own credentials, for its own requests to the engine: whether nodes are alive, and what indices
	// are. Clients' requests go out with the clients' credentials, and so do the reads of a merge; never with these.
	Auth Auth `json:"auth"`

	// ConnectTimeout is how long a connection to a node may take, name and TLS included. Default 2s. For answers there is no
	// limit: some of the engine's requests are silent for hours.
	ConnectTimeout unit.Duration `json:"connect_timeout" min:"1nanos"`

	// IdleTimeout is how long an unused connection to a node is kept. Default 50s. Keep it below what firewalls between
	// here and the engine allow, or writes are lost on connections that were just closed.
	IdleTimeout unit.Duration `json:"idle_timeout" min:"1nanos"`

	// MaxConnections is how many connections to one node may be open at once. Requests above it wait for one. Default 512.
	MaxConnections int `json:"max_connections" min:"1"`

	// AcquireTimeout is how long a request may wait for one of them before it is answered 503. Default 5s.
	AcquireTimeout unit.Duration `json:"acquire_timeout" min:"1nanos"`

	// HealthInterval is the time between two health checks (`GET /`) of each node. Default 10s. Any answer below 500 is
	// alive. 0 switches the check off: a node is then judged by the requests that it gets.
	HealthInterval unit.Duration `json:"health_interval"`
}

// TLS is how https nodes are trusted, and how optimist shows itself to them. File names are relative to the file that
// names them. The files are read at start.
type TLS struct {
	// CAFile is a PEM file of the authorities that may have signed the nodes' certificates. Default: the system's.
	CAFile string `json:"ca_file"`

	// CertFile is a client certificate, PEM, for engines that ask for one. It needs KeyFile.
	CertFile string `json:"cert_file"`

	// KeyFile is the client certificate's key, PEM, not encrypted.
	KeyFile string `json:"key_file"`

	// ServerName is the name that the nodes' certificates must have, if it isn't the URL's host.
	ServerName string `json:"server_name"`

	// Verify is full (default: signature and name) or none. Danger: with none anybody between here and the engine can read
	// and change everything, passwords included.
	Verify Verify `json:"verify"`
}

// Auth names the file with optimist's own credentials. One of the three at most. The file holds the secret alone; a
// newline at its end is left out. Secrets are never in the configuration, in flags or in variables, and never logged.
type Auth struct {
	// APIKeyFile holds an API key: as the engine gives it in `encoded`, or `id:api_key`.
	APIKeyFile string `json:"api_key_file"`

	// BasicFile holds `user:password`.
	BasicFile string `json:"basic_file"`

	// BearerFile holds a token.
	BearerFile string `json:"bearer_file"`
}

// Limits hold against clients that are slow, large or many.
type Limits struct {
	// MaxConnections is how many clients may be connected at once; one more is answered 503 and disconnected. Default 10000.
	// Each needs a file descriptor, and another one to the engine while it is served.
	MaxConnections int `json:"max_connections" min:"1"`

	// MaxHeader is how large a request's line and headers may be together; more is a 431. Default 64KiB, four times what
	// the engine takes by default.
	MaxHeader unit.Size `json:"max_header" min:"4KiB" max:"16MiB"`

	// MaxGuardedBody is how large the body of a single-document write may be to be guarded. A larger one is forwarded as it
	// is, streamed, and the outcome says so (reason=too_large). Default 16MiB. Each write under way may take this much
	// memory a few times over.
	MaxGuardedBody unit.Size `json:"max_guarded_body" min:"1KiB" max:"1GiB"`

	// HeaderTimeout is how long a client may take from the first byte of a request to the end of its headers; more is a
	// 408. Default 10s.
	HeaderTimeout unit.Duration `json:"header_timeout" min:"1nanos"`

	// BodyTimeout is how long a client may make no progress within a body; progress is MinRate. Default 30s. A slow but
	// steady upload has no limit.
	BodyTimeout unit.Duration `json:"body_timeout" min:"1nanos"`

	// WriteTimeout is how long a client may take nothing of its answer; progress is MinRate. Default 30s.
	WriteTimeout unit.Duration `json:"write_timeout" min:"1nanos"`

	// MinRate is the least that a body or an answer must move in a second, averaged over one timeout, to count as progress.
	// Default 240B. 0: one byte is progress.
	MinRate unit.Size `json:"min_rate"`

	// IdleTimeout is how long a connection may wait for its next request. Default 2m. Keep it above that of clients' pools
	// and of load balancers in front, or their requests meet a connection that is just being closed.
	IdleTimeout unit.Duration `json:"idle_timeout" min:"1nanos"`
}

// Sniffing is what clients get that ask for the engine's addresses (`_nodes/http`). A client that gets the
// engine's own addresses goes around optimist from then on, and its writes are not guarded.
type Sniffing struct {
	// Answer is rewrite (default: publish_address becomes optimist's) or pass (the engine's answer as it is).
	Answer SniffAnswer `json:"answer"`

	// Advertise is the host:port in the answer. Default: what the client itself used, from its Host header.
	Advertise string `json:"advertise"`
}

// Sessions says how optimist knows which reads and writes are one client's, and how long it remembers what was read.
type Sessions struct {
	// Header names the request header by which a client names its session: one thread of work, which reads, changes and
	// writes. Default Optimist-Session. Bases are exact with it, and guessed without. `X-Opaque-Id` can be used if your
	// clients keep it for a thread of work; many send a new one with every request, which makes every read a stranger's.
	Header string `json:"header"`

	// Infer says what a session is without the header: credentials_and_address (default), credentials (for clients behind
	// one address that changes; danger: all processes with one API key are one session), or none (a base only by header or
	// If-Match). A client whose token is renewed is a new session from then on.
	Infer Infer `json:"infer"`

	// MaxAge is how long a read can be the base of a write. Default 5m. A write that comes later follows the rule's
	// base.lost.
	MaxAge unit.Duration `json:"max_age" min:"1nanos"`

	// Memory bounds what is remembered, documents included. Default 256MiB. What doesn't fit goes, oldest first; watch
	// optimist_session_evictions_total.
	Memory unit.Size `json:"memory" min:"1MiB"`

	// TrustedProxies are the addresses or networks (10.0.0.0/8) whose X-Forwarded-For is believed when the client's
	// address is part of the session. Default none. Danger: an address here that clients can have lets them take each
	// other's sessions, as far as they have each other's credentials.
	TrustedProxies []Prefix `json:"trusted_proxies"`
}

// Drain is how `serve` ends on SIGTERM: readiness goes first, then the listener, and requests under way are finished. A
// second signal ends at once.
type Drain struct {
	// Delay is the time between the end of readiness and the end of the listener, for load balancers to notice. Default
	// 1s. Not waited for on an interrupt from the keyboard.
	Delay unit.Duration `json:"delay"`

	// Timeout is how long requests under way may take; those still there after it are cut. Default 0: no limit, since some
	// of the engine's requests take hours, and whoever sent the signal has a limit, too.
	Timeout unit.Duration `json:"timeout"`
}

// Log is what is written to standard error.
type Log struct {
	// Format is text (default) or json.
	Format LogFormat `json:"format"`

	// Level is debug, info (default), warn or error. With debug there is a line for each request: method, path, status,
	// outcome. No level logs bodies, credentials or query strings.
	Level LogLevel `json:"level"`
}

// Prefix is an address or a network.
type Prefix struct{ netip.Prefix }

// UnmarshalText reads an address (10.1.2.3) or a network (10.0.0.0/8).
func (p *Prefix) UnmarshalText(b []byte) error {
	text := string(b)
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("%q is no network: write it as in 10.0.0.0/8 or fd00::/8", text)
		}
		p.Prefix = prefix.Masked()
		return nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return fmt.Errorf("%q is no address: write it as in 10.1.2.3, or a network as in 10.0.0.0/8", text)
	}
	addr = addr.Unmap()
	p.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	return nil
}

// File is the name of the file that the configuration came from, or empty.
func (c *Config) File() string { return c.file }
