package glob

import (
	"strings"
	"testing"
)

// What the engines show (seen on OpenSearch 3.8.0, Elasticsearch 7.10.2 and 9.5.3).
func TestFieldsAreThoseThatTheEnginesShow(t *testing.T) {
	const source = `{"a":2,"b":{"x":[{"k":1,"l":2},{"l":3},{}],"y":2.50,"z":null},"c":"z"}`
	for _, c := range []struct{ includes, excludes, want string }{
		{"a", "", `{"a":2}`},
		{"b", "b.x.l", `{"b":{"x":[{"k":1}],"y":2.50,"z":null}}`},
		{"", "*.l", `{"a":2,"b":{"x":[{"k":1}],"y":2.50,"z":null},"c":"z"}`},
		{"b.*", "b.x", `{"b":{"y":2.50,"z":null}}`},
		{"*y", "", `{"b":{"y":2.50}}`},
		{"none", "", `{}`},
	} {
		got := string(NewFields(split(c.includes), split(c.excludes)).Append(nil, []byte(source)))
		if got != c.want {
			t.Errorf("%s without %s: %s, want %s", c.includes, c.excludes, got, c.want)
		}
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
