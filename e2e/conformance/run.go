package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// run carries out the steps of one case against one address.
type run struct {
	c     *Case
	at    client
	names map[string]string // what stands in braces
	saved map[string]string
}

// newRun makes names of the same length in every run, so that lengths can be compared.
func newRun(c *Case, address string) *run {
	unique := make([]byte, 5)
	_, _ = rand.Read(unique) // never fails, says its documentation
	return &run{c: c, at: client{address: address}, saved: make(map[string]string), names: map[string]string{
		"index": "c-" + hex.EncodeToString(unique),
		"id512": strings.Repeat("0123456789abcdef", 32),
		"today": time.Now().UTC().Format("2006.01.02"),
	}}
}

func (r *run) expand(s string) string {
	if !strings.Contains(s, "{") {
		return s
	}
	for name, v := range r.names {
		s = strings.ReplaceAll(s, "{"+name+"}", v)
	}
	for name, v := range r.saved {
		s = strings.ReplaceAll(s, "{"+name+"}", v)
	}
	return s
}

// step sends one request and keeps what the step saves.
func (r *run) step(s *Step) (*answer, error) {
	if s.Reconnect {
		r.at.close()
	}
	method, head, body, err := s.encode(r.at.address, r.expand)
	if err != nil {
		return nil, err
	}
	a, err := r.at.do(outgoing{method, head, body, slices.Contains(s.Send, "expect"), s.Expect.Closed})
	if err != nil {
		return nil, err
	}
	for name, from := range s.Save {
		v, err := pick(a, from)
		if err != nil {
			return a, fmt.Errorf("save %s: %w", name, err)
		}
		r.saved[name] = v
	}
	return a, nil
}

// pick takes a header or a member of the body, by a path with dots.
func pick(a *answer, from string) (string, error) {
	if name, ok := strings.CutPrefix(from, "header:"); ok {
		return a.first(name), nil
	}
	v, err := decode(a.text)
	if err != nil {
		return "", err
	}
	for _, part := range strings.Split(from, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(x) {
				return "", fmt.Errorf("no element %s in %s", part, from)
			}
			v = x[i]
		default:
			return "", fmt.Errorf("nothing at %s", from)
		}
	}
	if v == nil {
		return "", fmt.Errorf("nothing at %s", from)
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// clean deletes what the case made, on a connection of its own.
func (r *run) clean(address string) {
	r.at.close()
	c := client{address: address}
	defer c.close()
	for _, name := range []string{r.names["index"], r.names["index"] + "x", r.names["index"] + "-" + r.names["today"]} {
		head := fmt.Appendf(nil, "DELETE /%s?ignore_unavailable=true HTTP/1.1\r\nHost: %s\r\n\r\n", name, address)
		if _, err := c.do(outgoing{method: "DELETE", head: head}); err != nil {
			return // the engine went away: its test says so
		}
	}
}

// Check runs a case against an engine and returns what isn't as the case says.
func Check(c *Case, engine, address string) []string {
	r := newRun(c, address)
	defer r.clean(address)
	var bad []string
	for i := range c.Steps {
		s := &c.Steps[i]
		what := fmt.Sprintf("step %d (%s%.60s): ", i+1, s.Request, s.Raw)
		a, err := r.step(s)
		if a == nil {
			return append(bad, what+err.Error())
		}
		if err != nil {
			bad = append(bad, what+err.Error())
		}
		e := s.expect(engine)
		for _, m := range e.unmet(a, r.expand) {
			bad = append(bad, what+m)
		}
	}
	return bad
}
