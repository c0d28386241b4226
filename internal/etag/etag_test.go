package etag

import (
	"testing"

	"optimist/internal/doc"
	"optimist/internal/stamp"
)

func TestTagsAreReadAsTheyAreWritten(t *testing.T) {
	n := doc.Numbers{SeqNo: 12, PrimaryTerm: 3}
	for _, want := range []Tag{{Numbers: n}, {Numbers: n, Copy: stamp.IDOf(77)}} {
		text := string(want.Append(nil))
		for _, form := range []string{text, "W/" + text, " " + text + "\t"} {
			if got, ok := Parse([]byte(form)); !ok || got != want {
				t.Errorf("%s: %+v, not %+v", form, got, want)
			}
		}
	}
	for _, bad := range []string{``, `"`, `""`, `"1-0"`, `1-1`, `"1"`, `"-1-1"`, `"a-b"`, `*`, `"1-1-"`, `"1-1-x"`, `"1-1-0000000000"`, `"1-1-0123456789-0"`, `w/"1-1"`, `W/`, `"1-1`} {
		if got, ok := Parse([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
