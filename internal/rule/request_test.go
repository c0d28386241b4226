package rule

import (
	"os"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/wire"
)

func fields(pairs ...string) []wire.Field {
	var list []wire.Field
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, wire.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return list
}

func TestRulesChooseByHeaderAndUser(t *testing.T) {
	_, s := compiled(t, `
rules:
  - {name: both, match: {headers: {X-Tenant: "acme-*", x-batch: "*"}, users: [ada]}}
  - {name: tenant, match: {headers: {X-Tenant: acme-1}}}
  - {name: user, match: {users: [ada, "svc-*"]}}
  - {name: rest}
`)
	ada := "Basic YWRhOnNlY3JldA=="
	for _, c := range []struct {
		fields []wire.Field
		want   string
	}{
		{nil, "rest"},
		{fields("x-tenant", "acme-2", "X-Batch", "", "Authorization", ada), "both"},
		{fields("x-tenant", "acme-1", "Authorization", ada), "tenant"},
		{fields("x-tenant", "other", "X-TENANT", "acme-1"), "tenant"},
		{fields("x-tenant", "ACME-1"), "rest"},
		{fields("authorization", ada), "user"},
		{fields("authorization", "bAsIc YWRhOnNlY3JldA== "), "user"},
		{fields("authorization", "Basic !"), "rest"},
		{fields("authorization", "Bearer YWRhOnNlY3JldA=="), "rest"},
		{fields("authorization", "ApiKey YWRhOnNlY3JldA==", "x-proxy-user", "svc-1"), "user"},
		{fields("x-forwarded-user", "bob", "x-proxy-user", "ada"), "user"},
		{fields("x-forwarded-user", "ada", "authorization", "Basic Ym9iOng="), "rest"},
		{fields("authorization", ada, "es-security-runas-user", "bob"), "rest"},
		{fields("authorization", "Basic Ym9iOng=", "Es-Security-Runas-User", "ada"), "user"},
		{fields("authorization", ada, "opendistro_security_impersonate_as", "bob"), "rest"},
		{fields("authorization", "Basic Ym9iOng=", "Opendistro_Security_Impersonate_As", "ada"), "user"},
		{fields("authorization", "Basic Ym9iOng=", "sg_impersonate_as", "ada"), "user"},
		{fields("sg_impersonate_as", "ada", "opendistro_security_impersonate_as", "bob"), "rest"},
		{fields("opendistro_security_impersonate_as", "ada", "es-security-runas-user", "bob"), "rest"},
		{fields("authorization", ada, "es-security-runas-user", ""), "user"},           // empty names nobody
		{fields("authorization", "Basic OnNlY3JldA==", "x-proxy-user", "ada"), "user"}, // nor does an empty name
		{fields("authorization", "Basic QURBOng="), "rest"},                            // ADA
	} {
		if got := name(s.MatchRequest(&Target{Index: "shop", Kind: api.Index, Fields: c.fields})); got != c.want {
			t.Errorf("%s is taken by %q, want %q", c.fields, got, c.want)
		}
	}
	if got := name(s.Match("shop", api.Index)); got != "rest" {
		t.Errorf("by the name alone it is %q", got)
	}
}

func TestARuleThatAsksForMoreHidesNothing(t *testing.T) {
	c, _ := compiled(t, `rules:
  - {name: a, match: {headers: {X-A: b}}}
  - {name: b, match: {users: [b]}}
  - {name: c}
  - {name: d, match: {users: [d]}}
`)
	found := Lint(c)
	if len(found) != 1 || found[0].Key != "rules[3]" {
		t.Errorf("got %v", found)
	}
}

