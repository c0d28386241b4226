package intercept

import (
	"strings"
	"testing"

	"optimist/internal/api"
)

// What the request names is asked for before it is sent and after it was answered, and no more than that.
func TestTheNamesOfAChangeAreThoseThatItConcerns(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		want                 string // the expression; then, after a space, what a success proves
	}{
		{"DELETE", "/a", "", "a a"}, {"DELETE", "/a,b-*", "", "a,b-* a"}, {"DELETE", "/%3Ca-%7Bnow%7D%3E", "", "%3Ca-%7Bnow%7D%3E "},
		{"PUT", "/a%2Bb", "", "a%2Bb a+b"}, {"DELETE", "/_all", "", "_all "}, {"DELETE", "/a?ignore_unavailable", "", "a "},
		{"PUT", "/a/_alias/x", "", "a,x "}, {"DELETE", "/a/_alias/x*", "", "a,x* "}, {"DELETE", "/a,b/_aliases/_all", "", "a,b "},
		{"PUT", "/_alias/x", `{"index":"a"}`, "x,a "}, {"POST", "/_alias", `{"index":"a","alias":"x"}`, "a,x "},
		{"POST", "/_aliases", `{"actions":[{"add":{"index":"a","alias":"x"}},{"remove":{"indices":["b"],"aliases":["y*"]}}]}`, "a,x,b,y%2A "},
		{"POST", "/_aliases", `{"actions":[{"remove_index":{"index":"a"}},{"remove":{"index":"*","alias":"-x"}}]}`, "* a"},
		{"POST", "/_aliases", `{"actions":[{"remove_index":{"indices":["a","b*"]}}]}`, "a,b%2A a"}, {"POST", "/_aliases", `actions: []`, "* "},
		{"POST", "/_aliases", `{"actions":[{"add":{"index":"a","alias":"` + strings.Repeat("x", 4000) + `"}}]}`, "* "},
		{"DELETE", "/a,b*,-a", "", "a,b*,-a "}, {"DELETE", "/a,%2Da", "", "a,%2Da "},
		{"POST", "/a/_rollover", "", "a "}, {"POST", "/a/_rollover/b", "", "a "}, {"PUT", "/a/_shrink/b", "{}", "b b"},
		{"DELETE", "/_data_stream/d-*", "", "d-* "}, {"POST", "/_data_stream/_modify", "{}", "* "}, {"POST", "/_snapshot/r/s/_restore", "", "* "},
		{"PUT", "/x#/a", "", "* "}, {"PUT", "/x#,a", "", "* "}, {"DELETE", "/a#x*", "", "* "}, {"PUT", "/x/_alias/y#/a", "", "* "},
		{"PUT", "/x/_clone#/a", "", "* "}, {"PUT", "/x/_clone", "", "* "}, {"PUT", "/x/_clone/y/a", "", "* "}, {"PUT", "/x?y#/a", "", "* "},
	} {
		var n names
		op := parsed(c.method, c.target)
		if n.of(op, c.method, []byte(c.body), false); n.expression()+" "+strings.Join(n.proven, ",") != c.want || !op.Renumbers {
			t.Errorf("%s %s %.80s: %s %v", c.method, c.target, c.body, n.expression(), n.proven)
		}
	}
}

func parsed(method, target string) *api.Op {
	var op api.Op
	api.Parse([]byte(method), []byte(target), &op)
	return &op
}
