package write

import (
	"fmt"
	"slices"
	"strings"

	"optimist/internal/outcome"
)

// begin notes that a write is on its way.
func (s *stage) begin(name string, effects func(doc any) []effect) *event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &event{name: name, effect: effects, start: len(s.history)}
}

// end notes the answer, and reports whether it is an acknowledgement.
func (s *stage) end(e *event, r result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.end, e.told = len(s.history), r.String()
	switch {
	case r.err == nil && r.status < 300:
	case r.err == nil && (r.status == 400 || r.status == 404 || r.status == 409):
		e.status = r.status
	default:
		s.wrong = append(s.wrong, fmt.Sprintf("%s: %v", e.name, r))
	}
	s.done = append(s.done, e)
	return e.status == 0 && r.err == nil
}

// judge compares what happened with the model.
func (s *stage) judge(seen *tally) {
	var written []*event
	for _, e := range s.done {
		if e.status != 0 {
			seen.refused++
			if !s.mayRefuse(e) {
				s.wrong = append(s.wrong, e.name+": was refused, and there is no revision of its time for which it should be")
			}
			continue
		}
		written = append(written, e)
		seen.acknowledged++
		seen.merged += strings.Count(e.told, "["+outcome.Merged.String()+";")
		seen.combined += strings.Count(e.told, "["+outcome.Combined.String()+";")
	}
	if !s.explains(s.first, 0, false, written) {
		s.wrong = append(s.wrong, "the acknowledged changes, in whatever order, don't make the stored revisions")
	}
	if len(s.wrong) > 0 {
		s.rt.Fatalf("%s\n%s", strings.Join(s.wrong, "\n"), s.story())
	}
}

// mayRefuse reports whether the model refuses a change, with the status of its answer, for a revision that was there at its time.
func (s *stage) mayRefuse(e *event) bool {
	for at := e.start; at <= e.end; at++ {
		for _, x := range e.effect(s.revision(at)) {
			if int(x.status) == e.status {
				return true
			}
		}
	}
	return false
}

// revision is the document after so many writes.
func (s *stage) revision(n int) any {
	if n == 0 {
		return s.first
	}
	return s.history[n-1]
}

// explains reports whether changes, in some order, make the rest of the revisions of doc, which is what revision number at and,
// if open, some changes that share the next one have made.
func (s *stage) explains(doc any, at int, open bool, left []*event) bool {
	if len(left) == 0 {
		return at == len(s.history) && !open
	}
	for i, e := range left {
		writes := at < len(s.history) && e.start <= at && at < e.end
		for _, x := range e.effect(doc) {
			if x.status != 0 {
				continue
			}
			rest := slices.Delete(slices.Clone(left), i, i+1)
			switch {
			case writes && alike(x.doc, s.history[at]) && s.explains(x.doc, at+1, false, rest): // the last one of its write
				return true
			case writes && s.explains(x.doc, at, true, rest): // it shares its write with others
				return true
			case !open && alike(x.doc, doc) && e.start <= at && at <= e.end && s.explains(doc, at, false, rest): // a noop
				return true
			}
		}
	}
	return false
}

// story tells what happened, for whoever has to find out why.
func (s *stage) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sat first %s\n", s.rule.yaml(), encodeModel(s.first))
	for i, doc := range s.history {
		fmt.Fprintf(&b, "revision %d: %s\n", i+1, encodeModel(doc))
	}
	for _, e := range s.done {
		fmt.Fprintf(&b, "from revision %d to %d: %s\n\t%s\n", e.start, e.end, e.name, e.told)
	}
	return b.String()
}
