package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Policy says in what the answers through optimist may differ from the engine's own.
type Policy struct {
	// Own are names of fields that optimist adds, in lower case; one that ends with a dash stands for all that begin so.
	Own []string
}

func (p Policy) owns(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(p.Own, func(own string) bool {
		return name == own || strings.HasSuffix(own, "-") && strings.HasPrefix(name, own)
	})
}

// Compare sends a case's requests to the engine and, with fresh names, through the proxy, and returns where the answers
// differ. Steps of cases that no engine is to see go through the proxy only, and are checked.
func Compare(c *Case, engine, direct, proxied string, policy Policy) []string {
	if c.Via == "proxy" {
		return checkProxied(c, engine, direct, proxied)
	}
	a, b := newRun(c, direct), newRun(c, proxied)
	defer a.clean(direct)
	defer b.clean(direct)
	var bad []string
	for i := range c.Steps {
		s := &c.Steps[i]
		what := fmt.Sprintf("step %d (%s%.60s): ", i+1, s.Request, s.Raw)
		want, err := a.step(s)
		if want == nil {
			return append(bad, what+"direct: "+err.Error())
		}
		got, err := b.step(s)
		if got == nil {
			return append(bad, what+"proxied: "+err.Error())
		}
		for _, d := range differences(s, a, b, want, got, policy) {
			bad = append(bad, what+d)
		}
	}
	return bad
}

func checkProxied(c *Case, engine, direct, proxied string) []string {
	r := newRun(c, proxied)
	defer r.clean(direct)
	var bad []string
	for i := range c.Steps {
		s := &c.Steps[i]
		a, err := r.step(s)
		if a == nil {
			return append(bad, fmt.Sprintf("step %d: %v", i+1, err))
		}
		e := s.expect(engine)
		for _, m := range e.unmet(a, r.expand) {
			bad = append(bad, fmt.Sprintf("step %d (%s%.60s): %s", i+1, s.Request, s.Raw, m))
		}
	}
	return bad
}

// differences compares two answers.
func differences(s *Step, a, b *run, want, got *answer, policy Policy) []string {
	var bad []string
	if want.line != got.line {
		bad = append(bad, fmt.Sprintf("%q became %q: %.600s", want.line, got.line, got.text))
	}
	if fmt.Sprint(want.interim) != fmt.Sprint(got.interim) {
		bad = append(bad, fmt.Sprintf("interim answers %v became %v", want.interim, got.interim))
	}
	na, nb := a.normal(s), b.normal(s)
	wantBody, gotBody := na(string(want.text)), nb(string(got.text))
	if wantBody != gotBody {
		bad = append(bad, fmt.Sprintf("body\n  %.900q\nbecame\n  %.900q", wantBody, gotBody))
	}
	wantFields, gotFields := fields(want, na, Policy{}), fields(got, nb, policy)
	if !slices.Equal(wantFields, gotFields) {
		bad = append(bad, fmt.Sprintf("header\n  %q\nbecame\n  %q", wantFields, gotFields))
	}
	if want.closed && !got.closed && !strings.EqualFold(want.first("Connection"), "close") {
		return bad // the engine hung up; the proxy needn't
	}
	return bad
}

// fields are the header fields in their order, hop-by-hop ones and optimist's own left out. Lengths that may differ with the
// time in the body are compared by being there.
func fields(a *answer, normal func(string) string, policy Policy) []string {
	var out []string
	for _, f := range a.fields {
		switch strings.ToLower(f[0]) {
		case "connection", "keep-alive", "date":
			continue
		case "content-length":
			out = append(out, strings.ToLower(f[0]))
			continue
		}
		if !policy.owns(f[0]) {
			out = append(out, f[0]+": "+normal(f[1]))
		}
	}
	return out
}

// vary is what differs between two runs of the same request on the same engine.
var vary = []struct {
	re *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`("?took"?\s*:\s*)\d+`), "${1}0"},
	{regexp.MustCompile(`("index_uuid"\s*:\s*")[A-Za-z0-9_-]{22}"`), `${1}UUID"`},
	{regexp.MustCompile(`(index_uuid: ")[A-Za-z0-9_-]{22}"`), `${1}UUID"`},
	{regexp.MustCompile(`("uuid"\s*:\s*")[A-Za-z0-9_-]{22}"`), `${1}UUID"`},
	{regexp.MustCompile(`(INDEX[a-z]?/)[A-Za-z0-9_-]{22}`), "${1}UUID"},
	{regexp.MustCompile(`("creation_date"\s*:\s*")\d+"`), `${1}0"`},
	{regexp.MustCompile(`("_id"\s*:\s*"|/_doc/)[A-Za-z0-9_-]{20}\b`), "${1}AUTO"},
	{regexp.MustCompile(`("_scroll_id"\s*:\s*")[^"]*"`), `${1}SCROLL"`},
}

// normal returns the function that takes out of a text what may differ.
func (r *run) normal(s *Step) func(string) string {
	return func(text string) string {
		text = strings.ReplaceAll(text, r.names["index"], "INDEX")
		for name, v := range r.saved {
			if len(v) > 8 {
				text = strings.ReplaceAll(text, v, "SAVED-"+name)
			}
		}
		for _, v := range vary {
			text = v.re.ReplaceAllString(text, v.as)
		}
		for _, p := range s.Vary {
			if re, err := regexp.Compile(p); err == nil {
				text = re.ReplaceAllString(text, "VARIES")
			}
		}
		return text
	}
}
