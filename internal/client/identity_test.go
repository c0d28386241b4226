package client

import (
	"net/netip"
	"testing"

	"optimist/internal/session"
	"optimist/internal/wire"
)

func TestClientsAreToldApart(t *testing.T) {
	peer := netip.MustParseAddrPort("10.0.0.1:4711")
	field := func(s ...string) []wire.Field {
		var f []wire.Field
		for i := 0; i+1 < len(s); i += 2 {
			f = append(f, wire.Field{Name: []byte(s[i]), Value: []byte(s[i+1])})
		}
		return f
	}
	both := Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	base := both.Of(field("Authorization", "Basic a"), peer, nil)
	for name, c := range map[string]struct {
		fields []wire.Field
		peer   string
		same   bool
	}{
		"another port":                {field("authorization", "Basic a"), "10.0.0.1:1", true},
		"another address":             {field("authorization", "Basic a"), "10.0.0.2:1", false},
		"mapped into IPv6":            {field("authorization", "Basic a"), "[::ffff:10.0.0.1]:1", true},
		"other credentials":           {field("authorization", "Basic b"), "10.0.0.1:1", false},
		"an id of the request":        {field("authorization", "Basic a", "X-Opaque-Id", "7"), "10.0.0.1:1", true},
		"run as somebody":             {field("authorization", "Basic a", "es-security-runas-user", "x"), "10.0.0.1:1", false},
		"a session of its own":        {field("authorization", "Basic a", "Optimist-Session", "s"), "10.0.0.1:1", false},
		"forwarded for somebody":      {field("authorization", "Basic a", "X-Forwarded-For", "1.2.3.4"), "10.0.0.1:1", false},
		"forwarded by an untrusted":   {field("authorization", "Basic a", "X-Forwarded-For", "10.0.0.1"), "11.0.0.1:1", false},
		"forwarded along the trusted": {field("authorization", "Basic a", "X-Forwarded-For", "10.0.0.1, 10.9.9.9"), "10.1.1.1:1", true},
	} {
		got := both.Of(c.fields, netip.MustParseAddrPort(c.peer), nil)
		if (got.Session == base.Session) != c.same {
			t.Errorf("%s: same session %v", name, !c.same)
		}
	}
	moving := Identity{Headers: []string{"Optimist-Session"}, Infer: true}
	for addr, name := range map[string]string{"10.0.0.2:1": "a", "10.0.0.1:1": "b"} {
		a, b := moving.Of(field("authorization", "Basic a"), peer, nil), moving.Of(field("authorization", "Basic "+name), netip.MustParseAddrPort(addr), nil)
		if !a.Known || (a.Session == b.Session) != (name == "a") {
			t.Errorf("by credentials alone, %s from %s: same session %v", name, addr, a.Session == b.Session)
		}
	}
	opaque := Identity{Headers: []string{"X-Opaque-Id"}}
	if a, b := opaque.Of(field("x-opaque-id", "7"), peer, nil), opaque.Of(field("x-opaque-id", "8"), peer, nil); !a.Known || !a.Session.IsNamed() || a.Session == b.Session {
		t.Error("the header that is configured names no session")
	}
	none := Identity{Headers: []string{"Optimist-Session"}}
	if c := none.Of(nil, peer, nil); c.Known {
		t.Error("without inference there is no session without the header")
	}
	if c := none.Of(field("optimist-session", "s"), peer, nil); !c.Known {
		t.Error("with the header there is one")
	}
}

// Fields of gateways decide what an engine shows: whoever differs in one shares nothing with the others.
func TestWhoeverMayBeShownSomethingElseIsSomebodyElse(t *testing.T) {
	id := Identity{Infer: true, Address: true, Headers: []string{"optimist-session"}}
	peer := netip.MustParseAddrPort("10.0.0.1:4711")
	who := func(name, value string) session.Credentials {
		c := id.Of([]wire.Field{{Name: []byte("Authorization"), Value: []byte("Basic x")}, {Name: []byte(name), Value: []byte(value)}}, peer, nil)
		return c.Session.Credentials()
	}
	for _, name := range []string{"Cookie", "es-security-runas-user",
		"opendistro_security_impersonate_as", "sg_impersonate_as", "ES-Secondary-Authorization", "ES-Client-Authentication", "x-proxy-user",
		"x-proxy-roles", "x-proxy-ext-department", "x-forwarded-user", "X-Remote-User", "X-Forwarded-Client-Cert", "X-Amz-Security-Token",
		"securitytenant", "X-Found-Cluster", "X-Scope-OrgID"} {
		if who(name, "a") == who(name, "b") {
			t.Errorf("%s makes no difference", name)
		}
	}
	if who("x-proxy-ext-a", "1") == who("x-proxy-ext-b", "1") {
		t.Error("the names of attributes make no difference")
	}
	for _, name := range []string{"X-Opaque-Id", "traceparent", "User-Agent", "X-Request-Id", "X-Forwarded-Proto"} {
		if who(name, "a") != who(name, "b") {
			t.Errorf("%s makes a difference: it changes with every request", name)
		}
	}
}
