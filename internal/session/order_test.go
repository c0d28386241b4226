package session

import (
	"runtime"
	"testing"
)

// A client that gave a write up twice has two of it waiting, and is there for the second only: it goes on after that one's
// answer. If the first took its base last, that would be what the client wrote next, which it would undo.
func TestThoseWhoWaitTakeInTheOrderInWhichTheyCame(t *testing.T) {
	for range 2000 {
		s, _ := newTest(t)
		s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
		first := take(t, s, one, `{"a":2}`)
		order := make(chan string, 2)
		for n, name := range []string{"second", "third"} {
			go func() {
				b, err := s.Take(t.Context(), one, ref, []byte(`{"a":2}`))
				if err != nil {
					t.Error(err)
				}
				order <- name
				b.Release()
			}()
			for s.Stats().Waited <= uint64(n) {
				runtime.Gosched()
			}
		}
		first.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		if a, b := <-order, <-order; a != "second" {
			t.Fatalf("%s before %s", a, b)
		}
	}
}
