package write

import (
	"strings"
	"testing"
)

// Two clients have looked at a document, which a third one deletes. None of them names itself. What comes next is either a new document, or
// what one of the two has read, changed and saved. Only the content tells which.
func TestADeletedDocumentComesBackOnlyAsANewOne(t *testing.T) {
	const anew, stale = "guarded;attempts=1;base=absent", "guarded;attempts=1;base=session"
	const order = `{"customer":"Anna Berg","city":"Oslo","lines":[{"sku":"tea","n":2}],"state":"open","total":12}`
	const long = `{"customer":"Anna Berg","city":"Oslo","state":"open","street":"Storgata 14","mail":"anna@x.org"}`
	const form = `{"customer":"Anna Berg","city":"Oslo","state":"open","total":12}`
	for name, c := range map[string]struct {
		was, put string
		read404  bool // the client has seen that there is no document
		status   int
		outcome  string
	}{
		"another order": {order, `{"customer":"Bo Lind","city":"Rome","lines":[{"sku":"rum"}],"state":"new","total":31}`, false, 201, anew},
		"another kind":  {order, `{"name":"chairs","stock":4}`, false, 201, anew},
		"the same state": {order, `{"customer":"Bo Lind","city":"Bergen","lines":[],"state":"open","total":0}`, false, 201,
			anew + ";ambiguous"},
		"the same state, and more": {long, `{"customer":"Bo Lind","city":"Bergen","state":"open","street":"Torget 2","mail":"bo@x.org"}`,
			false, 201, anew + ";ambiguous"},
		"a stale order":       {order, strings.Replace(order, "open", "paid", 1), false, 409, stale},
		"a stale order, seen": {order, strings.Replace(order, "open", "paid", 1), true, 409, stale},
		"a stale order, idle": {order, order, false, 409, stale},
		"with most of it":     {order, `{"customer":"Anna Berg","city":"Rome","lines":[{"sku":"tea","n":2}],"state":"paid"}`, false, 409, stale},
		"a stale form":        {form, strings.Replace(form, "open", "paid", 1), false, 409, stale},
		"a stale form, seen":  {form, strings.Replace(form, "open", "paid", 1), true, 409, stale},
		"a new form":          {form, `{"customer":"Bo Lind","city":"Bergen","state":"new","total":31}`, false, 201, anew},
		"a counter":           {`{"n":5}`, `{"n":6}`, false, 409, stale + ";ambiguous"},
		"a counter, seen":     {`{"n":5}`, `{"n":1}`, true, 201, anew + ";ambiguous"},
		"another order, seen": {order, `{"customer":"Bo Lind","city":"Bergen","lines":[],"state":"new","total":0}`, true, 201, anew},
		"an owner":            {`{"owner":"a"}`, `{"owner":"b"}`, false, 409, stale + ";ambiguous"},
	} {
		for _, looks := range []int{2, 3} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, "")
				w.put("1", c.was)
				pool := w.stranger()
				for range looks {
					pool.read("1")
				}
				has(t, pool.send("DELETE", "/shop/_doc/1", ""), 200, "guarded")
				if c.read404 {
					pool.read("1")
				}
				has(t, pool.save("1", c.put), c.status, c.outcome)
			})
		}
	}
}
