// Package quota shares a bounded room fairly. Nobody can take from others what is less than the largest part: when the room is full, who
// holds most makes place.
//
// It knows neither clients nor what is held. Only Shared takes a lock.
package quota

import (
	"iter"
	"maps"

	"optimist/internal/linked"
)

// Map is a map with a bound, of values that owners hold. When it is full, the owner that holds most loses the value that it hasn't used for
// longest. So an owner of few values loses none to others, however many those add. Make it with NewMap. It is for one goroutine at a time.
type Map[O, K comparable, V any] struct {
	bound  int
	items  map[K]*item[O, K, V]
	owners map[O]*owner[O, K, V]
	bySize Accounts[*owner[O, K, V]]
}

type item[O, K comparable, V any] struct {
	linked.Links[*item[O, K, V]]
	key   K
	value V
	owner *owner[O, K, V]
}

type owner[O, K comparable, V any] struct {
	Account
	linked.List[*item[O, K, V]]
	name O
}

// NewMap returns a map for so many values, at least one. An owner takes the room of one more value: many owners don't make it larger.
func NewMap[O, K comparable, V any](bound int) *Map[O, K, V] {
	return &Map[O, K, V]{bound: max(bound, 2), items: map[K]*item[O, K, V]{}, owners: map[O]*owner[O, K, V]{}}
}

// Len is how many values there are.
func (m *Map[O, K, V]) Len() int { return len(m.items) }

// Contains reports whether there is a value of k. That doesn't count as a use.
func (m *Map[O, K, V]) Contains(k K) bool { return m.items[k] != nil }

// Peek returns the value of k. That doesn't count as a use.
func (m *Map[O, K, V]) Peek(k K) (v V, ok bool) {
	i := m.items[k]
	if i == nil {
		return v, false
	}
	return i.value, true
}

// Keys are the keys of all values, in any order.
func (m *Map[O, K, V]) Keys() iter.Seq[K] { return maps.Keys(m.items) }

// Clear removes all values.
func (m *Map[O, K, V]) Clear() { *m = *NewMap[O, K, V](m.bound) }

// Set gives k another value, which its owner holds as before. It reports false where k has none.
func (m *Map[O, K, V]) Set(k K, v V) bool {
	i := m.items[k]
	if i != nil {
		i.value = v
	}
	return i != nil
}

// Get returns the value of k.
func (m *Map[O, K, V]) Get(k K) (v V, ok bool) {
	i := m.items[k]
	if i == nil {
		return v, false
	}
	i.owner.Renew(i)
	return i.value, true
}

// Add makes v the value of k, which o holds from then on.
func (m *Map[O, K, V]) Add(o O, k K, v V) {
	m.Remove(k)
	of := m.owners[o]
	if of == nil {
		of = &owner[O, K, V]{name: o}
		m.owners[o] = of
		m.bySize.Add(of)
	}
	i := &item[O, K, V]{key: k, value: v, owner: of}
	m.items[k] = i
	of.Push(i)
	m.bySize.Charge(of, 1)
	for len(m.items) > 1 && len(m.items)+len(m.owners) > m.bound {
		most, _ := m.bySize.Largest()
		if most.Oldest == i { // all others hold as little, and it has just come
			most, _ = m.bySize.Second()
		}
		m.Remove(most.Oldest.key)
	}
}

// Remove removes the value of k.
func (m *Map[O, K, V]) Remove(k K) {
	i := m.items[k]
	if i == nil {
		return
	}
	o := i.owner
	delete(m.items, k)
	o.Cut(i)
	m.bySize.Charge(o, -1)
	if o.Newest == nil {
		m.bySize.Remove(o)
		delete(m.owners, o.name)
	}
}
