package ruletest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/config"
	"optimist/internal/spelling"
)

// any reports whether anything is expected.
func (e *Expect) any() bool { return !reflect.ValueOf(e).Elem().IsZero() }

func (c *checker) expect(key string, e *Expect) {
	c.document(key+".document", &e.Document)
	c.choice(key+".outcome", e.Outcome, []string{"passed", "guarded", "merged", "combined", "retried", "refused", "not_sent", "unknown"})
	c.choice(key+".result", e.Result, []string{"created", "updated", "deleted", "noop", "not_found"})
	c.choice(key+".base", e.Base, []string{"none", "explicit", "if_match", "stamp", "session", "view", "absent", "lost", "fetched"})
	if e.Status != 0 && (e.Status < 200 || e.Status > 599) {
		c.fail(key+".status", "%d is not a status; it is a number as 200 or 409", e.Status)
	}
	for _, b := range []struct {
		name string
		j    *config.JSON
	}{{"ambiguous", &e.Ambiguous}, {"noop", &e.Noop}, {"unchanged", &e.Unchanged}, {"refused", &e.Refused}} {
		if b.j.Given && string(b.j.Text) != "true" && string(b.j.Text) != "false" {
			c.fail(key+"."+b.name, "want true or false")
		}
	}
	if n := gjson.ParseBytes(e.Attempts.Text); e.Attempts.Given && (n.Type != gjson.Number || strings.Trim(n.Raw, "0123456789") != "") {
		c.fail(key+".attempts", "want a whole number")
	}
	if e.Rule.Given && !e.Rule.Null() && gjson.ParseBytes(e.Rule.Text).Type != gjson.String {
		c.fail(key+".rule", "want the name of a rule, or null for none")
	}
	if e.Answer.Given && !isObject(e.Answer) {
		c.fail(key+".answer", "want members of the answer, as in {result: noop}")
	}
	c.paths(key+".overwrote", &e.Overwrote)
}

func (c *checker) paths(key string, j *config.JSON) {
	list := gjson.ParseBytes(j.Text)
	switch {
	case !j.Given:
		return
	case list.Type == gjson.String && list.Str != "":
		c.fail(key, "want a list of paths; write [%s]", list.Str)
		return
	case !list.IsArray():
		c.fail(key, "want a list of paths, as in [/status]; [] for none")
		return
	}
	for _, p := range list.Array() {
		if p.Type != gjson.String || !strings.HasPrefix(p.Str, "/") {
			c.fail(key, "%s is not a path; a path is a JSON Pointer, as in /status", p.Raw)
		}
	}
}

// choice checks a word that is one of several.
func (c *checker) choice(key, word string, choices []string) {
	if word != "" && !slices.Contains(choices, word) {
		c.fail(key, "%s", spelling.NotOneOf(word, choices))
	}
}
