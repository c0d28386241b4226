package rank

import (
	"fmt"
	"strings"
	"testing"
)

// Clients append an entry each. What was read in the write's trace is the newest revision, and what the client has changed is the oldest.
func formOf(entries int, inTrace bool) ([]Candidate, Sent) {
	list := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"entry of client %d"`, i))
		}
		return strings.Join(all, ",")
	}
	cs := []Candidate{heldAt(1, `{"l":[`+list(entries)+`]}`), heldAt(2, `{"l":[`+list(entries+1)+`]}`), heldAt(3, `{"l":[`+list(entries+2)+`]}`)}
	cs[0].Elsewhere, cs[1].Elsewhere, cs[2].Elsewhere = !inTrace, true, inTrace
	return cs, Sent{Body: []byte(`{"l":[` + strings.TrimPrefix(list(entries)+`,"something else"]}`, ","))}
}

// Reads of the write's trace come first, until the content of several writes says that they were made from others.
func TestTracesTellUntilTheContentSaysOtherwise(t *testing.T) {
	var p Patterns
	for n := range 12 {
		cs, sent := formOf(n, false)
		sent.Patterns = &p
		got := Likeliest(cs, sent)
		p.Learn(&got)
		if n > fewTales && (got.Best != 0 || p.TracesTell()) {
			t.Errorf("%d writes were made from a read elsewhere: %+v", n, got)
		}
	}
	for n := range 2 * enoughTales {
		cs, sent := formOf(n%9, true)
		sent.Patterns = &p
		got := Likeliest(cs, sent)
		if p.Learn(&got); got.Best != 0 {
			t.Fatalf("%+v", got)
		}
	}
	if !p.TracesTell() || p.elsewhere() != surelyElsewhere {
		t.Errorf("all writes were made from a read of their trace: %d", p.elsewhere())
	}
}

// Whoever makes a document writes all of it. That must not hide that it may have found none.
func TestNoDocumentIsNeverTooFar(t *testing.T) {
	var made, sent strings.Builder
	for i := range 200 {
		fmt.Fprintf(&made, `"field %d":"the default of %d",`, i, i)
	}
	sent.WriteString(made.String())
	cs := []Candidate{{}, heldAt(1, `{`+made.String()+`"name":"anchor"}`)}
	got := Likeliest(cs, Sent{Body: []byte(`{` + sent.String() + `"name":"bridge"}`)})
	if got.Best == 1 && !got.Ambiguous {
		t.Errorf("%+v: nothing says that the client may have made the document", got)
	}
}

// A write from memory may be made from what nobody looks at any more, for want of room. The nearest that is looked at is no sure base.
func TestAnUnlikelyBaseIsAmbiguous(t *testing.T) {
	cs := []Candidate{heldAt(1, `{"text":"the first of all"}`), heldAt(2, `{"text":"something else","by":"somebody else"}`)}
	cs[0].Spent, cs[1].Spent = true, true
	many := strings.Repeat(`"another entry",`, 200)
	got := Likeliest(cs, Sent{Body: []byte(`{"text":"something else","by":"somebody else","more":[` + many + `1]}`)})
	if !got.Ambiguous {
		t.Errorf("%+v: both are spent", got)
	}
}
