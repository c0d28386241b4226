package spelling

import (
	"strings"
	"testing"
)

func TestNearestIsWhatWasProbablyMeant(t *testing.T) {
	words := []string{"guard", "observe", "off"}
	for word, want := range map[string]string{"gaurd": "guard", "Guard": "guard", "obsreve": "observe", "of": "off", "on": "", "disabled": ""} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestAnAbbreviationIsTheOneWordThatItBegins(t *testing.T) {
	words := []string{"increment", "append", "remove", "remove_empty", "incoming"}
	for word, want := range map[string]string{"incr": "increment", "Appe": "append", "in": "", "inc": "", "rem": "", "x": ""} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

// TestALongWordCostsLittle: anybody may send one of megabytes. Comparing it with each candidate takes memory, and a second.
func TestALongWordCostsLittle(t *testing.T) {
	words, long := []string{"guard", "observe", "off"}, strings.Repeat("guard", 1<<10)
	if n := testing.AllocsPerRun(10, func() { Nearest(long, words) }); n > 0 {
		t.Errorf("it was compared: %v allocations", n)
	}
}

func TestOnlyWordsThatMayBeNearAreCompared(t *testing.T) {
	long := strings.Repeat("if_seq_no", 1<<17)
	if n := testing.AllocsPerRun(3, func() {
		if _, near := Within(long, "if_seq_no", 10); near {
			t.Error("near")
		}
	}); n > 0 {
		t.Errorf("they were compared: %v allocations", n)
	}
	if edits, near := Within("if_sqe_no", "if_seq_no", 2); edits != 1 || !near {
		t.Errorf("%d edits, near %v", edits, near)
	}
}
