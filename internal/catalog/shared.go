package catalog

import (
	"sync"

	"optimist/internal/identity"
	"optimist/internal/quota"
)

// shared is what is remembered, by the clients that were the first to need it. Names and credentials may be made up, in any number. So if
// there is too much, the network that has most loses what was needed last. It is safe for concurrent use; make it with newShared.
type shared[K comparable, V any] struct {
	mu sync.Mutex
	of *quota.Map[identity.Network, K, V]
}

func newShared[K comparable, V any]() *shared[K, V] {
	return &shared[K, V]{of: quota.NewMap[identity.Network, K, V](maxNames)}
}

func (s *shared[K, V]) get(k K) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Get(k)
}

// peek is get, but doesn't count as a need.
func (s *shared[K, V]) peek(k K) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Peek(k)
}

// add remembers v for a client.
func (s *shared[K, V]) add(asker Asker, k K, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Add(asker.Caller.Client.Network, k, v)
}

// getOrAdd is get, and adds v where there is nothing.
func (s *shared[K, V]) getOrAdd(asker Asker, k K, v V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, found := s.of.Get(k); found {
		return before
	}
	s.of.Add(asker.Caller.Client.Network, k, v)
	return v
}

// change gives another value to all that have a key or a value which change takes.
func (s *shared[K, V]) change(change func(K, V) (V, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.of.Keys() {
		v, _ := s.of.Peek(k)
		if other, ok := change(k, v); ok {
			s.of.Set(k, other)
		}
	}
}

// has reports whether any key is one that is looked for.
func (s *shared[K, V]) has(is func(K) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.of.Keys() {
		if is(k) {
			return true
		}
	}
	return false
}

func (s *shared[K, V]) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Clear()
}
