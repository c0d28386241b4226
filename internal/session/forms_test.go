package session

import "testing"

const (
	storedForm  = `{"n":1e3,"l":[1, 2],"x":0.50}`
	prettyForm  = "{\n  \"n\" : 1000.0,\n  \"l\" : [\n    1,\n    2\n  ],\n  \"x\" : 0.5\n}"
	exactForm   = `{"x":0.12345678901234567890}`
	roundedForm = `{"x":0.12345678901234568}`
)

// A client asks for a readable form (?pretty) of what another one of the session reads as it is stored. Both have the same document in hand, so
// its body stays known, whoever was first.
func TestAReadableFormIsTheSameDocument(t *testing.T) {
	for name, reads := range map[string][]string{
		"readable last":    {storedForm, prettyForm},
		"readable first":   {prettyForm, storedForm},
		"readable between": {storedForm, prettyForm, storedForm},
		"readable around":  {prettyForm, storedForm, prettyForm},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t)
			for _, body := range reads {
				ticket := s.Ticket()
				if body == prettyForm {
					ticket = 0
				}
				s.ReadWithTicket(pool, ref, rev(5, body), s.Epoch(), ticket)
			}
			for range reads {
				b := take(t, s, pool, `{"n":1e3,"l":[1, 2, 3],"x":0.50}`)
				if want(t, b, KindRead, 5); string(b.Stored) != storedForm {
					t.Fatalf("the base's body is %q", b.Stored)
				}
			}
		})
	}
}

// A named client gets as its base the form that it has seen: rounded digits that it sends back are no change of its own.
func TestANamedClientChangesTheFormThatItHasSeen(t *testing.T) {
	s, _ := newTest(t)
	s.ReadWithTicket(pool, ref, rev(5, exactForm), s.Epoch(), s.Ticket())
	s.ReadWithTicket(one, ref, rev(5, roundedForm), s.Epoch(), 0)
	if b := take(t, s, one, roundedForm); string(b.Stored) != roundedForm {
		t.Errorf("the base's body is %q", b.Stored)
	}
	s.ReadWithTicket(pool, ref, rev(5, exactForm), s.Epoch(), s.Ticket())
	if b := take(t, s, pool, `{"n":2}`); string(b.Stored) != exactForm {
		t.Errorf("the base's body is %q", b.Stored)
	}
}

// Two reads under the same numbers that show different documents, or other digits: nobody knows which of them a client has in hand. What
// it hasn't changed would look like a change of its own.
func TestDifferentDocumentsUnderTheSameNumbersAreNoBody(t *testing.T) {
	for _, bodies := range [][]string{{`{"a":1}`, `{"a":2}`}, {exactForm, roundedForm}, {roundedForm, exactForm}} {
		for i := range bodies { // one of them, or none, is read exactly
			s, _ := newTest(t)
			for k, body := range bodies {
				ticket := uint64(0)
				if k == i && body != `{"a":1}` {
					ticket = s.Ticket()
				}
				s.ReadWithTicket(pool, ref, rev(5, body), s.Epoch(), ticket)
			}
			if b := take(t, s, pool, `{"a":3}`); b.Kind != KindRead || b.Stored != nil {
				t.Errorf("%v: the base is %v of %q", bodies, b.Kind, b.Stored)
			}
		}
	}
}
