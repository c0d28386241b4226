package write

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"optimist/internal/upstream"
)

// parking is a world in which nobody waits for the answers to first tries.
func parking(t *testing.T, rules string) *world {
	w := newWorld(t, rules)
	w.parks = true
	return w
}

func TestAWriteThatWasParkedIsAnsweredAsAnyOther(t *testing.T) {
	for name, send := range map[string]func(c *client) result{
		"a document": func(c *client) result { return c.save("1", `{"n":1,"s":"new"}`) },
		"a part":     func(c *client) result { return c.send("POST", "/shop/_update/1", `{"doc":{"n":1}}`) },
		"a delete":   func(c *client) result { return c.send("DELETE", "/shop/_doc/1", "") },
		"a create":   func(c *client) result { return c.send("PUT", "/shop/_create/2", `{"n":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			var results [2]result
			for i, parks := range []bool{false, true} {
				w := newWorld(t, sumRule)
				w.parks = parks
				w.put("1", `{"n":0,"s":"new"}`)
				c := w.client("c")
				c.read("1")
				results[i] = send(c)
				if lanes, _ := w.s.lanes.Busy(); lanes != 0 {
					t.Error("the write still holds its document's lane")
				}
				if next := c.save("1", `{"n":2,"s":"new"}`); next.err != nil {
					t.Error("the client's next write:", next)
				}
			}
			if results[0].String() != results[1].String() || results[0].etag != results[1].etag {
				t.Errorf("parked: %v; not parked: %v", results[1], results[0])
			}
		})
	}
}

func TestAConflictOfAParkedWriteIsMerged(t *testing.T) {
	w := parking(t, sumRule)
	w.put("1", `{"n":0,"s":"new"}`)
	a := w.client("a")
	a.read("1")
	w.parked = func() { w.put("1", `{"n":0,"s":"another's"}`) }
	has(t, a.save("1", `{"n":1,"s":"new"}`), 200, "merged;attempts=2")
	same(t, w.stored("1"), `{"n":1,"s":"another's"}`)
}

func TestAParkedWriteHoldsItsDocumentsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := parking(t, sumRule)
		w.put("1", `{"n":0,"s":"new"}`)
		a, b := w.client("a"), w.client("b")
		a.read("1")
		b.read("1")
		second := make(chan result, 1)
		w.parked = func() {
			w.parked = nil
			go func() { second <- b.save("1", `{"n":0,"s":"old"}`) }()
			w.waiting(1)
		}
		has(t, a.save("1", `{"n":1,"s":"new"}`), 200, "guarded;attempts=1")
		has(t, <-second, 200, "merged")
		same(t, w.stored("1"), `{"n":1,"s":"old"}`)
	})
}

func TestAChangeThatWaitsForItsTurnTellsItsParker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":0}`)
		hold, held := w.holdFirst()
		first := make(chan result, 1)
		a := w.client("a")
		a.read("1")
		go func() { first <- a.save("1", `{"n":1}`) }()
		<-held
		p := &parker{ctx: t.Context(), engine: w.engine}
		c := w.client("b")
		c.read("1")
		second := make(chan error, 1)
		r := &Request{Parker: p}
		go func() { second <- c.doRequest(t.Context(), r, "PUT", "/shop/_doc/1", []byte(`{"n":2}`)).err }()
		w.waiting(1)
		close(hold)
		<-first
		if err := <-second; err != nil || p.waits.Load() != 1 {
			t.Error(err, p.waits.Load())
		}
	})
}

func TestALostAnswerOfAParkedWriteIsAnUnknownOutcome(t *testing.T) {
	w := parking(t, "")
	w.put("1", `{"n":0}`)
	a := w.client("a")
	a.read("1")
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == "PUT" {
			return lostError
		}
		return nil
	}
	if r := a.save("1", `{"n":1}`); !errors.Is(r.err, ErrUnknownOutcome) {
		t.Error(r)
	}
	if lanes, _ := w.s.lanes.Busy(); lanes != 0 {
		t.Error("the write still holds its document's lane")
	}
}

func TestAParkedWriteWithoutAGuardIsPassed(t *testing.T) {
	w := parking(t, "")
	w.put("1", `{"n":0}`)
	a := w.client("a")
	a.read("1")
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" && bytes.Contains(r.Target, []byte("if_seq_no")) {
			return answering(400, `{"error":{"type":"illegal_argument_exception","reason":"index.disable_sequence_numbers"},"status":400}`), nil
		}
		return nil, nil
	}
	has(t, a.save("1", `{"n":1}`), 200, "passed")
}
