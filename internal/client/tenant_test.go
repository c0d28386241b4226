package client

import (
	"strings"
	"testing"

	"optimist/internal/wire"
)

func TestATenantIsKeptWithoutCredentials(t *testing.T) {
	id := &Identity{Infer: true, Address: true, Headers: []string{"X-Project"}, Fields: wire.NewNames(append(wire.IdentityNames, []string{"X-Shop", "X-Shop-Token"})...)}
	for request, want := range map[string]string{
		"Content-Type X-Tenant X-Shop Optimist-Session": "X-Shop X-Tenant",
		"X-Project":                         "X-Project",
		"Authorization X-Shop-Token X-Shop": "X-Shop",
		"X-Forwarded-For X-Whatever":        "X-Forwarded-For",
		"X-Real-IP X-Tenant":                "X-Real-IP X-Tenant",
		"Cookie X-Tenant X-Forwarded-For":   "X-Tenant",
		"X-Forwarded-For ?tenant=a&v=1":     "X-Forwarded-For ?tenant=a",
		"X-Forwarded-For ?api_key=a&org=b":  " ?org=b",
		strings.Repeat("x", 200):            "",
	} {
		names, query, _ := strings.Cut(request, "?")
		var fields []wire.Field
		for name := range strings.FieldsSeq(names) {
			fields = append(fields, wire.Field{Name: []byte(name), Value: []byte("192.0.2.1:7")})
		}
		kept, params := id.Tenant(fields, []byte(query))
		var got []string
		for _, f := range kept {
			got = append(got, string(f.Name))
			if want := wire.IsAddress(f.Name); want != (string(f.Value) == "192.0.2.1") {
				t.Errorf("%s: %s", f.Name, f.Value)
			}
		}
		text := strings.Join(got, " ")
		if len(params) > 0 {
			text += " ?" + string(params)
		}
		if text != want {
			t.Errorf("%s: keeps %q; want %q", request, text, want)
		}
	}
	moving := &Identity{Infer: true}
	if kept, _ := moving.Tenant([]wire.Field{{Name: []byte("X-Forwarded-For"), Value: []byte("192.0.2.1")}}, nil); kept != nil {
		t.Errorf("clients move, and %s is kept", kept)
	}
}
