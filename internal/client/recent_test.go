package client

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"optimist/internal/wire"
)

func TestClientsThatTakeTurnsOnAConnectionAreToldApart(t *testing.T) {
	id := &Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	peer := netip.MustParseAddrPort("10.0.0.1:1234")
	requests := [][]string{
		{},
		{"Authorization", "Basic a"},
		{"Authorization", ""},
		{"Authorization", "Basic b"},
		{"Authorization", "Basic a", "Optimist-Session", "s"},
		{"Authorization", "Basic a", "Optimist-Session", "t"},
		{"Authorization", "Basic a", "Cookie", "s"},
		{"Authorization", "Basic a", "Cookie", "x", "Cookie", "y"},
		{"Authorization", "Basic a", "Cookie", "xy"},
		{"Authorization", "AWS4-HMAC-SHA256 Credential=x"},
		{"Authorization", "Negotiate x"},
		{"X-Forwarded-For", "192.0.2.1"},
		{"X-Forwarded-For", "192.0.2.2"},
		{"Cookie", strings.Repeat("long", maxRecent)},
		{"Authorization", "Basic a"},
	}
	var s recent
	for _, again := range []bool{false, true} {
		for i, r := range requests {
			var fields []wire.Field
			for k := 0; k < len(r); k += 2 {
				fields = append(fields, wire.Field{Name: []byte(r[k]), Value: []byte(r[k+1])})
			}
			got, want := s.of(id, fields, nil, peer, nil), id.Of(fields, nil, peer, nil)
			if again {
				got = s.of(id, fields, nil, peer, nil) // from memory
			}
			if got.Session != want.Session || got.Signed != want.Signed || got.Bound != want.Bound || got.Route != want.Route || got.Realm != want.Realm {
				t.Errorf("request %d: %+v, not %+v", i, got, want)
			}
			for _, f := range fields {
				clear(f.Value) // the connection's buffer is used again, and what is remembered must not be in it
				clear(f.Name)
			}
		}
	}
}

func TestTellingTheSameClientAgainAllocatesNothing(t *testing.T) {
	id := &Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true}
	fields := []wire.Field{
		{Name: []byte("Host"), Value: []byte("h")}, {Name: []byte("Authorization"), Value: []byte("Basic a")},
		{Name: []byte("Optimist-Session"), Value: []byte("s")},
	}
	var s recent
	s.of(id, fields, nil, netip.AddrPort{}, nil)
	if n := testing.AllocsPerRun(100, func() { s.of(id, fields, nil, netip.AddrPort{}, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFieldsOfOneRequestAloneDontMakeAnotherClient(t *testing.T) {
	id := &Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true}
	field := func(name, value string) wire.Field { return wire.Field{Name: []byte(name), Value: []byte(value)} }
	get := []wire.Field{field("Host", "h"), field("Authorization", "Basic a"), field("Optimist-Session", "s")}
	put := []wire.Field{field("Host", "h"), field("Content-Type", "application/json"), field("Authorization", "Basic a"),
		field("Optimist-Session", "s"), field("Content-Length", "2"), field("X-Request-Id", "17")}
	var s recent
	want := s.of(id, get, nil, netip.AddrPort{}, nil)
	if got := s.of(id, put, nil, netip.AddrPort{}, nil); got.Session != want.Session || got.Route != want.Route {
		t.Errorf("%+v, not %+v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() {
		s.of(id, get, nil, netip.AddrPort{}, nil)
		s.of(id, put, nil, netip.AddrPort{}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWhatIsKnownOfNamesIsBounded(t *testing.T) {
	id := &Identity{Infer: true}
	var s recent
	for i := range 10_000 {
		name := "X-" + strings.Repeat("long", i%100) + strconv.Itoa(i)
		fields := []wire.Field{{Name: []byte(name), Value: []byte("v")}}
		if got, want := s.of(id, fields, nil, netip.AddrPort{}, nil), id.Of(fields, nil, netip.AddrPort{}, nil); got.Route != want.Route {
			t.Fatalf("%s: %+v, not %+v", name, got, want)
		}
		size := 0
		for _, k := range s.roles {
			size += len(k.name)
		}
		if size > maxRecent || len(s.roles) > maxNames {
			t.Fatalf("%d names of %d bytes", len(s.roles), size)
		}
	}
}
