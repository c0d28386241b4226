package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/glob"
)

// validate finds the mistakes that the types of the keys don't exclude. found has the mistakes of decoding: validate doesn't judge their
// keys a second time.
func (c *Config) validate(found Problems) Problems {
	v := &validator{cfg: c, known: map[string]bool{}}
	for _, p := range found {
		v.known[p.full] = true
	}
	v.top()
	v.limits()
	v.upstream()
	v.sessions()
	v.identity()
	v.locks()
	v.letters()
	v.idempotency()
	v.undo()
	v.rules()
	return v.problems
}

type validator struct {
	cfg      *Config
	known    map[string]bool
	problems Problems
}

func (v *validator) fail(key, format string, args ...any) {
	v.add(Error, key, format, args...)
}

func (v *validator) warn(key, format string, args ...any) {
	v.add(Warning, key, format, args...)
}

func (v *validator) add(s Severity, key, format string, args ...any) {
	if !v.known[key] {
		v.problems = append(v.problems, v.cfg.problem(s, key, format, args...))
	}
}

func (v *validator) top() {
	c := v.cfg
	if c.Version != 1 {
		v.fail("version", "this optimist reads version 1 of the file, not %d", c.Version)
	}
	v.address("listen", c.Listen)
	v.serverTLS("listen_tls", &c.ListenTLS)
	v.serverTLS("admin_tls", (*ServerTLS)(&c.AdminTLS))
	if c.Admin != "" {
		v.address("admin", c.Admin)
		if !c.AdminIsProtected() && !Loopback(c.Admin) {
			v.fail("admin", "%s isn't a loopback address: everybody who reaches it could switch guarding off; set admin_token_file, "+
				"or admin_tls with a client_ca_file", c.Admin)
		}
		if overlap(c.Admin, c.Listen) {
			v.fail("admin", "the data port has the same address, %s; the two listeners must differ", c.Listen)
		}
	}
	if a := c.Sniffing.Advertise; a != "" {
		v.address("sniffing.advertise", a)
		if host, _, err := net.SplitHostPort(a); err == nil && host == "" {
			v.fail("sniffing.advertise", "%q has no host; clients need one that they can reach", a)
		}
		if c.Sniffing.Answer == SniffPass {
			v.warn("sniffing.advertise", "it has no effect where sniffing.answer is pass")
		}
	}
}

// IsEveryHost reports whether a listener at this host takes connections to every address of the machine.
func IsEveryHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// overlap reports whether two addresses collide, so that only one listener can have them.
func overlap(a, b string) bool {
	hostA, portA, err := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return err == nil && errB == nil && portA == portB && portA != "0" && (hostA == hostB || IsEveryHost(hostA) || IsEveryHost(hostB))
}

func (v *validator) serverTLS(key string, t *ServerTLS) {
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		v.fail(key+".cert_file", "a certificate needs its key: set key_file, too")
	case t.KeyFile != "" && t.CertFile == "":
		v.fail(key+".key_file", "a key needs its certificate: set cert_file, too")
	case t.ClientCAFile != "" && t.CertFile == "":
		v.fail(key+".client_ca_file", "clients show certificates only to a port that speaks TLS: set cert_file and key_file, too")
	}
}

// memoryOfBodies is how many guarded bodies limits.memory has room for at least. A client may take half of it, and a write needs its body
// several times: as it came, expanded, and merged.
const memoryOfBodies = 8

func (v *validator) limits() {
	l := &v.cfg.Limits
	if least := memoryOfBodies * l.MaxGuardedBody; l.Memory != 0 && l.Memory < least {
		v.fail("limits.memory", "%s is too little for bodies of limits.max_guarded_body (%s): write %s or more, or 0",
			l.Memory, l.MaxGuardedBody, least)
	}
}

// MemoryOr is limits.memory in bytes. If it is 0, MemoryOr computes it from the memory that the machine has, there.
func (l *Limits) MemoryOr(there int64) int64 {
	const part, most = 8, 4 << 30
	if l.Memory != 0 {
		return l.Memory.Bytes()
	}
	return max(min(there/part, most), memoryOfBodies*l.MaxGuardedBody.Bytes())
}

// address checks host:port; the host may be empty, which is every interface.
func (v *validator) address(key, addr string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		v.fail(key, "%q is not an address; write host and port, as in 127.0.0.1:9280 or :9280", addr)
		return
	}
	if !isPort(port) {
		v.fail(key, "%q is not a port; it is a number up to 65535", port)
	}
	if strings.ContainsAny(host, " /@") {
		v.fail(key, "%q is not a host", host)
	}
}

// isPort reports whether a text is a port's number, with 0 for any that is free.
func isPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

