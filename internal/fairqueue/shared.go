package fairqueue

import (
	"cmp"
	"container/heap"

	"optimist/internal/identity"
	"optimist/internal/linked"
	"optimist/internal/share"
)

// Shared is a line for places that clients share: see package share. The one goes next that needs the fewest free places. That is one of
// the network with the fewest places, and there of the client with the fewest. Those that have equally few take turns. What waits for one
// client goes in its order.
//
// So while a network has no place, it waits for one turn of each other network at most, however much or however many clients wait there. A
// step costs the logarithm of what waits. Make it with NewShared. It is for one goroutine at a time.
type Shared[T any] struct {
	classes [2]class[T] // foreground, background
	turns   Turns
	own     map[share.Client]int     // places, by client
	at      map[identity.Network]int // and by network
	clock   uint64                   // counts what happens in the line
}

// Waiter is what waits in a Shared for one client.
type Waiter[T any] struct {
	linked.Links[*Waiter[T]]
	Value  T
	Client share.Client
	class  *class[T]
	in     *queue[T] // nil: it isn't in line any more
}

// class is what waits in a class.
type class[T any] struct {
	len      int
	networks map[identity.Network]*network[T]
	ranking  ranking[*network[T]]
}

// network is what waits in a class for one network.
type network[T any] struct {
	name    identity.Network
	at      int    // places, as they are counted: see share.Counted
	since   uint64 // when it began to wait for its turn
	queues  map[share.Client]*queue[T]
	ranking ranking[*queue[T]]
	rank    int
}

// queue is what waits in a class for one client.
type queue[T any] struct {
	linked.List[*Waiter[T]]
	client  share.Client
	network *network[T]
	own     int    // places, as they are counted
	since   uint64 // when it began to wait for its turn
	rank    int
}

// NewShared returns an empty line, of clients that have no places.
func NewShared[T any]() *Shared[T] {
	l := &Shared[T]{own: map[share.Client]int{}, at: map[identity.Network]int{}}
	for i := range l.classes {
		l.classes[i] = class[T]{networks: map[identity.Network]*network[T]{}, ranking: ranking[*network[T]]{less: lessNetwork[T]}}
	}
	return l
}

func lessQueue[T any](a, b *queue[T]) bool {
	return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.since, b.since)) < 0
}

func lessNetwork[T any](a, b *network[T]) bool {
	return cmp.Or(cmp.Compare(a.need(), b.need()), cmp.Compare(a.at, b.at), cmp.Compare(a.since, b.since)) < 0
}

// need is how many places have to be free for the network's next turn.
func (n *network[T]) need() int { return share.Need(n.at, n.ranking.list[0].own) }

// Join puts v at the end of its client's queue.
func (l *Shared[T]) Join(client share.Client, background bool, v T) *Waiter[T] {
	c := &l.classes[0]
	if background {
		c = &l.classes[1]
	}
	n := c.networks[client.Network]
	l.clock++
	if n == nil {
		n = &network[T]{name: client.Network, at: l.placesAt(client), since: l.clock, queues: map[share.Client]*queue[T]{}}
		n.ranking.less = lessQueue[T]
		c.networks[n.name] = n
	}
	p := &Waiter[T]{Value: v, Client: client, class: c}
	q := n.queues[client]
	if q == nil {
		q = &queue[T]{client: client, network: n, own: l.placesOf(client), since: l.clock}
		n.queues[client] = q
		n.ranking.add(q)
	}
	p.in = q
	q.Push(p)
	c.len++
	c.settle(n)
	return p
}

// Leave takes p out, and reports whether it was in line.
func (l *Shared[T]) Leave(p *Waiter[T]) bool {
	q := p.in
	if q == nil {
		return false
	}
	q.Cut(p)
	n := q.network
	if q.Oldest == nil {
		n.ranking.remove(q)
		delete(n.queues, q.client)
	} else {
		n.ranking.moved(q)
	}
	p.in = nil
	p.class.len--
	p.class.settle(n)
	return true
}

