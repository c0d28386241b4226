package viewcache

import (
	"encoding/json"
	"reflect"

	"optimist/internal/doc"
)

// Newer reports whether a is of a newer revision than b, under the same primary term.
func Newer(a, b doc.Numbers) bool { return a.PrimaryTerm == b.PrimaryTerm && a.SeqNo > b.SeqNo }

// KnewNewer reports whether a newer revision than n was already known when the read that answers n was asked for, or when the write that
// left n took its base. A read has a ticket, a write has order; the other one is 0.
func (d *Document) KnewNewer(n doc.Numbers, ticket, order uint64) bool {
	return d != nil && Newer(d.acked.numbers, n) && (ticket > d.acked.ticket || order >= d.acked.order)
}

// Acknowledge notes that a write of the entry's document was acknowledged, and left n. Reads with a later ticket were asked for
// since.
func (m *Memory) Acknowledge(e *Entry, n doc.Numbers, ticket uint64) {
	m.Order++
	if d := e.Document; !Newer(d.acked.numbers, n) {
		d.acked = acked{n, ticket, m.Order}
	}
}

// IsOther reports whether b, which was read, is certainly of another document than what is read now: not only of another form of
// the same. An engine that is asked for a readable form writes numbers anew, and rounds them to what a float64 holds.
func (b *Body) IsOther(data []byte, ticket uint64) bool {
	if b == nil || data == nil || b.Ticket == 0 || ticket == 0 {
		return false
	}
	var x, y any
	return json.Unmarshal(b.Data, &x) == nil && json.Unmarshal(data, &y) == nil && !reflect.DeepEqual(x, y)
}
