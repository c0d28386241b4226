package app

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"optimist/internal/client"
	"optimist/internal/config"
	"optimist/internal/upstream"
	"optimist/proxy"
)

func parsed(t *testing.T, content string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(content), config.Overrides{Upstream: []string{"http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryLimitReachesTheDoor(t *testing.T) {
	c := parsed(t, "limits: {max_connections: 1, max_header: 5KiB, max_guarded_body: 2KiB, header_timeout: 3s, body_timeout: 4s, write_timeout: 5s, min_rate: 6B, idle_timeout: 7s}")
	want := proxy.Limits{MaxConnections: 1, MaxHeader: 5 << 10, MaxBody: 2 << 10, HeaderTimeout: 3 * time.Second, BodyTimeout: 4 * time.Second,
		WriteTimeout: 5 * time.Second, MinRate: 6, IdleTimeout: 7 * time.Second}
	if got := limits(&c.Limits); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := reflect.TypeFor[config.Limits]().NumField(); n != 9 {
		t.Errorf("%d keys, of which 9 are looked at here and in TestTheMemoryOfRequests", n)
	}
	if got := limits(&parsed(t, "limits: {min_rate: 0B}").Limits); got.MinRate >= 0 {
		t.Errorf("a rate of 0 is the default's, %d", got.MinRate)
	}
}

func TestEveryKeyOfTheUpstreamReachesTheConnections(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("id:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := parsed(t, `upstream:
  tls: {ca_file: /ca.pem, cert_file: /cert.pem, key_file: /key.pem, server_name: es.test}
  auth: {api_key_file: `+key+`}
  connect_timeout: 1s
  idle_timeout: 2s
  max_connections: 3
  acquire_timeout: 4s
  health_interval: 5s
`)
	want := upstream.Config{URLs: []string{"http://127.0.0.1:1"}, TLS: upstream.TLS{CAFile: "/ca.pem", CertFile: "/cert.pem", KeyFile: "/key.pem", ServerName: "es.test"},
		Authorization: "ApiKey aWQ6c2VjcmV0", ConnectTimeout: time.Second, IdleTimeout: 2 * time.Second, MaxConns: 3, AcquireTimeout: 4 * time.Second, HealthInterval: 5 * time.Second}
	if got, err := UpstreamConfig(&c.Upstream); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	if n := reflect.TypeFor[config.Upstream]().NumField() + reflect.TypeFor[config.TLS]().NumField(); n != 9+5 {
		t.Errorf("%d keys, of which 14 are looked at here and in TestTheLimitOnWrites", n)
	}
	if got, err := UpstreamConfig(&parsed(t, "upstream: {health_interval: 0s, tls: {verify: none}}").Upstream); err != nil || got.HealthInterval >= 0 || !got.TLS.Insecure {
		t.Errorf("%+v %v: certificates aren't looked at, nor nodes asked", got, err)
	}
}

func TestSessionsAreToldApartAsConfigured(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")}
	for content, want := range map[string]client.Identity{
		"": {Headers: []string{"Optimist-Session"}, Traces: true, Infer: true, Address: true},
		"sessions: {header: X-Thread, trusted_proxies: [10.0.0.0/8, 192.0.2.1]}": {Headers: []string{"X-Thread"}, Infer: true, Address: true, Trusted: proxies},
		"sessions: {infer: credentials}":                                         {Headers: []string{"Optimist-Session"}, Traces: true, Infer: true},
		"sessions: {infer: none}":                                                {Headers: []string{"Optimist-Session"}, Traces: true},
		"sessions: {infer: none, header: [A, TraceParent, B]}":                   {Headers: []string{"A", "B"}, Traces: true},
		"sessions: {infer: none, header: traceparent}":                           {Traces: true},
		"sessions: {infer: none, header: []}":                                    {},
		"sessions: {infer: none, header: ''}":                                    {},
	} {
		c := parsed(t, content)
		got := readIdentity(&c.Sessions, &c.Identity)
		if !got.Fields.Has([]byte("X-Tenant")) || !got.Parameters.Has([]byte("tenant")) || got.Fields.Has([]byte("X-Shop")) {
			t.Errorf("%q: the usual names aren't known, or others are", content)
		}
		got.Fields, got.Parameters = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", content, got, want)
		}
	}
}

func TestNamesOfTheConfigurationTellClientsApartToo(t *testing.T) {
	c := parsed(t, "identity: {fields: [X-Shop, X-Env-*, -x-user], parameters: [shard]}")
	got := readIdentity(&c.Sessions, &c.Identity)
	for name, want := range map[string]bool{"x-shop": true, "X-ENV-A": true, "x-user": false, "x-remote-user": true, "X-Tenant-Id": true, "x-other": false} {
		if got.Fields.Has([]byte(name)) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if !got.Parameters.Has([]byte("shard")) || got.Parameters.Has([]byte("routing")) {
		t.Error("the parameters are others")
	}
}
