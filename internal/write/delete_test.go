package write

import (
	"context"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/fencing"
	"optimist/internal/gate"
	"optimist/internal/upstream"
)

// held says of every document that another client has locked it.
type held struct{}

func (held) Admit(context.Context, *fencing.Question) *gate.Refusal {
	return &gate.Refusal{Status: 423, Body: []byte(`{"error":{"type":"document_locked"},"status":423}`), Reason: "locked"}
}

// A delete with If-None-Match: * deletes nothing, but under enforced locks the locks answer first, as for any write of the document.
func TestADeleteOfNothingAsksTheLocksThoughTheDocumentCantBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		rule   string
		status int
		kind   string
	}{
		"locks by id":        {"", 423, "document_locked"},
		"locks by its field": {", lock_path: /path", 400, "unguardable_write"},
	} {
		for _, source := range []bool{true, false} {
			w := newWorld(t, "rules: [{name: r, match: {index: [shop]}, locks: enforce"+c.rule+"}]\n")
			w.start(Options{Locks: held{}})
			w.put("1", `{"path":"a/b"}`)
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if source || r.Method != "GET" || !strings.HasPrefix(string(r.Target), "/shop/_doc/1") {
					return nil, nil
				}
				return answering(200, `{"_index":"shop","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"found":true}`), nil
			}
			status, kind := c.status, c.kind
			if source {
				status, kind = 423, "document_locked"
			}
			r := w.client("me").send("DELETE", target1, "", noneMatch("*"))
			if has(t, r, status, "refused;"); gjson.Get(r.body, "error.type").Str != kind {
				t.Errorf("%s, its source is shown: %v: %v", name, source, r)
			}
		}
	}
}
