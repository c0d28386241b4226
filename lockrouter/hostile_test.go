package lockrouter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// TestOwnersThatAreNoTextAreRefused: in the document all of them would be the same one, and share its locks.
func TestOwnersThatAreNoTextAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		for _, c := range [][3]string{
			{"PUT", global + "?owner=%ff", ""}, {"PUT", global, `{"owner":"` + "\xff" + `"}`}, {"PUT", global, `{"owner":"\ud800"}`},
			{"PUT", global, `{"process_id":"a` + "\xc3" + `"}`}, {"PUT", global + "?owner=a&note=%fe", ""}, {"GET", "/_lock?owner=%ff", ""},
			{"POST", docs, `{"owner":"` + "\xfe" + `","ids":["1"]}`}, {"POST", docs, `{"owner":"a","ids":["` + "\xfe" + `"]}`},
			{"POST", "/_lock/_release", `{"owner":"` + "\xff" + `","tokens":[1]}`},
		} {
			ask(t, r, 400, lockrouter.TypeBad, c[0], c[1], c[2])
		}
		ask(t, r, 201, "", "PUT", global, `{"owner":"Jürgen 💡"}`)
	})
}

// TestNamesThatTheEngineCantKeepAreRefused: it would refuse the document, and the store seem to be away.
func TestNamesThatTheEngineCantKeepAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		long := strings.Repeat("n", 40_000)
		for _, lock := range []string{"/_lock/global/" + long, "/" + long + "/_lock/doc/1", "/" + long + "/_lock/tree/a", "/shop/_lock/doc/" + long} {
			ask(t, r, 400, lockrouter.TypeBad, "PUT", lock, `{"owner":"a"}`)
		}
		ask(t, r, 400, lockrouter.TypeBad, "POST", "/"+long+"/_lock/docs", `{"owner":"a","ids":["1"]}`)
		ask(t, r, 201, "", "PUT", "/_lock/global/"+long[:1000], `{"owner":"a"}`)
		ask(t, r, 201, "", "PUT", "/"+long[:255]+"/_lock/doc/"+long[:512], `{"owner":"a"}`)
	})
}

// TestLocksOfAnotherPathAreReleasedAllTheSame: the operator has changed locks.path since they were acquired.
func TestLocksOfAnotherPathAreReleasedAllTheSame(t *testing.T) {
	store := memory.New(nil)
	old := router(t, store, lockrouter.Options{})
	for _, lock := range []string{"/_lock/global", "/_lock/global/a%2Fb", "/shop/_lock/doc/1%2F2", "/fs/_lock/tree/a/b", "/fs/_lock/tree/"} {
		ask(t, old, 201, "", "PUT", lock, `{"owner":"`+lock+`"}`)
		r := router(t, store, lockrouter.Options{Path: "/_another_path_of_locks"})
		if results := operate(t, r, 200, "POST", "/_another_path_of_locks/_release", "", `{"owner":"`+lock+`"}`); !strings.Contains(results, `"released":1`) {
			t.Errorf("%s: %s", lock, results)
		}
	}
}

// TestATokenOfSeveralLocksReleasesAsManyAsItIsNamed: a token is one lock's, and another one of the owner's may have the same.
func TestATokenOfSeveralLocksReleasesAsManyAsItIsNamed(t *testing.T) {
	now := time.Now()
	s := &shelf{Store: memory.New(func() time.Time { return now })}
	s.failing(func(c *state.Call) (before, after error) {
		for i := range c.Ops {
			c.Ops[i].Salt = 0 // both locks draw the same number
		}
		return nil, nil
	})
	r := router(t, s, lockrouter.Options{})
	a := ask(t, r, 201, "", "PUT", "/_lock/global/a", `{"owner":"o"}`)
	b := ask(t, r, 201, "", "PUT", "/_lock/global/b", `{"owner":"o"}`)
	if a.token != b.token {
		t.Fatal("the tokens differ")
	}
	got := ask(t, r, 409, lockrouter.TypeAmbiguous, "POST", "/_lock/_release", fmt.Sprintf(`{"owner":"o","tokens":[%d]}`, a.token))
	if !strings.Contains(got.reason, "/_lock/global/a, /_lock/global/b") {
		t.Error(got.reason)
	}
	ask(t, r, 200, "", "PUT", fmt.Sprintf("/_lock/global/a?renew&owner=o&token=%d", a.token), "")
	both := ask(t, r, 200, "", "POST", "/_lock/_release", fmt.Sprintf(`{"owner":"o","tokens":[%d,%d]}`, a.token, b.token))
	if !strings.Contains(both.body, `"released":2`) {
		t.Error(both.body)
	}
}
