package ruletest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/explain"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// happened is what came of a write, or, without an account, of several.
type happened struct {
	answer        *answer
	account       *explain.Account
	before, after revision
}

// comparison collects what isn't as expected.
type comparison struct {
	e        *Expect
	h        *happened
	failures []string
}

// compare tells, each in a line, what isn't as expected.
func compare(e *Expect, h *happened) []string {
	c := comparison{e: e, h: h}
	c.document()
	c.outcome()
	c.answer()
	c.changes()
	return c.failures
}

func (c *comparison) fail(format string, args ...any) {
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

// word compares words; an empty one isn't expected.
func (c *comparison) word(what, want, got string) {
	if want != "" && want != got {
		c.fail("%s: expected %s, got %s", what, want, cmp.Or(got, "nothing"))
	}
}

func (c *comparison) document() {
	e, got := c.e, c.h.after.source
	switch {
	case !e.Document.IsSet:
	case e.Document.Null() && got != nil:
		c.fail("document: expected none, got %s", short(got))
	case e.Document.Null():
	case got == nil:
		c.fail("document: expected %s, got none", short(e.Document.Text))
	default:
		for _, d := range differences(e.Document.Text, got, false) {
			c.fail("document %s", d)
		}
	}
}

// differences tells, path by path, where two JSON values differ: the order of keys doesn't count, numbers are compared by their digits.
// With among what is there beyond what is wanted doesn't count.
func differences(want, got []byte, among bool) []string {
	p, err := edit.Diff(want, got, tree.Limits{})
	if err != nil {
		return []string{"can't be compared: " + err.Error()}
	}
	var found []string
	var old []byte
	for _, op := range p {
		path := cmp.Or(op.Path, "as a whole")
		switch op.Op {
		case "test":
			old = op.Value
		case "remove":
			found = append(found, fmt.Sprintf("%s: expected %s, got nothing", path, short(old)))
		case "replace":
			found = append(found, fmt.Sprintf("%s: expected %s, got %s", path, short(old), short(op.Value)))
		case "add":
			if among {
				continue
			}
			found = append(found, fmt.Sprintf("%s: expected nothing, got %s", path, short(op.Value)))
		}
	}
	return found
}

// maxShown is how many bytes of a value are shown.
const maxShown = 400

// short is a value in one line, cut if it is long.
func short(b []byte) string {
	var line bytes.Buffer
	if json.Compact(&line, b) != nil {
		line.Reset()
		line.Write(b)
	}
	if line.Len() > maxShown {
		return strings.ToValidUTF8(line.String()[:maxShown], "") + "…"
	}
	return line.String()
}

func (c *comparison) outcome() {
	e, o := c.e, readOutcome(c.h.answer.outcome())
	c.word("outcome", e.Outcome, o.kind)
	c.word("base", e.Base, o.param("base"))
	c.word("reason", e.Reason, o.param("reason"))
	if e.Attempts != nil {
		c.word("attempts", strconv.Itoa(*e.Attempts), o.param("attempts"))
	}
	if e.Ambiguous != nil {
		_, is := o.params["ambiguous"]
		c.word("ambiguous", strconv.FormatBool(*e.Ambiguous), strconv.FormatBool(is))
	}
	if e.Overwrote != nil {
		want, got := slices.Sorted(slices.Values(e.Overwrote)), overwrote(o.param("overwrote"))
		if !slices.Equal(want, got) {
			c.fail("overwrote: expected %s, got %s", list(want), list(got))
		}
	}
	if e.Rule.IsSet && c.h.account != nil {
		got := "none"
		if c.h.account.Rule != nil {
			got = c.h.account.Rule.Name
		}
		want := gjson.ParseBytes(e.Rule.Text).String()
		if e.Rule.Null() {
			want = "none"
		}
		c.word("rule", want, got)
	}
}

func list(paths []string) string {
	if len(paths) == 0 {
		return "nothing"
	}
	return strings.Join(paths, ", ")
}

func (c *comparison) answer() {
	e, a := c.e, c.h.answer
	if e.Status != 0 && e.Status != a.Status {
		c.fail("status: expected %d, got %d%s", e.Status, a.Status, because(a))
	}
	c.word("result", e.Result, gjson.GetBytes(a.Body, "result").String())
	if e.Error != "" {
		kind, reason := gjson.GetBytes(a.Body, "error.type").String(), gjson.GetBytes(a.Body, "error.reason").String()
		switch {
		case kind == "":
			c.fail("error: expected %s, got the status %d", e.Error, a.Status)
		case kind != e.Error && !strings.Contains(reason, e.Error):
			c.fail("error: expected %s, got %s: %s", e.Error, kind, reason)
		}
	}
	if e.Answer.IsSet {
		gjson.ParseBytes(e.Answer.Text).ForEach(func(k, v gjson.Result) bool {
			got := member(a.Body, k.String()).Raw
			if got == "" {
				c.fail("answer /%s: expected %s, got nothing", k.String(), short([]byte(v.Raw)))
				return true
			}
			for _, d := range differences([]byte(v.Raw), []byte(got), true) {
				c.fail("answer /%s%s", k.String(), strings.TrimPrefix(d, "as a whole"))
			}
			return true
		})
	}
}

// because is the reason of a refusal.
func because(a *answer) string {
	reason := gjson.GetBytes(a.Body, "error.reason").String()
	if reason == "" {
		return ""
	}
	return ": " + short([]byte(reason))
}

// changes compares what was written with what was to be.
func (c *comparison) changes() {
	e, a := c.e, c.h.answer
	wrote := c.h.before.numbers != c.h.after.numbers
	noop := !wrote && a.Status == 200
	refused := !wrote && a.Status >= 400
	is := "wasn't"
	if wrote {
		is = "was"
	}
	for _, b := range []struct {
		what string
		want *bool
		got  bool
	}{{"unchanged", e.Unchanged, !wrote}, {"noop", e.Noop, noop}, {"refused", e.Refused, refused}} {
		if b.want != nil && *b.want != b.got {
			c.fail("%s: expected %t; the answer was %d%s, and the document %s written", b.what, *b.want, a.Status, because(a), is)
		}
	}
}
