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
	if r := patcher.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`); r.status != 200 {
		t.Fatal(r)
	}
	w.direct("PUT", "/shop/_doc/2", `{"a":1,"b":0}`)
	has(t, bystander.save("2", `{"a":0,"b":1}`), 200, "merged")
	same(t, w.stored("2"), `{"a":1,"b":1}`)
}
