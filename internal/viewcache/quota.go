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
	clients quota.Accounts[*clientAccount]
}

// clientAccount is the account of one client: how many bytes the memory keeps for it. In the network that makes room, the client that holds
// most loses its oldest entry. So clients behind one address share fairly, too. A client may have two accounts: see SetApart.
//
// Bytes that several clients share count in full against each of them. Otherwise a client would grow when others leave.
type clientAccount struct {
	quota.Account
	linked.List[*Entry]
	client identity.Client
	in     *network // nil: the client has no entry any more
}

// The costs of these accounts: the structs, their slots in the map and in the heap.
const (
	clientCost  = 256
	networkCost = 128
)

// accounts are the accounts of all clients and networks in a memory.
type accounts struct {
	of       map[identity.Client]*clientAccount
	networks map[identity.Network]*network
	bySize   quota.Accounts[*network]
}

func newAccounts() accounts {
	return accounts{of: make(map[identity.Client]*clientAccount), networks: make(map[identity.Network]*network)}
}

// get returns a client's account. It makes one if there is none. cost is the bytes that the new accounts take.
func (all *accounts) get(c identity.Client) (h *clientAccount, cost int64) {
	if h = all.of[c]; h != nil {
		return h, 0
	}
	n := all.networks[c.Network]
	if n == nil {
		n = &network{name: c.Network}
		all.networks[c.Network] = n
		all.bySize.Add(n)
		cost = networkCost
		all.bySize.Charge(n, networkCost)
	}
	h = &clientAccount{client: c, in: n}
	all.of[c] = h
	n.clients.Add(h)
	all.charge(h, clientCost)
	return h, cost + clientCost
}

// remove removes the account of a client without entries. It returns the bytes that the removed accounts have taken.
func (all *accounts) remove(h *clientAccount) (cost int64) {
	n := h.in
	n.clients.Remove(h)
	all.bySize.Charge(n, -h.Size())
	h.in, cost = nil, clientCost
	delete(all.of, h.client)
	if n.clients.Len() == 0 {
		all.bySize.Remove(n)
		delete(all.networks, n.name)
		cost += networkCost
	}
	return cost
}

// charge adds bytes to the account h and to that of its network, unless h was removed.
func (all *accounts) charge(h *clientAccount, bytes int64) {
	if n := h.in; n != nil {
		n.clients.Charge(h, bytes)
		all.bySize.Charge(n, bytes)
	}
}

// next returns the entry that has to leave to make room: the oldest entry of the largest client of the largest network. If that is e, and e
// can't be made smaller, next returns an entry of the second largest client, or else of the second largest network: a client must not lose
// what it has just read because that is large. nil: there are no entries.
func (all *accounts) next(e *Entry) *Entry {
	n, ok := all.bySize.Largest()
	if !ok {
		return nil
	}
	old := n.oldest()
	if old != e || len(e.Past) > 0 || len(e.Reads) > 1 {
		return old
	}
	if second, ok := n.clients.Second(); ok {
		return second.Oldest
	}
	if second, ok := all.bySize.Second(); ok {
		return second.oldest()
	}
	return old
}

// oldest is the oldest entry of the network's largest client.
func (n *network) oldest() *Entry {
	h, _ := n.clients.Largest()
	return h.Oldest
}

// Network is where the client is that holds e.
func (e *Entry) Network() identity.Network { return e.account.client.Network }

// touch makes e the newest entry of its client.
func (e *Entry) touch() { e.account.Renew(e) }

// enter puts e into the account of the client c. e must be in no account.
func (m *Memory) enter(e *Entry, c identity.Client) {
	h, cost := m.accounts.get(c)
	m.bytes += cost
	e.account = h
	h.Push(e)
	m.accounts.charge(h, e.held)
}

// exit takes e out of its client's account.
func (m *Memory) exit(e *Entry) {
	h := e.account
	h.Cut(e)
	m.accounts.charge(h, -e.held)
	if h.Newest == nil {
		m.bytes -= m.accounts.remove(h)
	}
}

// Use notes that clients of a network use the entry of their session. If several networks use an entry, it counts against the network
// that holds least: so the others can't push the entry out by all else that they hold.
func (m *Memory) Use(e *Entry, from identity.Network) {
	c, all := e.account.client, e.account.in.Size()
	if n := m.accounts.networks[from]; c.Network != from && (n == nil || n.Size()+e.held < all) {
		c.Network = from
	}
	c.Many = false
	m.move(e, c)
}

// SetApart notes that the entry is new, and one of many that one request shows. Until another request uses the entry, it counts against an
// account of its own: all that somebody exports pushes out no document that the same client has in hand.
func (m *Memory) SetApart(e *Entry) {
	c := e.account.client
	c.Many = true
	m.move(e, c)
}

// move puts e into the account of the client c.
func (m *Memory) move(e *Entry, c identity.Client) {
	if e.account.client != c {
		m.exit(e)
		m.enter(e, c)
	}
}

// account adds bytes to what e holds, and to its client's account.
func (m *Memory) account(e *Entry, bytes int64) {
	e.held += bytes
	m.accounts.charge(e.account, bytes)
}

// Ref counts one more reference of e to b.
func (m *Memory) Ref(e *Entry, b *Body) {
	b.refs++
	m.account(e, b.cost())
}

// cost is how many bytes b takes, without its digest.
func (b *Body) cost() int64 { return bodyCost + int64(len(b.Data)) }
