package lockrouter_test

import (
	"fmt"
	"strings"
	"testing"

	"optimist/lockrouter"
)

// operate makes a request in the operator's name.
func operate(t *testing.T, r *lockrouter.Router, status int, method, path, query, body string) string {
	t.Helper()
	a, err := r.Serve(t.Context(), &lockrouter.Request{Method: method, Path: []byte(path), Query: []byte(query), Body: []byte(body), Admin: true})
	if err != nil || a.Status != status {
		t.Fatalf("%s %s?%s: %v %+v", method, path, query, err, a)
	}
	return string(a.Body)
}

func TestTheOperatorSeesTokensAndReleasesInTheHoldersPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		a := take(t, r, "a")
		if results := operate(t, r, 200, "GET", global, "", ""); !strings.Contains(results, fmt.Sprintf(`"token":%d`, a.token)) {
			t.Error(results)
		}
		if results := ask(t, r, 200, "", "GET", global, ""); results.token != 0 {
			t.Error("a client sees the token")
		}
		ask(t, r, 400, "illegal_argument_exception", "DELETE", global, "")
		operate(t, r, 404, "DELETE", global, fmt.Sprint("token=", a.token+1), "")
		got := make(chan reply, 1)
		go func() {
			next, err := request(t.Context(), r, "PUT", global, `{"owner":"b"}`)
			if err != nil {
				t.Error(err)
			}
			got <- next
		}()
		operate(t, r, 200, "DELETE", global, fmt.Sprint("token=", a.token), "")
		b := <-got
		if b.status != 201 || b.token <= a.token {
			t.Errorf("%+v", b)
		}
		ask(t, r, 403, "not_the_owner", "PUT", global+"?renew&owner=a", "")
		ask(t, r, 410, "lease_expired", "PUT", fmt.Sprintf("%s?renew&owner=a&token=%d", global, a.token), "")
		operate(t, r, 200, "DELETE", global, "", "")
		operate(t, r, 404, "DELETE", global, "", "")
	})
}

func TestAllOfAnOwnersIsReleasedByTheOperatorOnly(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		for i := range 5 {
			ask(t, r, 201, "", "PUT", fmt.Sprint("/_lock/global/", i), fmt.Sprintf(`{"owner":"host-%d"}`, i%2))
		}
		kept := ask(t, r, 201, "", "PUT", "/fs/_lock/tree/a", `{"owner":"other"}`)
		for _, body := range []string{`{"owner":"host-1"}`, `{"owner":"host-*"}`, `{"owner":"host-*","tokens":[1]}`} {
			ask(t, r, 400, "illegal_argument_exception", "POST", "/_lock/_release", body)
		}
		if results := operate(t, r, 200, "POST", "/_lock/_release", "", `{"owner":"host-1"}`); !strings.Contains(results, `"released":2`) {
			t.Error(results)
		}
		if results := operate(t, r, 200, "POST", "/_lock/_release", "", `{"owner":"host-*"}`); !strings.Contains(results, `"released":3`) {
			t.Error(results)
		}
		ask(t, r, 200, "", "DELETE", fmt.Sprintf("/fs/_lock/tree/a?owner=other&token=%d", kept.token), "")
	})
}

func TestParametersOfAListThatAreEmptyCountAsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		take(t, r, "a")
		if list := operate(t, r, 200, "GET", "/_lock", "owner=&prefix=&older_than=&size=&after=", ""); !strings.Contains(list, `"owner":"a"`) {
			t.Error(list)
		}
		ask(t, r, 400, "illegal_argument_exception", "GET", "/_lock?size=0", "")
	})
}
