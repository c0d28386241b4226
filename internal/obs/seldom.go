package obs

import (
	"sync"
	"time"
)

// seldomEvery is how long the log is silent about further events of a kind.
const seldomEvery = 10 * time.Second

// Seldom keeps the log from being flooded by what clients can cause as often as they like. The log tells of the first event at once, and
// then of how many there were. The zero value is ready. It is safe for concurrent use.
type Seldom struct {
	mu     sync.Mutex
	count  int
	logged time.Time
}

// Count counts an event. If it is time for a line in the log, it returns how many events there were since the last line.
func (s *Seldom) Count() (n int, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if !s.logged.IsZero() && time.Since(s.logged) < seldomEvery {
		return 0, false
	}
	n, s.count, s.logged = s.count, 0, time.Now()
	return n, true
}
