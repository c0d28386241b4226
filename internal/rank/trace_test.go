package rank

import (
	"fmt"
	"strings"
	"testing"
)

func TestContentShowsWhatATraceSays(t *testing.T) {
	const first, second = `{"a":"violet dragon","b":"candle harbor","c":"zephyr"}`, `{"a":"quartz tulip","b":"river fjord","c":"zephyr"}`
	const fromFirst = `{"a":"violet dragon","b":"candle harbor","c":"lemon hazel"}`
	for name, c := range map[string]struct {
		sent      string
		elsewhere [2]bool // of first, and of second
		want      Trace
	}{
		"the trace's own":                {fromFirst, [2]bool{false, true}, TraceTells},
		"another's":                      {fromFirst, [2]bool{true, false}, TraceMisleads},
		"of no trace":                    {fromFirst, [2]bool{false, false}, TraceUnknown},
		"of a trace without reads":       {fromFirst, [2]bool{true, true}, TraceUnknown},
		"saved unchanged":                {first, [2]bool{true, false}, TraceUnknown},
		"all is the client's own change": {`{"a":"tulip maple","b":"sable hazel","c":"bridge"}`, [2]bool{true, false}, TraceUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			cs := []Candidate{heldAt(1, first), heldAt(2, second)}
			for i := range cs {
				cs[i].Elsewhere = c.elsewhere[i]
			}
			if got := Likeliest(cs, Sent{Body: []byte(c.sent)}); got.Traces != c.want {
				t.Errorf("%+v, want %d", got, c.want)
			}
		})
	}
}

func TestAMisleadingTraceCostsNothing(t *testing.T) {
	cs := []Candidate{heldAt(1, `{"a":"violet","b":"x"}`), heldAt(2, `{"a":"candle","b":"x"}`)}
	cs[0].Elsewhere = true
	for misled, want := range map[bool]int{false: 1, true: 0} {
		if got := Likeliest(cs, Sent{Body: []byte(`{"a":"violet","b":"y"}`), Misled: misled}); got.Best != want {
			t.Errorf("misled %v: %+v", misled, got)
		}
	}
}

// However far what the client sends is from what its trace has read: it may have put back what another has.
func TestAReadOfTheTraceIsTheBaseOfAWholeNewDocument(t *testing.T) {
	document := func(word string) string {
		fields := make([]string, 600)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"k%d":"%s dragon %d"`, i, word, i)
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	cs := []Candidate{heldAt(1, document("violet")), heldAt(2, document("candle"))}
	cs[1].Elsewhere = true
	if got := Likeliest(cs, Sent{Body: []byte(document("candle"))}); got.Best != 0 || !got.Ambiguous {
		t.Errorf("%+v, want that of the trace, and that it is ambiguous", got)
	}
}
