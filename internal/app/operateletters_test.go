package app

import (
	"testing"

	"optimist/internal/admin"
	"optimist/internal/enginetest"
)

// The second object may have been meant to leave letters out: nothing may be replayed or deleted by the first alone.
func TestWhatIsAskedOfLettersIsReadToItsEnd(t *testing.T) {
	for body, want := range map[string]bool{
		``: true, `{"rule":"a"}`: true, `{"rul":"a"}`: false, `{"rule":"a"}{"index":"b"}`: false, `{"rule":"a"} x`: false,
	} {
		r := &admin.LettersRequest{Body: []byte(body)}
		if _, err := readLettersQuery(r); (err == nil) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAListWithoutLettersIsAList(t *testing.T) {
	w := letterWorld(t, enginetest.Serve(t), t.TempDir(), letterRules)
	if status, page := operate(t, w.app, "GET", "", "", ""); status != 200 || !page.Get("letters").IsArray() {
		t.Errorf("%d %s", status, page)
	}
}
