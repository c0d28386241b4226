package proxy

import (
	"sync"

	"optimist/internal/api"
)

// requests are those of a kind whose answers' status begins with a digit, 0 for those without an answer.
type requests struct {
	kind  string
	class int
}

// counters is a Metrics that counts. The zero value is ready.
type counters struct {
	mu       sync.Mutex
	requests map[requests]int
	failed   map[string]int
}

func (c *counters) Request(op string, status int, _, _ int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		c.requests = map[requests]int{}
	}
	c.requests[requests{op, status / 100}]++
}

func (c *counters) Failed(typ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = map[string]int{}
	}
	c.failed[typ]++
}

// answered is how many requests of a kind were answered with a status of that class.
func (c *counters) answered(k api.Kind, class int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[requests{k.String(), class}]
}

// failures is how many errors of a type the door answered.
func (c *counters) failures(typ string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed[typ]
}
