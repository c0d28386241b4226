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
	// Plain allows an answer without the content coding that the engine would have used: what reads an answer asks for it plain.
	Plain bool
}

func (p Policy) owns(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(p.Own, func(own string) bool {
		return name == own || strings.HasSuffix(own, "-") && strings.HasPrefix(name, own)
	})
}

// compare returns where the answers to the same requests differ, the engine's own first.
func compare(direct, proxied *told, policy Policy) (bad []string) {
	c := direct.run.c
	for i, want := range direct.answers {
		if i >= len(proxied.answers) {
			break // said at the step that had no answer
		}
		got := proxied.answers[i]
		if want == nil || got == nil {
			if direct.errs[i] == nil || proxied.errs[i] == nil {
				bad = append(bad, fmt.Sprintf("%sdirect: %v; proxied: %v", c.at(i), direct.errs[i], proxied.errs[i]))
			}
			break
		}
		for _, d := range policy.differences(&c.Steps[i], side{direct.run, want}, side{proxied.run, got}) {
			bad = append(bad, c.at(i)+d)
		}
	}
	return bad
}

// side is the answer to a step in one of two runs.
type side struct {
	*run
	*answer
}

// differences compares the answers to one step.
func (p Policy) differences(s *Step, want, got side) []string {
	var bad []string
	if version := len("HTTP/1.1"); want.line[version:] != got.line[version:] { // each hop has its own version
		bad = append(bad, fmt.Sprintf("%q became %q: %.600s", want.line, got.line, got.text))
	}
	normalWant, normalGot := want.normal(s), got.normal(s)
	wantBody, gotBody := normalWant(string(want.text)), normalGot(string(got.text))
	if wantBody != gotBody {
		bad = append(bad, fmt.Sprintf("body\n  %.900q\nbecame\n  %.900q", wantBody, gotBody))
	}
	if method, _, _ := strings.Cut(s.Request, " "); method == "HEAD" && want.first("Content-Length") != got.first("Content-Length") {
		bad = append(bad, fmt.Sprintf("the length of %q became %q", want.first("Content-Length"), got.first("Content-Length")))
	}
	wantFields, gotFields := p.fields(want.answer, normalWant, nil), p.fields(got.answer, normalGot, want.answer)
	if !slices.Equal(wantFields, gotFields) {
		bad = append(bad, fmt.Sprintf("header\n  %q\nbecame\n  %q", wantFields, gotFields))
	}
	return bad
}

// fields are the header fields in their order. What belongs to the connection is left out: framing, and hop-by-hop fields; and
// what optimist adds to the engine's answer, without is that one.
func (p Policy) fields(a *answer, normal func(string) string, without *answer) []string {
	var out []string
	for _, f := range a.fields {
		switch strings.ToLower(f[0]) {
		case "connection", "keep-alive", "content-length", "transfer-encoding", "trailer":
			continue
		case "content-encoding":
			if p.Plain {
				continue
			}
		case "date", "task_resource_usage": // times and identifiers of the request
			out = append(out, f[0])
			continue
		}
		if without != nil && p.owns(f[0]) && len(without.all(f[0])) == 0 {
			continue
		}
		out = append(out, f[0]+": "+normal(f[1]))
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
	{regexp.MustCompile(`("(?:index\.)?uuid"\s*:\s*")[A-Za-z0-9_-]{22}"`), `${1}UUID"`},
	{regexp.MustCompile(`(INDEX[a-z]?/)[A-Za-z0-9_-]{22}`), "${1}UUID"},
	{regexp.MustCompile(`("(?:index\.)?creation_date"\s*:\s*")\d+"`), `${1}0"`},
	{regexp.MustCompile(`("_id"\s*:\s*")[A-Za-z0-9_-]{20}"`), `${1}AUTO"`},
	{regexp.MustCompile(`(/_doc/|/item/)[A-Za-z0-9_-]{20}$`), "${1}AUTO"},
	{regexp.MustCompile(`("(?:number_of_pending_tasks|task_max_waiting_in_queue_millis)"\s*:\s*)\d+`), "${1}0"},
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
