package write

import (
	"strings"
	"testing"
)

// TestAnHonestAnswerIsNoEarlierOne: the engine finds an _update unchanged, and answers with the document's numbers, which are the guard's.
// What the client wants to see of the answer may hide that.
func TestAnHonestAnswerIsNoEarlierOne(t *testing.T) {
	for _, query := range []string{"", "filter_path=_seq_no,_primary_term", "filter_path=_*", "filter_path=-result", "filter_path=-result,-_index"} {
		for _, body := range []string{`{"doc":{"n":1}}`, `{"doc":{"n":1},"doc_as_upsert":true}`, `{"doc":{}}`} {
			for _, guard := range []string{"", "if_seq_no=0&if_primary_term=1"} {
				if guard != "" && strings.Contains(body, "upsert") {
					continue
				}
				for _, parks := range []bool{false, true} {
					w := newWorld(t, "")
					w.put("1", `{"n":1}`)
					w.parks = parks
					me := w.client("me")
					me.read("1")
					target := update1 + "?" + strings.Trim(query+"&"+guard, "&")
					if r := me.send("POST", target, body); r.err != nil || r.status != 200 || !strings.Contains(r.outcome, "attempts=1") {
						t.Errorf("%s %s: %v", target, body, r)
					}
				}
			}
		}
	}
}
