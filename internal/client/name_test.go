package client

import (
	"net/netip"
	"strings"
	"testing"

	"optimist/internal/wire"
)

func TestSessionsNamesTellThemApartAndHoldNoPassword(t *testing.T) {
	id := Identity{Headers: []string{"Optimist-Session"}, Address: true, Infer: true, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	name := func(id Identity, addr string, fields ...string) string {
		var list []wire.Field
		for i := 0; i < len(fields); i += 2 {
			list = append(list, wire.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
		}
		return id.Name(list, nil, netip.MustParseAddrPort(addr), nil)
	}
	const here = "192.0.2.7:1"
	for _, c := range []struct{ want, got string }{
		{"ip=192.0.2.7", name(id, here)},
		{"ip=2001%3Adb8%3A%3A1", name(id, "[2001:db8::1]:9")},
		{"ip=203.0.113.5", name(id, "10.1.2.3:1", "X-Forwarded-For", "203.0.113.5")},
		{"ip=192.0.2.7", name(id, here, "X-Forwarded-For", "203.0.113.5")},
		{"thread%207", name(id, here, "optimist-session", "thread 7")},
		{"", name(Identity{}, here)},
		{"", name(Identity{Infer: true}, here)},
		// user:secret and user:other: of a password nothing can be told from it
		{name(id, here, "Authorization", "Basic dXNlcjpzZWNyZXQ="), name(id, here, "Authorization", "basic dXNlcjpvdGhlcg==")},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	seen := map[string]int{}
	for i, n := range []string{
		name(id, here), name(id, "192.0.2.8:1"), name(id, here, "Authorization", "Basic dXNlcjpzZWNyZXQ="),
		name(id, here, "Authorization", "ApiKey dXNlcjpzZWNyZXQ="), name(id, here, "Authorization", "Bearer a"), name(id, here, "Authorization", "Bearer b"),
		name(id, here, "Cookie", "a"), name(id, here, "X-Api-Key", "a"), name(id, here, "Optimist-Session", "192.0.2.7"),
		name(id, here, "Optimist-Session", "ip=192.0.2.7"), name(id, here, "Optimist-Session", strings.Repeat("a", 65)),
		name(id, here, "Optimist-Session", strings.Repeat("a", 66)), name(id, here, "Optimist-Session", "a", "Authorization", "Bearer a"),
	} {
		if before, ok := seen[n]; ok {
			t.Errorf("%d and %d have the name %q", before, i, n)
		}
		seen[n] = i
	}
}
