package quota

import "sync"

// Shared is a Map that is safe for concurrent use. Make it with NewShared.
type Shared[O, K comparable, V any] struct {
	mu sync.Mutex
	of *Map[O, K, V]
}

// NewShared is NewMap for a Shared.
func NewShared[O, K comparable, V any](bound int) *Shared[O, K, V] {
	return &Shared[O, K, V]{of: NewMap[O, K, V](bound)}
}

// Len is how many values there are.
func (s *Shared[O, K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Len()
}

// Get returns the value of k.
func (s *Shared[O, K, V]) Get(k K) (v V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Get(k)
}

// Peek returns the value of k. That doesn't count as a use.
func (s *Shared[O, K, V]) Peek(k K) (v V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Peek(k)
}

// Add makes v the value of k, which o holds from then on.
func (s *Shared[O, K, V]) Add(o O, k K, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Add(o, k, v)
}

// GetOrAdd is Get, and adds v where there is nothing.
func (s *Shared[O, K, V]) GetOrAdd(o O, k K, v V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, found := s.of.Get(k); found {
		return before
	}
	s.of.Add(o, k, v)
	return v
}

// Remove removes the value of k.
func (s *Shared[O, K, V]) Remove(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Remove(k)
}

// Change gives another value to all keys for which change has one. change must not use s.
func (s *Shared[O, K, V]) Change(change func(K, V) (V, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.of.Keys() {
		v, _ := s.of.Peek(k)
		if other, ok := change(k, v); ok {
			s.of.Set(k, other)
		}
	}
}

// Has reports whether any key is one that is looked for. is must not use s.
func (s *Shared[O, K, V]) Has(is func(K) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.of.Keys() {
		if is(k) {
			return true
		}
	}
	return false
}

// Clear removes all values.
func (s *Shared[O, K, V]) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Clear()
}
