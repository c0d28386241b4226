package viewcache

import (
	"bytes"
	"encoding/json"
	"reflect"

	"optimist/internal/doc"
	"optimist/rewrite/tree"
)

// Newer reports whether a is of a newer revision than b, under the same primary term.
func Newer(a, b doc.Numbers) bool { return a.PrimaryTerm == b.PrimaryTerm && a.SeqNo > b.SeqNo }

// KnewNewer reports whether a newer revision than n was already acknowledged when the read that returned n was sent, or when the write that
// left n took its base. For a read, ticket is its ticket, and order is 0. For a write, ticket is 0, and order is its place when it took its
// base. d may be nil.
func (d *Document) KnewNewer(n doc.Numbers, ticket, order uint64) bool {
	return d != nil && Newer(d.acked.numbers, n) && (ticket > d.acked.ticket || order >= d.acked.order)
}

// KnewLaterTerm reports whether a write was already acknowledged under a later primary term than that of n when a write took its base, at
// that place in the shard's order. d may be nil.
func (d *Document) KnewLaterTerm(n doc.Numbers, order uint64) bool {
	return d != nil && n.Known() && d.acked.numbers.PrimaryTerm > n.PrimaryTerm && order >= d.acked.order
}

// Acknowledge notes that a write of the entry's document was acknowledged, and left the revision of n. ticket is that of the newest read
// at that moment.
func (m *Memory) Acknowledge(e *Entry, n doc.Numbers, ticket uint64) {
	m.Order++
	d, since := e.Document, m.Order
	if d.acked.numbers.PrimaryTerm == n.PrimaryTerm {
		since = d.acked.since
	}
	if !Newer(d.acked.numbers, n) {
		d.acked = acked{n, ticket, m.Order, since}
	}
}

// TermAt is the primary term of the last acknowledged write, if one of that term was acknowledged at that place in the shard's order, and 0
// otherwise. d may be nil.
func (d *Document) TermAt(order uint64) int64 {
	if d == nil || d.acked.since > order {
		return 0
	}
	return d.acked.numbers.PrimaryTerm
}

// IsOther reports whether data, which was read now, is certainly another document than b, which was read before under the same numbers. It
// isn't if both are the same document in two forms: an engine that is asked for a readable form writes numbers anew, and rounds them to
// what a float64 holds.
func (b *Body) IsOther(data []byte, ticket uint64) bool {
	if b == nil || data == nil || b.Ticket == 0 || ticket == 0 {
		return false
	}
	var x, y any
	return json.Unmarshal(b.Data, &x) == nil && json.Unmarshal(data, &y) == nil && !reflect.DeepEqual(x, y)
}

// isForm reports whether two bodies of one revision are the same document in two forms, digit for digit. Large bodies aren't compared: the
// caller holds a lock.
func (b *Body) isForm(o *Body) bool {
	const most = 64 << 10
	if bytes.Equal(b.Data, o.Data) {
		return true
	}
	if max(len(b.Data), len(o.Data)) > most {
		return false
	}
	same, err := tree.Same(b.Data, o.Data, tree.Limits{Values: most})
	return err == nil && same
}
