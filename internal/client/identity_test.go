package client

import (
	"net/netip"
	"testing"

	"optimist/internal/identity"
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
	base := both.Of(field("Authorization", "Basic a"), nil, peer, nil)
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
		got := both.Of(c.fields, nil, netip.MustParseAddrPort(c.peer), nil)
		if (got.Session.Bare() == base.Session.Bare()) != c.same {
			t.Errorf("%s: same session %v", name, !c.same)
		}
	}
	moving := Identity{Headers: []string{"Optimist-Session"}, Infer: true}
	for addr, name := range map[string]string{"10.0.0.2:1": "a", "10.0.0.1:1": "b"} {
		a, b := moving.Of(field("authorization", "Basic a"), nil, peer, nil), moving.Of(field("authorization", "Basic "+name), nil, netip.MustParseAddrPort(addr), nil)
		if !a.Known || (a.Session.Bare() == b.Session.Bare()) != (name == "a") {
			t.Errorf("by credentials alone, %s from %s: same session %v", name, addr, a.Session.Bare() == b.Session.Bare())
		}
	}
	opaque := Identity{Headers: []string{"X-Opaque-Id"}}
	if a, b := opaque.Of(field("x-opaque-id", "7"), nil, peer, nil), opaque.Of(field("x-opaque-id", "8"), nil, peer, nil); !a.Known || !a.Session.IsNamed() || a.Session == b.Session {
		t.Error("the header that is configured names no session")
	}
	none := Identity{Headers: []string{"Optimist-Session"}}
	if c := none.Of(nil, nil, peer, nil); c.Known {
		t.Error("without inference there is no session without the header")
	}
	if c := none.Of(field("optimist-session", "s"), nil, peer, nil); !c.Known {
		t.Error("with the header there is one")
	}
}

