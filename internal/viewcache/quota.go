package viewcache

import (
	"optimist/internal/identity"
	"optimist/internal/linked"
	"optimist/internal/quota"
)

// network is the account of all clients in one network. When the memory is full, the network that holds most makes room. A network's fair
// share is the bound, divided by the number of networks. In a full memory the largest network holds at least that much. So a network below
// its fair share loses nothing to the others, however many clients they make up. The exception is the only entry of a client: see next.
type network struct {
	quota.Account
	name    identity.Network
	holders quota.Accounts[*holder]
}

// holder is the account of one client: how many bytes the memory keeps for it. In the network that makes room, the client that holds most
// loses its oldest entry. So clients behind one address share fairly, too.
//
// Bytes that several clients share count in full against each of them. Otherwise a client would grow when others leave.
type holder struct {
	quota.Account
	linked.List[*Entry]
	client identity.Client
	in     *network // nil: the holder has left
}

// The costs of these accounts: the structs, their slots in the map and in the heap.
const (
	holderCost  = 256
	networkCost = 128
)

// holders are all holders of a memory.
type holders struct {
	of       map[identity.Client]*holder
	networks map[identity.Network]*network
	bySize   quota.Accounts[*network]
}

func newHolders() holders {
	return holders{of: make(map[identity.Client]*holder), networks: make(map[identity.Network]*network)}
}

// get returns the holder of a client's entries. It makes one if there is none. cost is what that costs.
func (hs *holders) get(c identity.Client) (h *holder, cost int64) {
	if h = hs.of[c]; h != nil {
		return h, 0
	}
	n := hs.networks[c.Network]
	if n == nil {
		n = &network{name: c.Network}
		hs.networks[c.Network] = n
		hs.bySize.Add(n)
		cost = networkCost
		hs.bySize.Charge(n, networkCost)
	}
	h = &holder{client: c, in: n}
	hs.of[c] = h
	n.holders.Add(h)
	hs.charge(h, holderCost)
	return h, cost + holderCost
}

// remove removes a holder without entries. It returns what it has cost.
func (hs *holders) remove(h *holder) (cost int64) {
	n := h.in
	n.holders.Remove(h)
	hs.bySize.Charge(n, -h.Size())
	h.in, cost = nil, holderCost
	delete(hs.of, h.client)
	if n.holders.Len() == 0 {
		hs.bySize.Remove(n)
		delete(hs.networks, n.name)
		cost += networkCost
	}
	return cost
}

// charge adds bytes to the account of h, unless h has left.
func (hs *holders) charge(h *holder, bytes int64) {
	if n := h.in; n != nil {
		n.holders.Charge(h, bytes)
		hs.bySize.Charge(n, bytes)
	}
}

// next returns the entry that has to leave to make room: the oldest entry of the largest client of the largest network. If that is e, and e
// can't be made smaller, next returns an entry of the second largest client, or else of the second largest network: a client must not lose
// what it has just read because that is large. nil: there are no entries.
func (hs *holders) next(e *Entry) *Entry {
	n, ok := hs.bySize.Largest()
	if !ok {
		return nil
	}
	old := n.oldest()
	if old != e || len(e.Past) > 0 || len(e.Reads) > 1 {
		return old
	}
	if second, ok := n.holders.Second(); ok {
		return second.Oldest
	}
	if second, ok := hs.bySize.Second(); ok {
		return second.oldest()
	}
	return old
}

// oldest is the oldest entry of the network's largest client.
func (n *network) oldest() *Entry {
	h, _ := n.holders.Largest()
	return h.Oldest
}

// Network is where the client is that holds e.
func (e *Entry) Network() identity.Network { return e.holder.client.Network }

// touch makes e the newest of its holder.
func (e *Entry) touch() { e.holder.Renew(e) }

// enter makes the client the holder of e. e must have no holder.
func (m *Memory) enter(e *Entry, c identity.Client) {
	h, cost := m.holders.get(c)
	m.bytes += cost
	e.holder = h
	h.Push(e)
	m.holders.charge(h, e.held)
}

// exit takes e away from its holder.
func (m *Memory) exit(e *Entry) {
	h := e.holder
	h.Cut(e)
	m.holders.charge(h, -e.held)
	if h.Newest == nil {
		m.bytes -= m.holders.remove(h)
	}
}

// Use notes that clients of a network use the entry of their session. If several networks use an entry, it counts against the network
// that holds least: so the others can't push the entry out by all else that they hold.
func (m *Memory) Use(e *Entry, from identity.Network) {
	h := e.holder
	if h.client.Network == from {
		return
	}
	if n := m.holders.networks[from]; n == nil || n.Size()+e.held < h.in.Size() {
		m.exit(e)
		m.enter(e, identity.Client{Network: from, Credentials: h.client.Credentials})
	}
}

// account adds bytes to what e holds, and to its client's account.
func (m *Memory) account(e *Entry, bytes int64) {
	e.held += bytes
	m.holders.charge(e.holder, bytes)
}

// Ref counts one more reference of e to b.
func (m *Memory) Ref(e *Entry, b *Body) {
	b.refs++
	m.account(e, b.cost())
}

// cost is how many bytes b takes, without its digest.
func (b *Body) cost() int64 { return bodyCost + int64(len(b.Data)) }
