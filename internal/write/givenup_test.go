package write

import (
	"strings"
	"testing"
	"time"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

const summed = "rules: [{name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}]\n"

// A named session's client gives a write of {"n":1} up, writes {"n":2} by a request that needs no read, and has the answer to the first only
// then. It goes on from what it wrote: {"n":3} is one more, and not two.
func TestAClientThatGaveAWriteUpGoesOnFromItsNextWrite(t *testing.T) {
	for name, second := range map[string]struct {
		query  string
		fields []wire.Field
	}{
		"with any base":   {"", []wire.Field{{Name: []byte("If-Match"), Value: []byte("*")}}},
		"under own guard": {"?if_seq_no=1&if_primary_term=1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, summed)
			w.direct("PUT", "/shop/_doc/1", `{"n":0}`)
			me, given := w.client("me"), false
			me.readBy()
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != "PUT" || given {
					return nil, nil
				}
				given = true
				late := w.engine.handle(r)
				if a := me.send("PUT", "/shop/_doc/1"+second.query, `{"n":2}`, second.fields...); a.status != 200 {
					t.Errorf("the second write: %+v", a)
				}
				return late, nil
			}
			me.save("1", `{"n":1}`)
			me.save("1", `{"n":3}`)
			if got := w.get("1"); !strings.Contains(got, `"_source":{"n":3}`) {
				t.Errorf("the document is %s", got)
			}
		})
	}
}

// The same, while the name is moved to another index: the second write is from what the client reads there.
func TestAClientThatGaveAWriteUpGoesOnInTheIndexThatTheNameWasMovedTo(t *testing.T) {
	w := movable(t, summed)
	w.direct("DELETE", "/green/_doc/1", "")
	w.direct("DELETE", "/blue/_doc/1", "")
	me, given := w.client("me"), false
	me.readBy()
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "PUT" || given || !strings.HasPrefix(string(r.Target), "/shop/_doc/1") {
			return nil, nil
		}
		given = true
		w.move()
		late := w.engine.handle(r)
		w.later += 10 * time.Second
		me.readBy()
		me.save("1", `{"n":2}`)
		return late, nil
	}
	me.save("1", `{"n":1}`)
	me.save("1", `{"n":3}`)
	same(t, w.green(), `{"n":3}`)
}
