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

func TestAnAbbreviationIsTheOneWordThatItBegins(t *testing.T) {
	words := []string{"increment", "append", "remove", "remove_empty", "incoming"}
	for word, want := range map[string]string{"incr": "increment", "Appe": "append", "in": "", "inc": "", "rem": "", "x": ""} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}
