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
		"host":  address,
		"64k":   strings.Repeat("0123456789abcdef", 4096),
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
		v, err := pick(a, r.expand(from))
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

// indices are the names of all indices that a run can have made.
func (r *run) indices() []string {
	name := r.names["index"]
	return []string{name, name + "x", name + "-" + r.names["today"]}
}

// drop deletes indices, in few requests: each is a change of the cluster's state.
func drop(address string, names []string) error {
	c := client{address: address}
	defer c.close()
	for len(names) > 0 {
		n := min(len(names), 60) // a request line has 4096 bytes
		head := fmt.Appendf(nil, "DELETE /%s?ignore_unavailable=true HTTP/1.1\r\nHost: %s\r\n\r\n", strings.Join(names[:n], ","), address)
		if _, err := c.do(outgoing{method: "DELETE", head: head}); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// told is what the steps of a case were answered, as far as they got.
type told struct {
	run     *run
	answers []*answer // nil where there was none
	errs    []error   // beside them
}

// tell carries out all steps of a case. It ends with the first step that gets no answer. stub is nil for real engines.
func tell(c *Case, address string, stub *stub) *told {
	t := &told{run: newRun(c, address)}
	if stub != nil {
		stub.expect(t.run)
	}
	for i := range c.Steps {
		a, err := t.run.step(&c.Steps[i])
		t.answers, t.errs = append(t.answers, a), append(t.errs, err)
		if a == nil {
			break
		}
	}
	t.run.at.close()
	return t
}

// at names a step in messages.
func (c *Case) at(i int) string {
	return fmt.Sprintf("step %d (%s%.60s): ", i+1, c.Steps[i].Request, c.Steps[i].Raw)
}

// unmet says what isn't as the case says for that engine.
func (t *told) unmet(engine string) (bad []string) {
	for i, a := range t.answers {
		if err := t.errs[i]; err != nil {
			bad = append(bad, t.run.c.at(i)+err.Error())
		}
		if a == nil {
			break
		}
		e := t.run.c.Steps[i].expect(engine)
		for _, m := range e.unmet(a, t.run.expand) {
			bad = append(bad, t.run.c.at(i)+m)
		}
	}
	return bad
}