func TestAnAliasIsTakenByItsNameAndByItsIndexes(t *testing.T) {
	_, s := compiled(t, `
rules:
  - {name: concrete, match: {index: [shop-v2], ops: [index]}}
  - {name: alias, match: {index: [shop]}}
  - {name: stream, match: {index: [applogs-x, "orders-*", "-orders-old"]}}
  - {name: keyed, match: {index: [keyed], headers: {X-A: "1"}}}
  - {name: rest, match: {ops: [index, create]}}
  - {name: hidden, match: {index: [".h"], ops: [delete]}}
`)
	for _, c := range []struct {
		a         Target
		want      string
		elsewhere bool // it is worth to know what the name stands for
	}{
		{Target{Index: "shop", Kind: api.Index}, "alias", true},
		{Target{Index: "shop", Kind: api.Index, Concrete: "shop-v2"}, "concrete", true},
		{Target{Index: "shop", Kind: api.Update, Concrete: "shop-v2"}, "alias", false},
		{Target{Index: "shop-v2", Kind: api.Index}, "concrete", false},
		{Target{Index: "other", Kind: api.Index}, "rest", true},
		{Target{Index: "other", Kind: api.Index, Concrete: "shop-v2"}, "concrete", true},
		{Target{Index: "other", Kind: api.Index, Concrete: "other"}, "rest", true},
		{Target{Index: "other", Kind: api.Update, Concrete: "orders-1"}, "stream", true},
		{Target{Index: "other", Kind: api.Update, Concrete: "orders-old"}, "", true},
		{Target{Index: "orders-old", Kind: api.Update, Concrete: "orders-1"}, "", true},
		{Target{Index: ".ds-applogs-x-000001", Kind: api.Update, Concrete: ".ds-applogs-x-000001", Stream: "applogs-x"}, "stream", true},
		{Target{Index: "logs-app", Kind: api.Update, Concrete: ".ds-applogs-x-000001", Stream: "applogs-x"}, "stream", true},
		{Target{Index: "logs-app", Kind: api.Index, Concrete: "logs-1"}, "", true}, // a rule for the rest goes by the request's own name
		{Target{Index: "other", Kind: api.Update, Concrete: "keyed"}, "", true},
		{Target{Index: "other", Kind: api.Update, Concrete: "keyed", Fields: fields("x-a", "1")}, "keyed", true},
		{Target{Index: "other", Kind: api.Bulk}, "", false},
		{Target{Index: "<orders-{now/d}>", Kind: api.Update}, "stream", true},
		{Target{Index: "<orders-{now/d{yyyy.MM|+12:00}}-x>", Kind: api.Update}, "stream", true},
		{Target{Index: "<logs-{now/d}>", Kind: api.Index}, "", true},
		{Target{Index: "<x-{now/d}>", Kind: api.Index}, "rest", true},
		{Target{Index: "<x-{now/d}>", Kind: api.Update, Concrete: "shop"}, "alias", true},
	} {
		if got := name(s.MatchRequest(&c.a)); got != c.want {
			t.Errorf("%+v is taken by %q, want %q", c.a, got, c.want)
		}
		plain := c.a
		plain.Concrete, plain.Stream = "", ""
		if got := s.Elsewhere(&plain, s.MatchRequest(&plain)); got != c.elsewhere {
			t.Errorf("%+v may be taken by another name: %v", plain, got)
		}
	}
}

func TestAnIndexIsTakenByAnyOfItsNames(t *testing.T) {
	_, s := compiled(t, `
rules:
  - {name: batch, match: {index: [a], ops: [patch], users: [batch]}}
  - {name: alias, match: {index: ["*-now", "-b"]}}
  - {name: rest}
`)
	for want, names := range map[string][]string{"batch": {"a"}, "alias": {"c", "c-now"}, "rest": {"b", "b-now"}, "": {"logs-a", "shop"}} {
		if got := name(s.MatchAny(names...)); got != want {
			t.Errorf("%v is taken by %q, want %q", names, got, want)
		}
	}
}

func TestWithoutNamedIndicesNobodyAsksWhatANameStandsFor(t *testing.T) {
	for _, rules := range []string{"", "rules: [{name: a, match: {ops: [delete]}}, {name: b}]", "rules: [{name: a, match: {index: [a], ops: [delete]}}, {name: b}]"} {
		_, s := compiled(t, rules)
		for _, index := range []string{"shop", ".kibana", "logs-x", "<logs-{now/d}>"} {
			a := Target{Index: index, Kind: api.Index}
			if s.Elsewhere(&a, s.MatchRequest(&a)) {
				t.Errorf("with %q it is asked what %s stands for", rules, index)
			}
		}
	}
}

func TestDateExpressionsAreTakenByWhatIsCertain(t *testing.T) {
	for expr, want := range map[string]string{"<logs-{now/d}>": "logs-0", "<a{now/M{yyyy.MM|+12:00}}b>": "a0b", "<{now/d}-{now-1d/d}>": "0-0", "<a>": "a",
		`<a\{b\}{now}>`: "a{b}0", "<": "<", "<>": "", "a<b>": "a<b>", "<a{": "<a{", "<a}>": "a", "<a{{>": "a0"} {
		if got := stem(expr); got != want {
			t.Errorf("%s is taken as %q, want %q", expr, got, want)
		}
	}
}

// TestThePagesNameWhatTellsTheUser: every field, in the order in which they count.
func TestThePagesNameWhatTellsTheUser(t *testing.T) {
	for _, page := range []string{"../../docs/rules.md", "../../configs/optimist.yaml"} {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\n      # ", " ") // a comment of the sample goes over several lines
		begin := strings.Index(text, userFields[0])
		if begin < 0 {
			t.Errorf("%s: it doesn't say what tells the user", page)
			continue
		}
		rest := strings.ToLower(text[begin:])
		for _, name := range userFields {
			_, after, ok := strings.Cut(rest, name)
			if name == "authorization" {
				_, after, ok = strings.Cut(rest, "basic credentials")
			}
			if !ok || len(rest)-len(after) > 250 {
				t.Errorf("%s: %s isn't named where it counts", page, name)
				break
			}
			rest = after
		}
	}
}

func TestConditionsAllocateNothingWhereNoRuleAsksForUsers(t *testing.T) {
	_, s := compiled(t, "rules: [{name: a, match: {headers: {X-A: 'a-*b*'}}}, {name: b, match: {index: [c]}}, {name: d}]")
	f := fields("Host", "x", "Authorization", "Basic YWRhOnNlY3JldA==", "x-a", "a-12345678901234567890123456789012345678901234567890")
	if n := testing.AllocsPerRun(100, func() {
		a := Target{Index: "orders-2026", Kind: api.Index, Fields: f}
		s.Elsewhere(&a, s.MatchRequest(&a))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
