package zookeeper

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A server that greets a session has it. Without an id, a greeting says that the session is over.
func TestAServerThatGreetsTheSessionIsHeard(t *testing.T) {
	for id, want := range map[byte]bool{7: true, 0: false} {
		g := guarded{guard: guard{granted: new(atomic.Int64), line: new(line)}}
		greeting := make([]byte, sizeField+leastGreeting)
		binary.BigEndian.PutUint32(greeting, leastGreeting)
		binary.BigEndian.PutUint32(greeting[sizeField+4:], 600)
		greeting[sizeField+15] = id
		err := errors.Join(g.see(greeting[:sizeField]), g.see(greeting[sizeField:]))
		if heard := g.line.silence() < time.Hour; err != nil || heard != want {
			t.Errorf("session %d: heard is %t, %v", id, heard, err)
		}
	}
}
