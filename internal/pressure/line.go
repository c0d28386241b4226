package pressure

import (
	"cmp"
	"container/heap"

	"optimist/internal/fairqueue"
	"optimist/internal/identity"
	"optimist/internal/share"
)

// line are the writes that wait. The one goes next that needs the fewest free places: see share.Need. That is a write of the network with
// the fewest writes at the engine, and there of the client with the fewest. Those that have equally few take turns. A client's own writes
// go in their order.
//
// So while a network has no write at the engine, its write waits for one write of each other network at most, however many writes or
// clients wait there. A step costs the logarithm of what waits.
type line struct {
	classes [2]class // foreground, background
	turns   fairqueue.Turns
	own     map[share.Client]int     // writes at the engine, by client
	at      map[identity.Network]int // and by network
	clock   uint64                   // counts what happens in the line
}

// place is a write in line.
type place struct {
	turn         chan struct{} // closed when it may go
	client       share.Client
	class        *class
	in           *queue // nil: it isn't in line any more
	older, newer *place
}

// class are the waiting writes of a class.
type class struct {
	len      int
	networks map[identity.Network]*network
	ranking  ranking[*network]
}

// network are the waiting writes of a class that come from one network.
type network struct {
	name    identity.Network
	at      int    // writes at the engine
	since   uint64 // when it began to wait for its turn
	queues  map[share.Client]*queue
	ranking ranking[*queue]
	rank    int
}

// queue are a client's waiting writes of a class.
type queue struct {
	client        share.Client
	network       *network
	own           int    // writes at the engine
	since         uint64 // when it began to wait for its turn
	first, latest *place
	rank          int
}

func newLine() line {
	l := line{own: map[share.Client]int{}, at: map[identity.Network]int{}}
	for i := range l.classes {
		l.classes[i] = class{networks: map[identity.Network]*network{}, ranking: ranking[*network]{less: lessNetwork}}
	}
	return l
}

func lessQueue(a, b *queue) bool {
	return cmp.Or(cmp.Compare(a.own, b.own), cmp.Compare(a.since, b.since)) < 0
}

func lessNetwork(a, b *network) bool {
	return cmp.Or(cmp.Compare(a.need(), b.need()), cmp.Compare(a.at, b.at), cmp.Compare(a.since, b.since)) < 0
}

// need is how many places have to be free for the network's next write.
func (n *network) need() int { return share.Need(n.at, n.ranking.list[0].own) }

// join puts a write at the end of its client's queue.
func (l *line) join(client share.Client, background bool) *place {
	c := &l.classes[0]
	if background {
		c = &l.classes[1]
	}
	n := c.networks[client.Network]
	l.clock++
	if n == nil {
		n = &network{name: client.Network, at: l.at[client.Network], since: l.clock, queues: map[share.Client]*queue{}}
		n.ranking.less = lessQueue
		c.networks[n.name] = n
	}
	p := &place{turn: make(chan struct{}), client: client, class: c}
	q := n.queues[client]
	if q != nil {
		p.in, p.older = q, q.latest
		q.latest.newer, q.latest = p, p
	} else {
		q = &queue{client: client, network: n, own: l.own[client], since: l.clock, first: p, latest: p}
		p.in, n.queues[client] = q, q
		n.ranking.add(q)
	}
	c.len++
	c.settle(n)
	return p
}

// leave takes a write out, and reports whether it was in line.
func (l *line) leave(p *place) bool {
	q := p.in
	if q == nil {
		return false
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		q.first = p.newer
	}
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		q.latest = p.older
	}
	n := q.network
	if q.first == nil {
		n.ranking.remove(q)
		delete(n.queues, q.client)
	} else {
		n.ranking.moved(q)
	}
	p.in, p.older, p.newer = nil, nil, nil
	p.class.len--
	p.class.settle(n)
	return true
}

// settle gives a network its rank after a change of it.
func (c *class) settle(n *network) {
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

// next takes out the write that goes next, with so many places free. nil: none may.
func (l *line) next(free int) *place {
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
	l.leave(p)
	return p
}

// first is the write of the class that goes next; nil: none may.
func (c *class) first(free int) *place {
	if c.len == 0 {
		return nil
	}
	if n := c.ranking.list[0]; n.need() <= free {
		return n.ranking.list[0].first
	}
	return nil
}

// count notes that a client has more, or fewer, writes at the engine. optimist's own aren't counted.
func (l *line) count(client share.Client, by int) {
	if client == (share.Client{}) {
		return
	}
	own, at := l.own[client]+by, l.at[client.Network]+by
	if l.own[client] = own; own == 0 {
		delete(l.own, client)
	}
	if l.at[client.Network] = at; at == 0 {
		delete(l.at, client.Network)
	}
	for i := range l.classes {
		c := &l.classes[i]
		n := c.networks[client.Network]
		if n == nil {
			continue
		}
		n.at = at
		if q := n.queues[client]; q != nil {
			q.own = own
			n.ranking.moved(q)
		}
		c.settle(n)
	}
}

// ranking is a heap of what has a rank in it, from 1 on.
type ranking[T interface{ ranked() *int }] struct {
	list []T
	less func(a, b T) bool
}

func (n *network) ranked() *int { return &n.rank }
func (q *queue) ranked() *int   { return &q.rank }

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
