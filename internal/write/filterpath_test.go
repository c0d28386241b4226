package write

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Each star doubled what is looked for, at each level: 30 of them, and a document of 30 levels, took all memory there is.
func TestManyStarsInAFilterPathCostNoMoreThanOne(t *testing.T) {
	const levels = 90
	body := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
	for _, value := range []string{
		strings.Repeat("**.", levels) + "a", strings.Repeat("**.a.", levels) + "none", "-" + strings.Repeat("**.", levels) + "none",
		strings.Repeat("**.*.", levels) + "none",
	} {
		f := newFilterPath(value)
		patterns := append(f.in, f.out...)
		for range levels {
			if patterns, _ = below(patterns, "a"); len(patterns) > 2*levels {
				t.Fatalf("%.20s: %d patterns", value, len(patterns))
			}
		}
		if got := string(f.of([]byte(body))); value[0] == '-' && got != body || value[0] != '-' && !gjson.Valid(got) {
			t.Errorf("%.20s: %s", value, got)
		}
	}
}
