package write

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/session"
	"optimist/internal/upstream"
)

// TestAnswersThatOvertakeEachOtherShowNoOtherIndex: many clients write one document at once, in every way, and the engine's answers arrive in
// any order. Nobody makes the index anew, so optimist must not take it for such a one: it would forget all bases in it.
func TestAnswersThatOvertakeEachOtherShowNoOtherIndex(t *testing.T) {
	var renewed atomic.Int64
	w := newWorld(t, "rules: [{name: r, write_id: _w}]")
	now := time.Now()
	w.store = session.New(session.Options{Now: func() time.Time { return now },
		Renewed: func(session.Credentials, string) { renewed.Add(1) }})
	now = now.Add(time.Hour)
	w.start(Options{})
	w.put("1", `{"n":0}`)
	w.put("2", `{"n":0}`)
	w.engine.after = func(r *upstream.Request, res *upstream.Response) error {
		if rev, ok := revisionIn(string(res.Payload)); ok && isWrite(r) && rand.N(4) == 0 {
			target := fmt.Sprintf("%s?if_seq_no=%d&if_primary_term=%d", target1, rev.SeqNo, rev.PrimaryTerm)
			w.client("intruder").send("PUT", target, `{"n":7}`) // its acknowledgement comes before this one
		}
		for range rand.N(50) {
			runtime.Gosched()
		}
		if rand.N(20) == 0 {
			return lostError
		}
		return nil
	}
	bystander := w.client("bystander")
	bystander.read("2")
	var all sync.WaitGroup
	for k := range 12 {
		me := w.client(fmt.Sprint("client ", k%9)) // a few share a session
		if k%4 == 3 {
			me = w.stranger()
		}
		all.Go(func() {
			for i := range 40 {
				me.writeSomehow(i)
			}
		})
	}
	all.Wait()
	w.engine.after = nil
	has(t, bystander.save("2", `{"n":1}`), 200, "guarded;attempts=1;base=session")
	if n := renewed.Load(); n != 0 {
		t.Errorf("the index was taken for one made anew %d times", n)
	}
}

// writeSomehow writes the document "1".
func (c *client) writeSomehow(i int) {
	switch rand.N(10) {
	case 0, 1, 2:
		c.increment()
	case 3:
		c.patch(target1+"?_source=true", "steps", `[{"op":"increment","path":"/n","value":1}]`)
	case 4:
		c.read("1")
	case 5:
		c.read("1")
		c.save("1", fmt.Sprintf(`{"n":%d}`, i))
	case 6:
		c.save("1", fmt.Sprintf(`{"n":%d,"m":1}`, i))
	case 7:
		c.send("POST", update1, fmt.Sprintf(`{"doc":{"m":%d},"doc_as_upsert":true}`, i))
	case 8:
		c.send("POST", update1+"?filter_path=_seq_no,_primary_term", `{"doc":{"m":1},"doc_as_upsert":true}`)
	default:
		c.send("DELETE", target1, "")
	}
}
