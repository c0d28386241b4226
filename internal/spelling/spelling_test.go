package spelling

import "testing"

func TestNearestIsWhatWasProbablyMeant(t *testing.T) {
	words := []string{"guard", "observe", "off"}
	for word, want := range map[string]string{"gaurd": "guard", "Guard": "guard", "obsreve": "observe", "of": "off", "on": "", "disabled": ""} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}
