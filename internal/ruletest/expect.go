package ruletest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/spelling"
)

// any reports whether anything is expected.
func (e *Expect) any() bool { return !reflect.ValueOf(e).Elem().IsZero() }

func (c *checker) expect(key string, e *Expect) {
	c.document(key+".document", &e.Document)
	c.choice(key+".outcome", e.Outcome, []string{"passed", "guarded", "merged", "combined", "retried", "refused", "not_sent", "unknown",
		"dead-letter"})
	c.choice(key+".result", e.Result, []string{"created", "updated", "deleted", "noop", "not_found"})
	c.choice(key+".base", e.Base, []string{"none", "explicit", "if_match", "stamp", "session", "view", "absent", "lost", "fetched"})
	if e.Status != 0 && (e.Status < 200 || e.Status > 599) {
		c.fail(key+".status", "%d is not a status; it is a number as 200 or 409", e.Status)
	}
	if e.Attempts != nil && *e.Attempts < 0 {
		c.fail(key+".attempts", "%d is not a number of attempts", *e.Attempts)
	}
	if e.Rule.IsSet && !e.Rule.Null() && gjson.ParseBytes(e.Rule.Text).Type != gjson.String {
		c.fail(key+".rule", "want the name of a rule, or null for none")
	}
	if e.Answer.IsSet && !isObject(e.Answer) {
		c.fail(key+".answer", "want members of the answer, as in {result: noop}")
	}
	for _, p := range e.Overwrote {
		if !strings.HasPrefix(p, "/") {
			c.fail(key+".overwrote", "%s is not a path; a path is a JSON Pointer, as in /status", p)
		}
	}
}

// choice checks a word that is one of several.
func (c *checker) choice(key, word string, choices []string) {
	if word != "" && !slices.Contains(choices, word) {
		c.fail(key, "%s", spelling.NotOneOf(word, choices))
	}
}
