package jsontext

import "testing"

// A text that says more than the struct has is refused: the rest may have been meant to leave something out.
func TestStrictReadingLeavesNothingOut(t *testing.T) {
	for text, want := range map[string]bool{
		``: true, " \n": true, `{}`: true, `{"a":1} `: true,
		`{"b":1}`: false, `{"a":1}{"a":2}`: false, `{"a":1}x`: false, `{"a":`: false, `[]`: false, `{"a":"x"}`: false,
	} {
		into := struct{ A int }{A: 7}
		if err := Strict([]byte(text), &into); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
