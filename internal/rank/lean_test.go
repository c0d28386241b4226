package rank

import "testing"

func TestContentTellsOneClientFromSeveral(t *testing.T) {
	text := []string{`"what one client has written"`, `"what the other one has made of that later"`}
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       int // its sign
	}{
		"one in hand shows nothing":                 {[]Candidate{spentAt(1, `{"a":1}`), heldAt(2, `{"a":2}`)}, `{"a":3}`, 0},
		"the newest is changed":                     {[]Candidate{heldAt(1, `{"t":`+text[0]+`,"a":1}`), heldAt(2, `{"t":`+text[1]+`,"a":1}`)}, `{"t":` + text[1] + `,"a":2}`, -1},
		"an older one is changed":                   {[]Candidate{heldAt(1, `{"t":`+text[0]+`,"a":1}`), heldAt(2, `{"t":`+text[1]+`,"a":1}`)}, `{"t":` + text[0] + `,"a":2}`, 1},
		"both differ from it alike":                 {[]Candidate{heldAt(1, `{"a":1,"b":1}`), heldAt(2, `{"a":1,"b":1}`)}, `{"a":1,"b":2}`, 0},
		"a value is set back":                       {[]Candidate{heldAt(1, `{"state":"open"}`), heldAt(2, `{"state":"closed"}`)}, `{"state":"open"}`, -1},
		"the newest is saved":                       {[]Candidate{heldAt(1, `{"a":1}`), heldAt(2, `{"a":2}`)}, `{"a":2}`, 0},
		"a switch says little, and not for nothing": {[]Candidate{heldAt(1, `{"a":false,"b":false}`), heldAt(2, `{"a":true,"b":false}`)}, `{"a":false,"b":true}`, 1},
	} {
		if got := Likeliest(c.candidates, Sent{Body: []byte(c.sent)}).Lean; got*c.want < 0 || (got == 0) != (c.want == 0) {
			t.Errorf("%s: %d", name, got)
		}
	}
}
