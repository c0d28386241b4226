package write

import (
	"fmt"
	"testing"

	"optimist/internal/upstream"
)

// TestAPatchThatIsNotedLateForgetsNoIndex: between the acknowledgement of a patch and the note of its view, another client writes the
// document. The patch's numbers are then older than those that the session knows. That is no sign that the index was made anew.
func TestAPatchThatIsNotedLateForgetsNoIndex(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":0}`)
	w.put("2", `{"a":0,"b":0}`)
	patcher, bystander, other := w.client("patcher"), w.client("bystander"), w.client("other")
	patcher.read("1")
	bystander.read("2")
	w.engine.after = func(r *upstream.Request, res *upstream.Response) error {
		if isWrite(r) {
			w.engine.after = nil
			rev, _ := revisionIn(string(res.Payload))
			target := fmt.Sprintf("%s?if_seq_no=%d&if_primary_term=%d", target1, rev.SeqNo, rev.PrimaryTerm)
			has(t, other.send("PUT", target, `{"n":7}`), 200, "guarded;attempts=1;base=explicit")
		}
		return nil
	}
	if r := patcher.increment(); r.status != 200 {
		t.Fatal(r)
	}
	w.direct("PUT", "/shop/_doc/2", `{"a":1,"b":0}`)
	has(t, bystander.save("2", `{"a":0,"b":1}`), 200, "merged")
	same(t, w.stored("2"), `{"a":1,"b":1}`)
}

// TestAWriteShowsAnIndexThatWasMadeAnew: optimist knows a newer revision than the write has left, from before the write began. So the index
// is another one, and no earlier base guards a write in it: the document may have the base's numbers by chance.
func TestAWriteShowsAnIndexThatWasMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		write           func(me *client) result
		unnamed, inBulk bool
	}{
		"a patch":          {write: (*client).increment},
		"a PUT":            {write: func(me *client) result { return me.save("1", `{"n":4}`) }},
		"a PUT of a bulk":  {write: func(me *client) result { return me.save("1", `{"n":4}`) }, inBulk: true},
		"an unnamed PUT":   {write: func(me *client) result { return me.save("1", `{"n":4}`) }, unnamed: true},
		"an _update":       {write: func(me *client) result { return me.send("POST", update1, `{"doc":{"n":4}}`) }},
		"an _update, bulk": {write: func(me *client) result { return me.send("POST", update1, `{"doc":{"n":4}}`) }, inBulk: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("2", `{"a":0,"b":0}`)
			w.put("1", `{"n":0}`)
			me, bystander := w.client("me"), w.client("bystander")
			if c.unnamed {
				me = w.stranger()
			}
			bystander.read("2")
			for _, body := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`} {
				me.read("1")
				has(t, me.save("1", body), 200, "guarded")
			}
			w.direct("DELETE", "/shop", "")
			w.put("2", `{"x":1}`) // with the numbers of the old one
			w.put("1", `{"n":9}`)
			w.parks = c.inBulk
			if r := c.write(me); r.status != 200 {
				t.Fatal(r)
			}
			has(t, bystander.save("2", `{"a":0,"b":1}`), 200, "passed;attempts=1;base=lost;reason=index")
		})
	}
}

// increment adds 1 to n of the document "1", by a patch.
func (c *client) increment() result {
	return c.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`)
}
