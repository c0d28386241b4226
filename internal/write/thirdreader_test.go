package write

import "testing"

// Three clients of one session have read a revision, and name it. The second one's answer has the numbers of what it read.
func TestAThirdReaderOfARevisionIsMerged(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {explicit: merge}}\n")
	w.put("1", `{"a":0,"b":0,"c":0}`)
	me := w.stranger()
	for range 3 {
		me.read("1")
	}
	const guard = "?if_seq_no=0&if_primary_term=1"
	has(t, me.send("PUT", target1+guard, `{"a":1,"b":0,"c":0}`), 200, "guarded")
	has(t, me.send("PUT", target1+guard, `{"a":0,"b":1,"c":0}`), 200, "merged")
	// It may also be the second one, which has the answer.
	has(t, me.send("PUT", target1+guard, `{"a":0,"b":0,"c":1}`), 200, "merged;attempts=2;base=explicit;ambiguous")
	same(t, w.stored("1"), `{"a":1,"b":1,"c":1}`)
	has(t, me.send("PUT", target1+guard, `{"a":0,"b":0,"c":2}`), 409, "guarded") // nobody else has read it
}
