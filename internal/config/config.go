// Package config is optimist's configuration: the structs of the file, their defaults, the reader, and the mistakes, by line and
// column.
//
// It promises nothing about the world outside of the file: its users find out whether an upstream answers, or whether a secret's
// file can be read. A *Config is read-only once Load or Parse has returned it, and may be shared.
//
// The comments on the structs are the manual: effect, unit, danger. The manual has the values of Default beside them. Keys are written
// as in the json tags.
package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"optimist/internal/unit"

	"go.yaml.in/yaml/v4"
)

// Config is a whole configuration file. Default gives the values of keys that a file leaves out.
type Config struct {
	// Version is the version of the file's format. Only 1 exists.
	Version int `json:"version"`

	// Listen is the address of the data port: applications send their requests to it instead of to the engine. The default
	// is for this machine only; `:9280` is every interface. Danger: optimist checks no credentials: everybody who reaches
	// this port can do what the engine allows.
	Listen string `json:"listen" like:"host and port, as in 127.0.0.1:9280 or :9280"`

	// ListenTLS is TLS for the data port. Danger: without it, credentials of clients on other machines cross the network
	// in clear text. The log says so.
	ListenTLS ServerTLS `json:"listen_tls"`

	// Admin is the address of the admin listener: health, metrics, mode, the current configuration, profiles. Empty
	// switches it off. Danger: everybody who may use it can switch guarding off, so any address but a loopback one needs
	// `admin_token_file` or `admin_tls.client_ca_file`.
	Admin string `json:"admin" like:"host and port, as in 127.0.0.1:9281; \"\" for no listener"`

	// AdminTLS is TLS for the admin listener.
	AdminTLS AdminTLS `json:"admin_tls"`

	// AdminTokenFile is a file with the token that requests to the admin listener have to bring, as `Authorization: Bearer
	// …`: one line, 16 characters or more. Health and readiness need none, but tell less without it. Profiles need a token
	// or a client's certificate. A changed file counts within a second. Default: no token.
	AdminTokenFile string `json:"admin_token_file"`

	// Mode is how optimist handles writes: `guard` (default), `observe` (changes no byte, counts lost updates), `off`
	// (forwards everything). A rule's own mode can only do less than this. `optimist mode` changes it in a running
	// optimist. A reload sets it again only if the file's value has changed.
	Mode Mode `json:"mode"`

	// Upstream is the engine.
	Upstream Upstream `json:"upstream"`

	// Limits are bounds for clients that are slow, large or many.
	Limits Limits `json:"limits"`

	// Sniffing is the answer to clients that ask for the engine's addresses.
	Sniffing Sniffing `json:"sniffing"`

	// Sessions are how optimist knows which reads and writes belong to one client, and how long it remembers reads.
	Sessions Sessions `json:"sessions"`

	// Identity is how optimist tells tenants and users apart.
	Identity Identity `json:"identity"`

	// Learning is what `optimist hot` tells of conflicts.
	Learning Learning `json:"learning"`

	// Locks are the paths under `_lock`.
	Locks Locks `json:"locks"`

	// DeadLetters are where optimist keeps writes that can't be placed.
	DeadLetters DeadLetters `json:"dead_letters"`

	// Idempotency is how requests with the header Idempotency-Key are carried out once.
	Idempotency Idempotency `json:"idempotency"`

	// Undo is how locks with `undo: true` have what was written under them undone, if their holder dies.
	Undo Undo `json:"undo"`

	// Drain is how `serve` stops.
	Drain Drain `json:"drain"`

	// Log is the output on standard error.
	Log Log `json:"log"`

	// Rules are which writes are guarded, and how their changes merge. The first rule that matches takes the request. If
	// none matches, it is forwarded as it is. A file without rules has one with the defaults of every key. To keep it
	// behind rules of your own, end the list with `- name: rest`.
	Rules []Rule `json:"rules"`

	// RuleFiles are further files with rules, for example one for each team: names or patterns (`rules.d/*.yaml`),
	// relative to this file. Each has only `rules:`, and each rule names its indices. Two files can't claim the same
	// index. Their rules come after those of this file, but before the ones at its end that name neither index nor header
	// nor user.
	RuleFiles []string `json:"rule_files"`

	file     string            // what was read, as named by the caller; empty if nothing was
	sources  []source          // the file, and those of rule_files
	at       map[string]spot   // where each key stands
	flags    map[string]string // the flag that a key's value came from, where it did
	blank    bool              // nothing stands in the file
	noRules  bool              // the file says so: rules: []
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

// Upstream is the engine: its nodes, and how optimist reaches them.
type Upstream struct {
	// URLs are the nodes of one cluster: http or https, host, port, and a path if the engine is behind one. No user.
	// `serve` doesn't start without one. A node that fails is left out until it answers again.
	URLs []string `json:"urls"`

	// TLS is for https nodes.
	TLS TLS `json:"tls"`

	// Auth is the credentials of optimist itself, for its own questions: whether nodes are alive, and what indices are.
	// Clients' requests, and the reads of a merge, never use them.
	Auth Auth `json:"auth"`

	// ConnectTimeout is how long a connection to a node may take, name resolution and TLS included. Answers have no limit:
	// some requests take hours.
	ConnectTimeout unit.Duration `json:"connect_timeout" min:"1nanos"`

	// IdleTimeout is how long optimist keeps an unused connection to a node. Danger: writes are lost on connections that a
	// firewall has just closed, so keep it below the limits of firewalls on the way to the engine.
	IdleTimeout unit.Duration `json:"idle_timeout" min:"1nanos"`

	// MaxConnections is how many connections to one node may be open at once. Further requests wait for one.
	MaxConnections int `json:"max_connections" min:"1"`

	// AcquireTimeout is how long a request may wait for one of them. Then it gets a 503.
	AcquireTimeout unit.Duration `json:"acquire_timeout" min:"1nanos"`

	// AdaptiveLimit is whether optimist bounds how many guarded writes are out to the engine at once. It finds the bound
	// from slow answers and 429s. Further writes wait, foreground first, for `acquire_timeout` at most, and then get a 429
	// with Retry-After, unsent. No client gets all places. Writes that ask the engine to wait (`wait_for_active_shards`,
	// `refresh=wait_for`), and what is only forwarded, aren't counted.
	AdaptiveLimit bool `json:"adaptive_limit"`

	// HealthInterval is the time between two health checks (`GET /`) of each node. Any answer below 500 is alive. 0
	// switches the check off: then clients' requests show whether a node is alive.
	HealthInterval unit.Duration `json:"health_interval"`
}

// TLS is how optimist trusts https nodes, and which certificate it shows them. Changed files count within a second, for
// new connections.
type TLS struct {
	// CAFile is a PEM file of the authorities that may have signed the nodes' certificates. Default: the system's.
	CAFile string `json:"ca_file"`

	// CertFile is a client certificate, PEM, for engines that ask for one. It needs KeyFile.
	CertFile string `json:"cert_file"`

	// KeyFile is the client certificate's key, PEM, not encrypted.
	KeyFile string `json:"key_file"`

	// ServerName is the name that the nodes' certificates must have, if it isn't the URL's host.
	ServerName string `json:"server_name"`

	// Verify is `full` (default: signature and name) or `none`. Danger: with `none`, anybody on the way to the engine can
	// read and change everything, passwords included.
	Verify Verify `json:"verify"`
}

// ServerTLS is TLS of version 1.2 or later, for HTTP/1.1. Changed files count within a second, for new connections. While they can't
// be used, the old ones count, and the log says so.
type ServerTLS struct {
	// CertFile is the port's certificate, PEM, followed by those between it and its authority. It needs KeyFile. Default: no
	// TLS.
	CertFile string `json:"cert_file"`

	// KeyFile is the certificate's key, PEM, not encrypted.
	KeyFile string `json:"key_file"`

	// ClientCAFile is a PEM file of authorities: only clients with a certificate that they have signed get in. The
	// certificate's names are a part of the client's identity: two names never share a session. The engine doesn't see the
	// certificate. Default: clients need none.
	ClientCAFile string `json:"client_ca_file"`
}

// AdminTLS is TLS with the versions of `listen_tls`. Changed files count as they do there.
type AdminTLS struct {
	// CertFile is the listener's certificate, PEM, followed by those between it and its authority. It needs KeyFile.
	// Default: no TLS.
	CertFile string `json:"cert_file"`

	// KeyFile is the certificate's key, PEM, not encrypted.
	KeyFile string `json:"key_file"`

	// ClientCAFile is a PEM file of authorities: an operator with a certificate that they have signed needs no token.
	// Without `admin_token_file`, every request needs such a certificate, except those for health and readiness.
	ClientCAFile string `json:"client_ca_file"`
}

// Auth is the file with optimist's own credentials. Give at most one of the three. The file holds only the secret; a
// newline at its end doesn't count.
type Auth struct {
	// APIKeyFile holds an API key: the `encoded` of the engine's answer, or `id:api_key`.
	APIKeyFile string `json:"api_key_file"`

	// BasicFile holds `user:password`.
	BasicFile string `json:"basic_file"`

	// BearerFile holds a token.
	BearerFile string `json:"bearer_file"`
}

// Limits are bounds for clients that are slow, large or many.
type Limits struct {
	// MaxConnections is how many clients may be connected at once. A further client gets a 503. Each needs a file
	// descriptor, and a second one to the engine while it has a request under way.
	MaxConnections int `json:"max_connections" min:"1"`

	// MaxHeader is how large the line and the headers of a request may be together. A larger head gets a 431.
	MaxHeader unit.Size `json:"max_header" min:"4KiB" max:"16MiB"`

	// MaxGuardedBody is how large the body of a write may be, so that optimist guards it. A larger one is forwarded as a
	// stream (reason=too_large); of a larger `_bulk`, each item is guarded that isn't larger itself. A PATCH, or a rule's
	// transform, adds at most as much to a document. A write under way may take this much memory a few times.
	MaxGuardedBody unit.Size `json:"max_guarded_body" min:"1KiB" max:"1GiB"`

	// Memory is how much memory the bodies, the collected answers and the merges of all requests under way may take
	// together. A write that finds none gets a 503 `overloaded` with Retry-After; a read passes without being remembered.
	// What is only forwarded needs none, except for a bulk, if any rule guards writes, and for a head over 4KiB. One
	// client gets at most half. 0 is an eighth of the memory of the machine or the container, at least eight times
	// `max_guarded_body`, at most 4GiB.
	Memory unit.Size `json:"memory"`

	// HeaderTimeout is how long a client may take from the first byte of a request to the end of its headers. Then it gets a
	// 408.
	HeaderTimeout unit.Duration `json:"header_timeout" min:"1nanos"`

	// BodyTimeout is how long a client may make no progress (MinRate) while it sends a body. A slow but steady upload has no
	// limit.
	BodyTimeout unit.Duration `json:"body_timeout" min:"1nanos"`

	// WriteTimeout is how long a client may make no progress (MinRate) while it reads its answer.
	WriteTimeout unit.Duration `json:"write_timeout" min:"1nanos"`

	// MinRate is how many bytes of a body or an answer must move in a second, averaged over one timeout, to count as
	// progress. 0: one byte is progress.
	MinRate unit.Size `json:"min_rate"`

	// IdleTimeout is how long a connection may wait for its next request. Keep it above the idle time of clients' pools
	// and of load balancers: otherwise they send requests on connections that optimist is just closing.
	IdleTimeout unit.Duration `json:"idle_timeout" min:"1nanos"`
}

// Sniffing is the answer to clients that ask for the engine's addresses (`_nodes/http`). Danger: a client that gets the
// engine's own addresses sends its writes there, unguarded.
type Sniffing struct {
	// Answer is `rewrite` (default: `publish_address` becomes optimist's address) or `pass` (the engine's answer as it is).
	Answer SniffAnswer `json:"answer"`

	// Advertise is the host:port in the answer. Default: the one that the client itself used, from its Host header.
	Advertise string `json:"advertise" like:"host and port, as in search.example:9280"`
}

// Sessions are how optimist knows which reads and writes belong to one client, and how long it remembers reads.
type Sessions struct {
	// Header is the request headers by which a client names its session: one thread of work, which reads, changes and
	// writes. The first one in the list that a request has counts. With it, bases are exact; without it, optimist guesses.
	// Don't use a header that changes with every request, as `X-Opaque-Id` often does: no read would ever be the base of a
	// write. `traceparent` names no session, and comes after all names: reads and writes of one trace belong together
	// (docs/sessions.md, Traces).
	Header Headers `json:"header"`

	// Infer is the session of a client without the header: `credentials_and_address` (default), `credentials` (for clients
	// whose address changes), or `none` (a base only by header or If-Match). A client whose token is renewed is a new
	// session from then on. Danger: with `credentials`, all processes with one API key are one session.
	Infer Infer `json:"infer"`

	// MaxAge is how long a read can be the base of a write. A later write follows `base.lost`.
	MaxAge unit.Duration `json:"max_age" min:"1nanos"`

	// Memory is the bound of the remembered reads, documents included. If it is full, the client that holds most loses its
	// oldest entry: watch optimist_session_evictions_total.
	Memory unit.Size `json:"memory" min:"1MiB"`

	// File is where optimist notes the numbers of the revisions that clients have read and written: 4 MiB, without
	// documents and names. After a restart or `kill -9`, but not after a power cut, it guards writes of documents that
	// were read before (docs/sessions.md, After a start). Each process needs a file of its own, in a folder that exists.
	// Default: `sessions` in the folder STATE_DIRECTORY (systemd sets this variable), else none.
	File string `json:"file"`

	// TrustedProxies are addresses or networks (10.0.0.0/8) whose X-Forwarded-For optimist believes. Danger: clients that
	// can use such an address themselves can take the sessions of others with the same credentials.
	TrustedProxies []Prefix `json:"trusted_proxies"`
}

// Identity is how optimist tells tenants and users apart. Some headers and query parameters name the user, the tenant or
// the cluster of a request. Clients that differ in one of them share no base and no write. optimist knows the usual names
// (docs/deploying.md, Tenants). The lists here add to them. A star stands for any characters, a minus sign in front takes
// a name out: `-x-user`. The last name that fits counts.
type Identity struct {
	// Fields are further names of headers, for example [X-Shop, X-Env-*]. Danger: if a gateway behind optimist chooses the
	// cluster by a header that isn't known here, clients get each other's bases. The log names a header that looks like
	// one. Don't list an id of requests: every request would come from another client.
	Fields []string `json:"fields"`

	// Parameters are further names of query parameters.
	Parameters []string `json:"parameters"`
}

// Learning is what `optimist hot` tells of conflicts.
type Learning struct {
	// Clients is `hashed` (default: a number stands for each client, and changes with every start) or `shown` (a client's
	// session name or address, and a digest of its credentials).
	Clients ShowClients `json:"clients"`
}

// Drain is how `serve` stops on SIGTERM. Readiness ends first, then the listener closes, and requests under way are
// finished. A second signal ends the process at once.
type Drain struct {
	// Delay is the time between the end of readiness and the close of the listener, so that load balancers notice. An
	// interrupt from the keyboard skips it.
	Delay unit.Duration `json:"delay"`

	// Timeout is how long requests under way may take. Then they are cut. 0: no limit; the sender of the signal has one of
	// its own.
	Timeout unit.Duration `json:"timeout"`
}

// Log is the output on standard error.
type Log struct {
	// Format is `text` (default) or `json`.
	Format LogFormat `json:"format"`

	// Level is `debug`, `info` (default), `warn` or `error`. `debug` logs each request: method, path, status, outcome. No
	// level logs bodies, credentials or query strings.
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
			return fmt.Errorf("%q is not a network: write it as in 10.0.0.0/8 or fd00::/8", text)
		}
		p.Prefix = prefix.Masked()
		return nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return fmt.Errorf("%q is not an address: write it as in 10.1.2.3, or a network as in 10.0.0.0/8", text)
	}
	addr = addr.Unmap()
	p.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	return nil
}

// AdminIsProtected reports whether the admin listener asks for a token or a certificate.
func (c *Config) AdminIsProtected() bool {
	return c.AdminTokenFile != "" || c.AdminTLS.ClientCAFile != ""
}

// Loopback reports whether an address, host:port, can only be reached from this machine.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// File is the name of the file that the configuration came from, or empty.
func (c *Config) File() string { return c.file }
