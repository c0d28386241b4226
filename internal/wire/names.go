package wire

import (
	"strings"

	"optimist/internal/glob"
)

// Names is a list of names of header fields, or of query parameters. Letters count without case. A star stands for any number of
// characters, and a name that begins with a minus sign takes names out that an earlier one has put in: the last one that fits
// decides. A Names is immutable.
type Names struct {
	exact    map[string]int // by name, the place of the last that is this name; a negative number takes it out
	patterns []pattern
}

// pattern is a name with stars.
type pattern struct {
	place int // as in exact
	name  string
}

// NewNames makes a list. Each of the lists goes on where the one before it ends.
func NewNames(lists ...[]string) *Names {
	n := &Names{exact: map[string]int{}}
	place := 0
	for _, list := range lists {
		for _, entry := range list {
			place++
			signed := place
			name, out := strings.CutPrefix(strings.ToLower(entry), "-")
			if out {
				signed = -place
			}
			if strings.Contains(name, "*") {
				n.patterns = append(n.patterns, pattern{signed, name})
			} else {
				n.exact[name] = signed
			}
		}
	}
	return n
}

// longestName is up to how many bytes a name is looked at. A longer one is in every list: to take too much for what tells clients
// apart costs less than to take too little.
const longestName = 128

// Has reports whether a name is in the list. It doesn't allocate.
func (n *Names) Has(name []byte) bool {
	if n == nil {
		return false
	}
	if len(name) > longestName {
		return true
	}
	var room [longestName]byte
	low := room[:len(name)]
	for i, c := range name {
		low[i] = lower(c)
	}
	place := n.exact[string(low)]
	for i := len(n.patterns) - 1; i >= 0; i-- {
		p := &n.patterns[i]
		if max(p.place, -p.place) < max(place, -place) {
			break
		}
		if glob.Match(p.name, low) {
			place = p.place
			break
		}
	}
	return place > 0
}

// CredentialNames are the fields that identify a client: those of the engines' own realms, of their proxy authentication and run-as, of
// gateways in front of them, and cookies, which may hold logins. They are a part of IdentityNames. Our own requests never carry a
// client's together with credentials of ours.
var CredentialNames = []string{
	"authorization", "cookie", "es-security-runas-user", "opendistro_security_impersonate_as", "sg_impersonate_as",
	"es-secondary-authorization", "es-client-authentication", "es-secondary-x-client-authentication",
	"*-user", "*-users", "*-userid", "*-user-id", "*-user-name", "*-username", "*-email", "*-group", "*-groups", "*-role", "*-roles",
	"x-proxy-ext-*", "*-principal", "*-subject", "*-identity", "*-client-cert", "*-client-dn", "*-client-id", "*impersonat*",
	"*authorization", "*authentication", "*-auth", "*-auth-*", "*-token", "*-access-token", "*api-key", "*apikey", "jwt", "*-jwt",
	"*-client-verify", "*-assertion",
}

// TenantNames are the fields by which requests and gateways say which tenant, organisation or cluster is meant. They are a part of
// IdentityNames.
var TenantNames = []string{
	"*tenant*", "*-org", "*-org-id", "*orgid", "*organization*", "*organisation*", "*-account", "*-account-id", "*-customer",
	"*-customer-id", "*-cluster", "*-cluster-id", "*-namespace", "*-workspace", "*-workspace-id", "*-project", "*-project-id",
	"*-realm", "*-domain", "*-instance-id", "*-database",
}

// PassingNames are fields of one request or of one piece of work. They tell no clients apart, even if their names look like it.
var PassingNames = []string{
	"*request-id*", "*requestid*", "*request_id*", "*trace*", "*span*", "*correlation*", "*csrf*", "*xsrf*", "*idempotency*",
	"x-opaque-id", "baggage", "newrelic", "x-b3-*", "x-datadog-*", "x-envoy-*", "x-request-start", "x-queue-start", "x-timer", "cf-ray",
	"date", "*-date", "user-agent", "x-elastic-client-meta", "optimist-*",
}

// IdentityNames is what tells clients apart where nothing else is configured.
var IdentityNames = [][]string{CredentialNames, TenantNames, negated(PassingNames)}

// IdentityParameters are the query parameters that do, as gateways read them. The engines know none of them.
var IdentityParameters = [][]string{{
	"*tenant*", "*api_key", "*api-key", "*apikey", "token", "*access_token", "auth", "org", "*org_id", "orgid", "organization*",
	"organisation*", "account", "account_id", "customer", "customer_id", "namespace", "workspace", "project", "project_id", "cluster",
	"user", "username", "user_id",
}}

func negated(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "-" + n
	}
	return out
}

// addressNames are the fields by which balancers and gateways say where a request comes from.
var addressNames = NewNames([]string{
	"x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "*-connecting-ip",
	"x-original-forwarded-for", "x-azure-clientip", "x-envoy-external-address",
})

// IsAddress reports whether a field says where a request comes from.
func IsAddress(name []byte) bool { return addressNames.Has(name) }

// ownNames are the fields that are about one message: its connection, its body, its answer, its conditions.
var ownNames = NewNames([]string{
	"content-*", "accept", "accept-*", "if-*", "range", "expect", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te",
	"trailer", "upgrade", "http2-settings", "digest", "want-*", "repr-digest", "cache-control", "pragma", "*method-override", "*idempotency*",
})

// IsOwn reports whether a field is about one message. A request of ours on a client's behalf doesn't carry the client's.
func IsOwn(name []byte) bool { return ownNames.Has(name) }

var (
	defaultIdentity = NewNames(IdentityNames...)
	credentialNames = NewNames(CredentialNames, negated(PassingNames))
	passingNames    = NewNames(PassingNames)
)

// DefaultIdentity is the list of IdentityNames.
func DefaultIdentity() *Names { return defaultIdentity }

// IsCredential reports whether a field says who asks: see CredentialNames.
func IsCredential(name []byte) bool { return credentialNames.Has(name) }

// IsSecretParameter reports whether a query parameter is a credential.
func IsSecretParameter(name []byte) bool { return secretParameters.Has(name) }

var secretParameters = NewNames([]string{"*api_key", "*api-key", "*apikey", "*token", "auth", "user", "username", "user_id"})

// IsForOptimist reports whether a field is for optimist alone.
func IsForOptimist(name []byte) bool {
	const prefix = "optimist-"
	return len(name) > len(prefix) && EqualFold(name[:len(prefix)], prefix)
}

// IsPassing reports whether a field is of one request only: see PassingNames.
func IsPassing(name []byte) bool { return passingNames.Has(name) }