// Fields of gateways decide what an engine shows: whoever differs in one shares nothing with the others.
func TestWhoeverMayBeShownSomethingElseIsSomebodyElse(t *testing.T) {
	id := Identity{Infer: true, Address: true, Headers: []string{"optimist-session"}}
	peer := netip.MustParseAddrPort("10.0.0.1:4711")
	who := func(query string, fields ...string) Client {
		list := []wire.Field{{Name: []byte("Authorization"), Value: []byte("Basic x")}}
		for i := 0; i < len(fields); i += 2 {
			list = append(list, wire.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
		}
		return id.Of(list, []byte(query), peer, nil)
	}
	type differs struct{ session, realm, route bool }
	for _, c := range []struct {
		name string
		a, b Client
		want differs
	}{
		{"a tenant", who("", "X-Tenant", "a"), who("", "X-Tenant", "b"), differs{true, true, true}},
		{"a tenant or none", who("", "X-Tenant", "a"), who(""), differs{true, true, true}},
		{"the names of attributes", who("", "x-proxy-ext-a", "1"), who("", "x-proxy-ext-b", "1"), differs{true, true, true}},
		{"the values' places", who("", "X-Tenant", "a", "X-Org", "b"), who("", "X-Tenant", "b", "X-Org", "a"), differs{true, true, true}},
		{"the order of fields", who("", "X-Tenant", "a", "X-Org", "b"), who("", "x-org", "b", "x-tenant", "a"), differs{}},
		{"the order of one field's values", who("", "X-Tenant", "a", "X-Tenant", "b"), who("", "X-Tenant", "b", "X-Tenant", "a"), differs{true, true, true}},
		{"a parameter", who("tenant=a&routing=1"), who("tenant=b&routing=1"), differs{true, true, true}},
		{"a parameter with an escape", who("ten%61nt=a"), who("ten%61nt=b"), differs{true, true, true}},
		{"other parameters", who("tenant=a&routing=1"), who("tenant=a&routing=2&refresh"), differs{}},
		{"where it comes from", who("", "X-Forwarded-For", "192.0.2.1"), who("", "X-Forwarded-For", "192.0.2.2"), differs{false, true, true}},
		{"a port", who("", "X-Forwarded-For", "192.0.2.1:1"), who("", "X-Forwarded-For", "192.0.2.1:2"), differs{}},
		{"what nobody knows", who("", "X-Odd", "1"), who("", "X-Odd", "2"), differs{false, false, true}},
		{"an id of the request", who("", "X-Request-Id", "1"), who("", "X-Request-Id", "2"), differs{}},
		{"a session of its own", who("", "Optimist-Session", "1"), who("", "Optimist-Session", "2"), differs{session: true}},
		{"a certificate", id.Of(nil, nil, peer, []byte("CN=a")), id.Of(nil, nil, peer, []byte("CN=b")), differs{true, true, true}},
		{"a certificate or none", id.Of(nil, nil, peer, []byte("CN=a")), id.Of(nil, nil, peer, nil), differs{true, true, true}},
		{"a trace", who("", "traceparent", "1"), who("", "traceparent", "2"), differs{}},
		{"what is asked for", who("", "Accept", "1", "Content-Type", "2", "If-Match", "3"), who("", "Accept", "4"), differs{}},
	} {
		got := differs{c.a.Session.Bare() != c.b.Session.Bare(), c.a.Realm != c.b.Realm, c.a.Route != c.b.Route}
		if got != c.want {
			t.Errorf("%s: differs in %+v, want %+v", c.name, got, c.want)
		}
	}
	if c := who("tenant=a&routing=1&api_key=s"); string(c.Params) != "tenant=a&api_key=s" {
		t.Errorf("requests of ours carry %q", c.Params)
	}
}

// Clients that say nothing of who they are share nothing if a balancer says that they come from different places.
func TestClientsWithoutCredentialsAreToldApartByWhereTheyComeFrom(t *testing.T) {
	trusting := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	from := func(id Identity, fields ...string) Client {
		id.Headers = []string{"optimist-session"}
		var list []wire.Field
		for i := 0; i < len(fields); i += 2 {
			list = append(list, wire.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
		}
		return id.Of(list, nil, netip.MustParseAddrPort("10.0.0.1:4711"), nil)
	}
	byDefault, none := Identity{Infer: true, Address: true}, Identity{}
	trusted, moving := Identity{Infer: true, Address: true, Trusted: trusting}, Identity{Infer: true}
	for _, c := range []struct {
		name    string
		a, b    Client
		differs bool
	}{
		{"inferred", from(byDefault, "X-Forwarded-For", "192.0.2.1"), from(byDefault, "X-Forwarded-For", "192.0.2.2"), true},
		{"named", from(byDefault, "X-Forwarded-For", "192.0.2.1", "Optimist-Session", "s"),
			from(byDefault, "X-Forwarded-For", "192.0.2.2", "Optimist-Session", "s"), true},
		{"named, without inference", from(none, "X-Real-IP", "192.0.2.1", "Optimist-Session", "s"),
			from(none, "X-Real-IP", "192.0.2.2", "Optimist-Session", "s"), true},
		{"another port", from(byDefault, "X-Forwarded-For", "192.0.2.1:1"), from(byDefault, "X-Forwarded-For", "192.0.2.1:2"), false},
		{"by other trusted proxies", from(trusted, "X-Forwarded-For", "192.0.2.1, 10.0.0.7"), from(trusted, "X-Forwarded-For", "192.0.2.1, 10.0.0.8"), false},
		{"by a trusted proxy", from(trusted, "X-Forwarded-For", "192.0.2.1", "Optimist-Session", "s"),
			from(trusted, "X-Forwarded-For", "192.0.2.2", "Optimist-Session", "s"), true},
		{"moving", from(moving, "X-Forwarded-For", "192.0.2.1"), from(moving, "X-Forwarded-For", "192.0.2.2"), false},
		{"with credentials", from(byDefault, "Authorization", "Basic a", "X-Forwarded-For", "192.0.2.1"),
			from(byDefault, "Authorization", "Basic a", "X-Forwarded-For", "192.0.2.2"), false},
	} {
		if (c.a.Session.Bare() != c.b.Session.Bare()) != c.differs {
			t.Errorf("%s: the sessions differ: %v", c.name, !c.differs)
		}
	}
}

func TestAddressesAreReadAsBalancersWriteThem(t *testing.T) {
	id := Identity{Infer: true, Address: true, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for forwarded, want := range map[string]string{
		"192.0.2.1":                         "192.0.2.1",
		"192.0.2.1:4711":                    "192.0.2.1",
		"192.0.2.1:4711, 10.0.0.7:80":       "192.0.2.1",
		"2001:db8::1":                       "2001:db8::1",
		"[2001:db8::1]":                     "2001:db8::1",
		"[2001:db8::1]:4711":                "2001:db8::1",
		`"[2001:db8::1]:4711"`:              "2001:db8::1",
		"::ffff:192.0.2.1":                  "192.0.2.1",
		"nonsense":                          "10.0.0.1",
		"192.0.2.9, 192.0.2.1:1,10.1.1.1:2": "192.0.2.1",
	} {
		c := id.Of([]wire.Field{{Name: []byte("X-Forwarded-For"), Value: []byte(forwarded)}}, nil, netip.MustParseAddrPort("10.0.0.1:1"), nil)
		if c.Address.String() != want {
			t.Errorf("%s: %s, want %s", forwarded, c.Address, want)
		}
	}
}

// A gateway may let users write by the field that also names their session. Another field may name the session in its place. In each case the
// users share nothing.
func TestAFieldThatNamesTheSessionTellsUsersApartAllTheSame(t *testing.T) {
	peer := netip.MustParseAddrPort("10.0.0.1:4711")
	for _, headers := range [][]string{{"X-Proxy-User"}, {"Optimist-Session", "X-Proxy-User"}, {"X-Proxy-User", "Optimist-Session"}} {
		id := Identity{Infer: true, Headers: headers}
		var on recent
		who := func(fields ...string) Client {
			var list []wire.Field
			for i := 0; i < len(fields); i += 2 {
				list = append(list, wire.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
			}
			c := id.Of(list, nil, peer, nil)
			if got := on.of(&id, list, nil, peer, nil); got.Session != c.Session || got.Route != c.Route {
				t.Errorf("%s: from memory %q is another client", headers, fields)
			}
			return c
		}
		for _, session := range []string{"1", ""} {
			anna, bert := who("X-Proxy-User", "anna", "Optimist-Session", session), who("X-Proxy-User", "bert", "Optimist-Session", session)
			if anna.Session.Credentials() == bert.Session.Credentials() || anna.Realm == bert.Realm || anna.Route == bert.Route {
				t.Errorf("%s: users share writes", headers)
			}
			if !anna.Session.IsNamed() || anna.Session != who("X-Proxy-User", "anna", "Optimist-Session", session).Session {
				t.Errorf("%s: the field names no session", headers)
			}
		}
	}
	id := Identity{Infer: true, Headers: []string{"X-Real-IP", "X-Shop", "X-Opaque-Id", "Authorization"}}
	of := func(name, value string) Client {
		return id.Of([]wire.Field{{Name: []byte(name), Value: []byte(value)}}, nil, peer, nil)
	}
	if of("X-Real-IP", "192.0.2.1").Route == of("X-Real-IP", "192.0.2.2").Route {
		t.Error("by addresses: clients share writes")
	}
	if of("X-Shop", "1").Route == of("X-Shop", "2").Route {
		t.Error("by what a gateway may choose the engine by: clients share writes")
	}
	if of("X-Opaque-Id", "1").Route != of("X-Opaque-Id", "2").Route {
		t.Error("by what names only the session: its clients share no writes")
	}
	if !of("Authorization", "AWS4-HMAC-SHA256 Credential=x").Signed {
		t.Error("by the authorization: its signature isn't seen")
	}
}

// Who holds what is kept can't be made up: it is where a request comes from, whatever session the request names.
func TestASessionHasTheNetworkOfItsRequest(t *testing.T) {
	field := func(name, value string) []wire.Field { return []wire.Field{{Name: []byte(name), Value: []byte(value)}} }
	both := &Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true, Trusted: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
	moving := Identity{Headers: both.Headers, Trusted: both.Trusted, Infer: true}
	none := Identity{Traces: true}
	trace := field("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	for name, c := range map[string]struct {
		id     *Identity
		fields []wire.Field
		peer   string
		want   string
	}{
		"by its address":             {both, nil, "10.0.0.1:1", "10.0.0.1"},
		"of a name":                  {both, field("Optimist-Session", "s"), "10.0.0.1:1", "10.0.0.1"},
		"by its credentials":         {&moving, field("Authorization", "Basic a"), "10.0.0.1:1", "10.0.0.1"},
		"by its trace":               {&none, trace, "10.0.0.1:1", "10.0.0.1"},
		"behind a trusted proxy":     {both, field("X-Forwarded-For", "192.0.2.7"), "10.9.9.9:1", "192.0.2.7"},
		"behind an untrusted proxy":  {both, field("X-Forwarded-For", "192.0.2.7"), "11.0.0.1:1", "11.0.0.1"},
		"in an IPv6 network":         {both, nil, "[2001:db8::7]:1", "2001:db8::8"},
		"in another IPv6 network":    {both, nil, "[2001:db8:0:1::7]:1", "2001:db8:0:1::"},
		"with an IPv4 address in v6": {both, nil, "[::ffff:10.0.0.1]:1", "10.0.0.1"},
	} {
		got := c.id.Of(c.fields, nil, netip.MustParseAddrPort(c.peer), nil)
		if want := identity.NetworkOf(netip.MustParseAddr(c.want)); !got.Known || got.Session.Network() != want || want == 0 {
			t.Errorf("%s: %x, want %x", name, got.Session.Network(), want)
		}
	}
}
