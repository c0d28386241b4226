package lockrouter_test

import (
	"fmt"
	"testing"

	"optimist/lockrouter"
)

// TestTokensThatRequestsGetAreDrawn: requests for one lock go to the store together, and none of them may go without.
func TestTokensThatRequestsGetAreDrawn(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		told := 0
		for i, wait := range []string{"0", "1s", "0", "1s"} {
			name := fmt.Sprint("/_lock/global/", i)
			got := ask(t, r, 201, "", "PUT", name, `{"owner":"o","wait":"`+wait+`"}`)
			if got.token%1024 == 0 { // the token that who knows the time would try first
				told++
			}
		}
		if told > 2 {
			t.Errorf("%d of 4 tokens are the time", told)
		}
	})
}
