package locks_test

import (
	"fmt"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

func TestTheIndexOfTheLocksIsDeletedWhileProxiesRun(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		start := func() client {
			return client{t, optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: "locks: {index: " + index + "}\n"}).URL}
		}
		here, there := start(), start()
		// Without scripts what a proxy knew of an index guards its writes to the next one, too: their numbers begin anew, and must have
		// passed the new ones.
		for range 6 {
			a := here.do(201, "", "PUT", "/_lock/global/a", `{"owner":"older"}`)
			here.release(a.Lock, "older", a.Token)
		}
		old := map[string]reply{}
		for _, name := range []string{"a", "b", "c"} {
			old[name] = here.do(201, "", "PUT", "/_lock/global/"+name, `{"owner":"old","ttl":"10m"}`)
		}
		there.do(409, "lock_held", "PUT", "/_lock/global/a", `{"owner":"new","wait":"0"}`)
		there.do(404, "lock_not_found", "GET", "/_lock/global/d", "")
		mapping := func() string {
			a, err := e.Do(t.Context(), "GET", "/"+index+"/_mapping", "")
			if err != nil || a.Status != 200 {
				t.Fatalf("%v %+v", err, a)
			}
			return string(a.Body)
		}
		before := mapping()
		if a, err := e.Do(t.Context(), "DELETE", "/"+index, ""); err != nil || a.Status != 200 {
			t.Fatalf("%v %+v", err, a)
		}
		for i, c := range []client{there, here, there} {
			name := string(rune('a' + i))
			got := c.do(201, "", "PUT", "/_lock/global/"+name, `{"owner":"new"}`) // nobody knows any more that it was held
			if got.Token == old[name].Token {                                     // it may be lower: with the index the last token is gone, and with it fencing
				t.Errorf("token %d again", got.Token)
			}
			here.do(410, "lease_expired", "PUT", fmt.Sprintf("/_lock/global/%s?renew&owner=old&token=%d", name, old[name].Token), "")
			here.do(410, "lease_expired", "DELETE", fmt.Sprintf("/_lock/global/%s?owner=old&token=%d", name, old[name].Token), "")
		}
		if after := mapping(); after != before {
			t.Errorf("the index was made anew as\n%s\nand was\n%s", after, before)
		}
		late := start()
		late.do(409, "lock_held", "PUT", "/_lock/global/a", `{"owner":"late","wait":"0"}`)
		late.do(201, "", "PUT", "/_lock/global/d", `{"owner":"new"}`)
		if list := late.do(200, "", "GET", "/_lock?owner=new", ""); strings.Count(list.body, `"owner":"new"`) != 4 {
			t.Error(list.body)
		}
	})
}
