package wire

import (
	"strings"
	"testing"
)

func TestTheLastNameThatFitsDecides(t *testing.T) {
	n := NewNames([]string{"x-a", "*-b", "x-*-z", "-x-a-b"}, []string{"X-A-B-C*", "-*-m*n*-z"})
	for name, want := range map[string]bool{
		"X-A": true, "x-a": true, "x-aa": false, "x-b": true, "-b": true, "b": false, "x-a-b": false, "x-a-b-c": true, "x-a-b-cd": true,
		"x-1-z": true, "x--z": true, "x-z": false, "x-mon-z": false, "x-nm-z": true, "x-m-n-z": false, "": false,
		strings.Repeat("x", longestName): false, strings.Repeat("x", longestName+1): true,
	} {
		if n.Has([]byte(name)) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if (*Names)(nil).Has([]byte("x")) {
		t.Error("no list has a name")
	}
}

func TestCredentialsUsersTenantsAndOrganisationsTellClientsApart(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Cookie", "es-security-runas-user", "opendistro_security_impersonate_as", "sg_impersonate_as",
		"ES-Secondary-Authorization", "ES-Client-Authentication", "es-secondary-x-client-authentication", "x-proxy-user", "x-proxy-roles",
		"x-proxy-ext-department", "x-forwarded-user", "x-forwarded-email", "x-forwarded-groups", "x-auth-request-user", "X-Remote-User",
		"Remote-User", "X-SSL-Client-Cert", "X-Forwarded-Client-Cert", "x-client-dn", "X-Amz-Security-Token", "X-Api-Key", "x-access-token",
		"jwt", "securitytenant", "X-Scope-OrgID", "X-Found-Cluster", "X-Tenant", "X-Tenant-Id", "Tenant", "X-Org-Id", "X-Organization-Id",
		"X-Customer-Id", "X-Account-Id", "X-Namespace", "X-User-Id", "X-Auth-Token", "X-Project-Id", "X-Amzn-Oidc-Identity", "X-Workspace",
	} {
		if !DefaultIdentity().Has([]byte(name)) {
			t.Errorf("%s makes no difference", name)
		}
	}
	for _, name := range []string{
		"X-Opaque-Id", "traceparent", "tracestate", "User-Agent", "X-Request-Id", "X-Forwarded-Proto", "X-Amzn-Trace-Id", "X-B3-TraceId",
		"X-Correlation-Id", "X-Ms-Client-Request-Id", "Content-Type", "Accept", "Host", "Content-Length", "X-Elastic-Client-Meta", "Via",
		"X-CSRF-Token", "Idempotency-Key", "baggage", "Date", "kbn-xsrf", "X-User-Request-Id", "Optimist-Session", "X-Forwarded-For",
	} {
		if DefaultIdentity().Has([]byte(name)) {
			t.Errorf("%s makes a difference: it changes with every request", name)
		}
	}
	for _, name := range []string{"authorization", "x-remote-user", "cookie", "x-api-key"} {
		if !IsCredential([]byte(name)) {
			t.Errorf("%s would go out together with credentials of ours", name)
		}
	}
	if IsCredential([]byte("x-tenant")) || IsCredential([]byte("x-trace-token")) {
		t.Error("a tenant, or a trace, is no credential")
	}
}

func TestConnectionTakesOutNothingThatSaysWhoAsks(t *testing.T) {
	for own, want := range map[*Names]string{
		nil:                           "X-Tenant X-Real-IP",
		NewNames([]string{"x-shop"}):  "X-Shop X-Real-IP",
		NewNames([]string{"x-other"}): "X-Real-IP",
	} {
		h := Head{Identity: own}
		var r Reader
		r.Reset(strings.NewReader("GET / HTTP/1.1\r\nHost: h\r\nX-Tenant: a\r\nX-Shop: b\r\nX-Real-IP: 192.0.2.1\r\n" +
			"Connection: x-tenant, x-shop, x-real-ip\r\n\r\n"))
		if err := h.ReadRequest(&r, DefaultMaxHead); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, f := range h.EndToEnd(nil) {
			if name := string(f.Name); name != "Host" {
				left = append(left, name)
			}
		}
		if got := strings.Join(left, " "); got != want {
			t.Errorf("%q is left, want %q", got, want)
		}
	}
}

func TestLookingForANameAllocatesNothing(t *testing.T) {
	name := []byte("X-Some-Name-That-Nobody-Knows")
	if n := testing.AllocsPerRun(100, func() { DefaultIdentity().Has(name) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
