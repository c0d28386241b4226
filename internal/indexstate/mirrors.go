package indexstate

// maxLead bounds how much writes count that were seen before: clients may change their ways. leastLead is how many show that a client
// mirrors: one may be chance.
const maxLead, leastLead = 8, 2

// mirrors count for each client how many more of its writes in the index were made from what it had written last than from reads. The zero
// value has counted nothing.
type mirrors[W comparable] struct{ lead recentClients[W, int] }

func (m *mirrors[W]) has(w W, now int64) bool {
	lead, _ := m.lead.get(w, now)
	return lead >= leastLead
}

func (m *mirrors[W]) add(w W, now, age int64, by int) {
	m.lead.note(w, now, now+age, func(lead int) int { return max(-maxLead, min(lead+by, maxLead)) }, nil)
}

// WroteOwn notes that content has shown a write of w to be made from what w had written last, although w has read the document before that.
func (ix Index[W]) WroteOwn(w W, now int64) { ix.mirrors.add(w, now, ix.writerAge(), 1) }

// WroteRead notes that content has shown a write of w to be made from a read, although w has written the document since.
func (ix Index[W]) WroteRead(w W, now int64) { ix.mirrors.add(w, now, ix.writerAge(), -1) }

// Mirrors reports whether w writes from what it wrote last, whatever it reads, as far as is known. Without anybody it is one load.
func (ix Index[W]) Mirrors(w W, now int64) bool { return ix.mirrors.has(w, now) }
