package embedded

import (
	"strings"
	"testing"
)

// TestALongParameterCostsLittle: comparing a name of a megabyte with each parameter takes seconds.
func TestALongParameterCostsLittle(t *testing.T) {
	long, known := strings.Repeat("refresh", 1<<17), []string{"if_seq_no", "refresh"}
	if n := testing.AllocsPerRun(3, func() {
		if got := suggest(long, known) + suggestField(long, known...); got != "" {
			t.Errorf("proposed: %s", got)
		}
	}); n > 5 {
		t.Errorf("it was compared: %v allocations", n)
	}
	if got := suggest("refres", known); got != " -> did you mean [refresh]?" {
		t.Errorf("got %q", got)
	}
}