func (v *validator) upstream() {
	u := &v.cfg.Upstream
	seen, secure := map[string]bool{}, false
	for i, raw := range u.URLs {
		key := "upstream.urls[" + strconv.Itoa(i) + "]"
		parsed, err := url.Parse(raw)
		switch {
		case err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "":
			v.fail(key, "%q is not a URL of a node; write it as in http://127.0.0.1:9200 or https://es1:9200", Redact(raw))
			continue
		case parsed.User != nil:
			v.fail(key, "a URL here has no user or password: optimist's own credentials come from a file (upstream.auth), and clients send theirs")
			continue
		case strings.HasSuffix(parsed.Host, ":"), parsed.Port() != "" && (!isPort(parsed.Port()) || strings.Trim(parsed.Port(), "0") == ""):
			v.fail(key, "%q is not the port of a node; it is a number from 1 to 65535", parsed.Port())
			continue
		case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.Opaque != "":
			v.fail(key, "%q has more than scheme, host, port and path", raw)
			continue
		case seen[strings.TrimRight(raw, "/")]:
			v.fail(key, "%q is here twice", raw)
		case v.isDataPort(parsed):
			v.fail(key, "this is optimist's own data port (listen: %s): a request would come back without end; name the engine", v.cfg.Listen)
		}
		seen[strings.TrimRight(raw, "/")] = true
		secure = secure || parsed.Scheme == "https"
	}
	v.tls(&u.TLS, len(u.URLs) > 0 && !secure)
	v.auth("upstream.auth", &u.Auth)
	if len(u.URLs) > 64 {
		v.fail("upstream.urls", "%d are too many: 64 at most", len(u.URLs))
	}
}

// isDataPort reports whether u leads to this optimist's data port, as far as the addresses show that.
func (v *validator) isDataPort(u *url.URL) bool {
	host, port, err := net.SplitHostPort(v.cfg.Listen)
	if err != nil || port != cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]) {
		return false
	}
	to := u.Hostname()
	every := host == "" || net.ParseIP(host).IsUnspecified()
	return host == to || isLocalhost(to) && (every || isLocalhost(host) && (host == "localhost" || to == "localhost"))
}

// isLocalhost reports whether the host is this machine by its usual name or address. 127.0.0.2 may be another server's.
func isLocalhost(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func (v *validator) tls(t *TLS, plain bool) {
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		v.fail("upstream.tls.cert_file", "a client certificate needs its key: set key_file, too")
	case t.KeyFile != "" && t.CertFile == "":
		v.fail("upstream.tls.key_file", "a key needs its certificate: set cert_file, too")
	}
	if t.Verify == VerifyNone {
		if t.CAFile != "" || t.ServerName != "" {
			v.fail("upstream.tls.verify", "with none, ca_file and server_name have no effect: leave verify out, or them")
		} else {
			v.warn("upstream.tls.verify", "with none, anybody between here and the engine can read and change everything; use ca_file")
		}
	}
	if plain && *t != (TLS{Verify: VerifyFull}) {
		v.warn("upstream.tls", "it has no effect: no upstream URL begins with https")
	}
}

func (v *validator) auth(key string, a *Auth) {
	given := 0
	for _, name := range []string{a.APIKeyFile, a.BasicFile, a.BearerFile} {
		if name != "" {
			given++
		}
	}
	if given > 1 {
		v.fail(key, "only one of api_key_file, basic_file and bearer_file can be set")
	}
}

func (v *validator) sessions() {
	s := &v.cfg.Sessions
	for i, name := range s.Header {
		path := "sessions.header[" + strconv.Itoa(i) + "]"
		switch {
		case !IsToken(name):
			v.fail(path, "%q is not a header's name", name)
		case equalFold(name, "Authorization", "Host", "Content-Type", "Content-Length", "Cookie", "If-Match"):
			v.fail(path, "%s has another meaning; take a header of its own, as Optimist-Session", name)
		case equalFold(name, "tracestate"):
			v.fail(path, "%s doesn't say which trace it is; did you mean %s?", name, traceparent)
		case equalFold(name, s.Header[:i]...):
			v.fail(path, "the header %q is here twice", name)
		}
	}
	if len(s.Header) == 0 && s.Infer == InferNone {
		v.warn("sessions", "without a header and with infer: none there are no sessions; bases come from If-Match alone")
	}
	if len(s.TrustedProxies) > 0 && s.Infer != InferCredentialsAndAddress {
		v.warn("sessions.trusted_proxies", "they have no effect where the address is no part of the session (infer: %s)", s.Infer)
	}
}

// identity checks the lists of names that tell clients apart.
func (v *validator) identity() {
	check := func(key string, names []string) {
		for i, entry := range names {
			at := key + "[" + strconv.Itoa(i) + "]"
			name, _ := strings.CutPrefix(entry, "-")
			switch {
			case !IsToken(name):
				v.fail(at, "%q is not a name; write it as in X-Shop, or as in x-env-* for all that begin so", entry)
			case strings.Trim(name, "*") == "":
				v.fail(at, "%q is every name: then nothing tells two requests apart, or everything", entry)
			case name != entry && key == "identity.fields" && glob.Match(strings.ToLower(name), "authorization"):
				v.fail(at, "Authorization identifies the client: without it, clients would get documents that only others may see")
			}
		}
	}
	check("identity.fields", v.cfg.Identity.Fields)
	check("identity.parameters", v.cfg.Identity.Parameters)
}

func equalFold(s string, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(s, n) })
}

// alphanumerics are the letters and digits of ASCII.
const alphanumerics = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// IsToken reports whether s is a header field's name (RFC 9110 §5.6.2).
func IsToken(s string) bool { return s != "" && strings.Trim(s, alphanumerics+"!#$%&'*+-.^_`|~") == "" }