// settle gives a network its rank after a change of it.
func (c *class[T]) settle(n *network[T]) {
	switch {
	case len(n.queues) == 0:
		c.ranking.remove(n)
		delete(c.networks, n.name)
	case n.rank == 0:
		c.ranking.add(n)
	default:
		c.ranking.moved(n)
	}
}

// Next takes out what goes next, with so many places free. nil: nothing may.
func (l *Shared[T]) Next(free int) *Waiter[T] {
	fore, back := l.classes[0].first(free), l.classes[1].first(free)
	isBackground, ok := l.turns.Next(fore != nil, back != nil, l.classes[1].len > 0)
	p := fore
	switch {
	case !ok:
		return nil
	case isBackground:
		p = back
	}
	l.clock++
	p.in.since, p.in.network.since = l.clock, l.clock
	l.Leave(p)
	return p
}

// first is what goes next of the class; nil: nothing may.
func (c *class[T]) first(free int) *Waiter[T] {
	if c.len == 0 {
		return nil
	}
	if n := c.ranking.list[0]; n.need() <= free {
		return n.ranking.list[0].Oldest
	}
	return nil
}

// Count notes that a client has got places, or has given them back (less than 0).
func (l *Shared[T]) Count(client share.Client, by int) {
	own, at := l.own[client]+by, l.at[client.Network]+by
	l.own[client] = own
	if own == 0 {
		delete(l.own, client)
	}
	l.at[client.Network] = at
	if at == 0 {
		delete(l.at, client.Network)
	}
	for i := range l.classes {
		c := &l.classes[i]
		n := c.networks[client.Network]
		if n == nil {
			continue
		}
		n.at = l.placesAt(client)
		if q := n.queues[client]; q != nil {
			q.own = l.placesOf(client)
			n.ranking.moved(q)
		}
		c.settle(n)
	}
}

// Fits reports whether a client may have one of so many free places.
func (l *Shared[T]) Fits(client share.Client, free int) bool {
	return share.Need(l.placesAt(client), l.placesOf(client)) <= free
}

// placesOf is how many places of the client count, and placesAt how many of its network.
func (l *Shared[T]) placesOf(c share.Client) int { return share.Counted(c.Network, l.own[c]) }
func (l *Shared[T]) placesAt(c share.Client) int { return share.Counted(c.Network, l.at[c.Network]) }

// Len is how many wait in each class.
func (l *Shared[T]) Len() (foreground, background int) { return l.classes[0].len, l.classes[1].len }

// Empty reports whether nobody waits.
func (l *Shared[T]) Empty() bool { return l.classes[0].len+l.classes[1].len == 0 }

// ranking is a heap of what has a rank in it, from 1 on.
type ranking[T interface{ ranked() *int }] struct {
	list []T
	less func(a, b T) bool
}

func (n *network[T]) ranked() *int { return &n.rank }
func (q *queue[T]) ranked() *int   { return &q.rank }

func (r *ranking[T]) add(v T)    { heap.Push(r, v) }
func (r *ranking[T]) moved(v T)  { heap.Fix(r, *v.ranked()-1) }
func (r *ranking[T]) remove(v T) { heap.Remove(r, *v.ranked()-1) }

// Len implements heap.Interface.
func (r *ranking[T]) Len() int { return len(r.list) }

// Less implements heap.Interface.
func (r *ranking[T]) Less(i, j int) bool { return r.less(r.list[i], r.list[j]) }

// Swap implements heap.Interface.
func (r *ranking[T]) Swap(i, j int) {
	r.list[i], r.list[j] = r.list[j], r.list[i]
	*r.list[i].ranked(), *r.list[j].ranked() = i+1, j+1
}

// Push implements heap.Interface.
func (r *ranking[T]) Push(v any) {
	added := v.(T) //nolint:forcetypeassert // only these are pushed
	r.list = append(r.list, added)
	*added.ranked() = len(r.list)
}

// Pop implements heap.Interface.
func (r *ranking[T]) Pop() any {
	last := len(r.list) - 1
	v := r.list[last]
	clear(r.list[last:])
	r.list = r.list[:last]
	*v.ranked() = 0
	return v
}
