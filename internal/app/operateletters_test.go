package app

import (
	"testing"

	"optimist/internal/admin"
)

// The second object may have been meant to leave letters out: nothing may be replayed or deleted by the first alone.
func TestWhatIsAskedOfLettersIsReadToItsEnd(t *testing.T) {
	for body, want := range map[string]bool{
		``: true, `{"rule":"a"}`: true, `{"rul":"a"}`: false, `{"rule":"a"}{"index":"b"}`: false, `{"rule":"a"} x`: false,
	} {
		r := &admin.LettersRequest{Body: []byte(body), Query: func(string) string { return "" }}
		if _, err := readLettersQuery(r); (err == nil) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}
