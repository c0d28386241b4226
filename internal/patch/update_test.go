package patch

import "testing"

func TestAScriptIsFoundHoweverItsNameIsWritten(t *testing.T) {
	for body, want := range map[string]bool{
		`{"doc":{"script":1}}`:               false,
		`{"doc":{"a":1},"upsert":{"a":1}}`:   false,
		`{"script":"ctx._source.n++"}`:       true,
		`{"doc":{}, "scr\u0069pt":{}}`:       true,
		`{"doc":{"a":1}`:                     true, // nobody knows
		`---`:                                true,
		`{"doc":{"a":1}} {"script":"again"}`: true,
		``:                                   true,
	} {
		if got := RunsScript([]byte(body)); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
}
