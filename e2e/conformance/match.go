package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// matchJSON compares a body with what a case wants, and returns what doesn't fit, or "". Every member that is wanted must be
// there; others may be. Arrays have exactly the wanted elements. Numbers are compared as they are written. A wanted string
// "*" fits everything, "!" nothing but absence, and one between slashes is a regular expression for the value's text.
func matchJSON(want string, got []byte) string {
	w, err := decode([]byte(want))
	if err != nil {
		return "the case's json is broken: " + err.Error()
	}
	g, err := decode(got)
	if err != nil {
		return fmt.Sprintf("the body is not JSON (%v): %.500s", err, got)
	}
	return match("", w, g)
}

func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

func match(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return matchMembers(at, w, g)
		}
	case []any:
		if g, ok := got.([]any); ok && len(g) == len(w) {
			return matchElements(at, w, g)
		}
	case string:
		if matchText(w, fmt.Sprint(got)) {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return differ(at, want, got)
}

func matchMembers(at string, want, got map[string]any) string {
	for name, v := range want {
		have, ok := got[name]
		switch {
		case v == "!" && ok:
			return at + "/" + name + " should not be there"
		case v == "!":
		case !ok:
			return at + "/" + name + " is missing"
		default:
			if bad := match(at+"/"+name, v, have); bad != "" {
				return bad
			}
		}
	}
	return ""
}

func matchElements(at string, want, got []any) string {
	for i := range want {
		if bad := match(fmt.Sprintf("%s/%d", at, i), want[i], got[i]); bad != "" {
			return bad
		}
	}
	return ""
}

func matchText(want, got string) bool {
	if want == "*" {
		return true
	}
	if len(want) > 2 && strings.HasPrefix(want, "/") && strings.HasSuffix(want, "/") {
		re, err := regexp.Compile(want[1 : len(want)-1])
		return err == nil && re.MatchString(got)
	}
	return want == got
}

func differ(at string, want, got any) string {
	w, _ := json.Marshal(want)
	g, _ := json.Marshal(got)
	if at == "" {
		at = "/"
	}
	return fmt.Sprintf("%s: want %s, got %.500s", at, w, g)
}

// unmet says what of an expectation an answer doesn't meet; empty if all is met.
func (e *Expect) unmet(a *answer, expand func(string) string) []string {
	var bad []string
	if e.Status != 0 && a.status != e.Status {
		bad = append(bad, fmt.Sprintf("status %d, want %d: %.600s", a.status, e.Status, a.text))
	}
	for name, want := range e.Headers {
		values := a.all(name)
		switch {
		case want == "!":
			if len(values) > 0 {
				bad = append(bad, fmt.Sprintf("header %s: %q should not be there", name, values))
			}
		case len(values) == 0:
			bad = append(bad, "header "+name+" is missing")
		case !matchText(expand(want), values[0]):
			bad = append(bad, fmt.Sprintf("header %s: %q, want %q", name, values[0], want))
		}
	}
	if e.JSON != "" {
		if m := matchJSON(expand(e.JSON), a.text); m != "" {
			bad = append(bad, m)
		}
	}
	if e.Body != nil && string(a.text) != expand(*e.Body) {
		bad = append(bad, fmt.Sprintf("body %q, want %q", a.text, expand(*e.Body)))
	}
	for _, part := range e.Contains {
		if !strings.Contains(string(a.text), expand(part)) {
			bad = append(bad, fmt.Sprintf("body without %q: %.600s", part, a.text))
		}
	}
	if e.Empty && len(a.body) > 0 {
		bad = append(bad, fmt.Sprintf("a body of %d bytes where none should be", len(a.body)))
	}
	if e.Closed && !a.closed {
		bad = append(bad, "the connection stays open")
	}
	return bad
}
