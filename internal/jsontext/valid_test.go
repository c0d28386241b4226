package jsontext

import (
	"bytes"
	"strings"
	"testing"
)

func TestWhatIsNestedWithoutEndOverflowsNoStack(t *testing.T) {
	const size = 16 << 20 // what a guarded body may have
	for _, piece := range []string{"[", `{"":`, `["]",`, `["\"]",`} {
		if Valid(bytes.Repeat([]byte(piece), size/len(piece))) {
			t.Errorf("%s and so on is JSON", piece)
		}
	}
	if Valid([]byte(strings.Repeat("[", size/2) + strings.Repeat("]", size/2))) {
		t.Error("no engine takes it")
	}
}

func TestWhatIsWideIsNotDeep(t *testing.T) {
	wide := "[" + strings.Repeat(`{"a":["[[{"]},`, 2000) + "0]"
	if !Valid([]byte(wide)) {
		t.Error("many objects are no deep ones")
	}
	for depth, want := range map[int]bool{MaxNesting: true, MaxNesting + 1: false} {
		if got := Valid([]byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))); got != want {
			t.Errorf("depth %d: %v", depth, got)
		}
	}
	if Valid([]byte(`{"a":1}]`)) || Valid(nil) || !Valid([]byte(" {} ")) {
		t.Error("what is JSON is no longer")
	}
}

// The text of a value is that which its escapes stand for, not the letters between its quotes.
func TestAValueReadsAsAText(t *testing.T) {
	for value, text := range map[string]string{`"a"`: "a", `"\u0061"`: "a", `"a\\b"`: `a\b`, `""`: "", `5`: "5", "": "", `null`: ""} {
		if !IsText([]byte(value), text) {
			t.Errorf("%s isn't %q", value, text)
		}
	}
	for value, text := range map[string]string{`"a"`: "b", `"a\\b"`: `a\\b`, "": "a", `null`: "a"} {
		if IsText([]byte(value), text) {
			t.Errorf("%s is %q", value, text)
		}
	}
}
