package viewcache

import "optimist/internal/rank"

// Complain reports a defect, as testing.T.Errorf does.
type Complain func(format string, args ...any)

// recount is what a memory holds, counted again.
type recount struct {
	bytes   int64
	refs    map[*Body]int
	entries map[*Document]int
	clients map[*clientAccount]int64
}

// Audit counts the content of the memory again, compares it with the accounts, and returns how many bytes each client holds. It is for
// tests.
func (m *Memory) Audit(complain Complain) []int64 {
	r := recount{refs: map[*Body]int{}, entries: map[*Document]int{}, clients: map[*clientAccount]int64{}}
	for _, e := range m.lru.Values() {
		r.entry(complain, e)
		if m.markers.Contains(m.mark(e.Key)) || (e.Lost != NoReason && !e.Empty()) {
			complain("known and lost at once: %v", e.Lost)
		}
	}
	var digests []*rank.Digest
	for b, n := range r.refs {
		r.bytes += bodyCost + int64(len(b.Data))
		if b.digest != nil {
			digests = append(digests, b.digest)
		}
		if (b.digest == nil) != (b.maker == nil) {
			complain("a digest that nobody made, or that isn't there any more")
		}
		if h := b.maker; h != nil && h.in != nil {
			r.clients[h] += b.paid
		}
		if b.refs != n {
			complain("body has %d references, counts %d", n, b.refs)
		}
	}
	r.bytes += rank.Size(digests...)
	if len(r.refs) != m.bodies {
		complain("%d bodies, counts %d", len(r.refs), m.bodies)
	}
	for k, d := range m.docs {
		r.bytes += documentCost + refLen(k.Ref)
		r.document(complain, d)
	}
	r.bytes += clientCost*int64(len(r.clients)) + networkCost*int64(len(m.accounts.networks))
	m.auditClients(complain, r.clients)
	if r.bytes != m.bytes {
		complain("%d bytes, counts %d", r.bytes, m.bytes)
	}
	if m.bytes < 0 || m.bytes > m.o.Bound {
		complain("%d bytes of %d", m.bytes, m.o.Bound)
	}
	return m.shares()
}

func (m *Memory) shares() (bytes []int64) {
	for _, h := range m.accounts.of {
		bytes = append(bytes, h.Size())
	}
	return bytes
}

func (r *recount) entry(complain Complain, e *Entry) {
	if c := e.cost(); c != e.charged {
		complain("entry charged %d, costs %d", e.charged, c)
	}
	r.bytes += e.charged
	r.entries[e.Document]++
	if held := heldBy(e); held != e.held {
		complain("entry holds %d, counts %d", held, e.held)
	}
	r.clients[e.account] += e.held
	for i, read := range e.Reads {
		if read.Count < 1 || (e.Key.Session.IsNamed() && read.Count != 1) || (i > 0 && read.Order <= e.Reads[i-1].Order) {
			complain("reads %+v", e.Reads)
		}
		if known := read.Programs[0].count + read.Programs[1].count; known > read.Count {
			complain("%d reads by known programs, of %d", known, read.Count)
		}
	}
	for b := range e.bodies {
		r.refs[b]++
	}
}

func (r *recount) document(complain Complain, d *Document) {
	if d.entries != r.entries[d] {
		complain("document has %d entries, counts %d", r.entries[d], d.entries)
	}
	paid, digests := int64(0), make([]*rank.Digest, len(d.digested))
	for i, b := range d.digested {
		if digests[i] = b.digest; b.digest == nil || r.refs[b] == 0 {
			complain("document keeps a digest that nobody holds")
		}
		if paid += b.paid; b.paid < 0 {
			complain("a digest costs its client %d bytes", b.paid)
		}
	}
	if size := rank.Size(digests...); size != paid {
		complain("digests take %d bytes, clients pay for %d", size, paid)
	}
	for _, b := range d.bodies {
		if r.refs[b] == 0 || b.doc != d {
			complain("document keeps a body that nobody holds")
		}
	}
}

// heldBy counts again how many bytes an entry costs its client.
func heldBy(e *Entry) int64 {
	n := documentCost + refLen(e.Key.Ref) + e.charged
	for b := range e.bodies {
		n += b.cost()
	}
	return n
}

// bodies yields the body of each reference that the entry has.
func (e *Entry) bodies(yield func(*Body) bool) {
	for _, r := range e.Reads {
		if r.Body != nil && !yield(r.Body) {
			return
		}
	}
	all := []*View{&e.View}
	for i := range e.Past {
		all = append(all, &e.Past[i].View)
	}
	for _, v := range all {
		for b := range v.bodies {
			if !yield(b) {
				return
			}
		}
	}
}

// auditClients compares each account with the bytes that its entries and digests take.
func (m *Memory) auditClients(complain Complain, held map[*clientAccount]int64) {
	all, found, entries := &m.accounts, 0, 0
	for i, n := range all.bySize.All() {
		bytes := int64(networkCost)
		for j, h := range n.clients.All() {
			bytes += h.Size()
			if all.of[h.client] != h || h.in != n || j > 0 && h.Size() > n.clients.All()[(j-1)/2].Size() {
				complain("a client isn't in its place")
			}
			if h.Size() != held[h]+clientCost {
				complain("a client holds %d bytes, counts %d", held[h]+clientCost, h.Size())
			}
			entries += h.audit(complain)
		}
		found += n.clients.Len()
		if all.networks[n.name] != n || i > 0 && n.Size() > all.bySize.All()[(i-1)/2].Size() {
			complain("a network isn't in its place")
		}
		if n.Size() != bytes {
			complain("a network holds %d bytes, counts %d", bytes, n.Size())
		}
	}
	if len(all.of) != len(held) || found != len(held) || len(all.networks) != all.bySize.Len() {
		complain("%d clients, %d of them found, %d ordered", len(held), len(all.of), found)
	}
	if entries != m.lru.Len() {
		complain("clients hold %d entries of %d", entries, m.lru.Len())
	}
}

// audit looks at the list of the client's entries, and counts them.
func (h *clientAccount) audit(complain Complain) (entries int) {
	var newer *Entry
	for e := h.Newest; e != nil; e, newer = e.Older, e {
		entries++
		if e.account != h || e.Newer != newer {
			complain("an entry isn't in its place")
		}
	}
	if newer != h.Oldest {
		complain("the oldest entry isn't in its place")
	}
	return entries
}
