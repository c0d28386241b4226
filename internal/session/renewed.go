package session

import (
	"encoding/json"
	"reflect"

	"optimist/internal/doc"
	"optimist/internal/life"
)

// An index that was deleted and made anew around optimist counts from 0 again, and the engine accepts the numbers of the old one.
// It shows by one of these, and then nothing that was known of the index is a base any more:
//
//   - a read that was asked for after a write was known to be acknowledged, and answers an older revision under the same primary term;
//   - the answer to a write that has taken its base after another was acknowledged, and left an older revision likewise;
//   - another document under the numbers of one that was read;
//   - a read that was asked for after the last acknowledged write, and says that the index is missing.
//
// Searches prove nothing, as they see what was refreshed last; nor do bytes that were written, as what clients are shown may be less.

// acked is the newest write of a document that is known to be acknowledged.
type acked struct {
	numbers doc.Numbers
	asked   uint64 // reads with a later place were asked for when it was known
	order   uint64 // writes that took their base at this place, or later, did so when it was known
}

// newerThan reports whether the write left a newer revision than n, under the same primary term.
func (a *acked) newerThan(n doc.Numbers) bool {
	return a.numbers.PrimaryTerm == n.PrimaryTerm && a.numbers.SeqNo > n.SeqNo
}

// knewNewer reports whether a newer revision than n was known when a read was asked for that answers n, or when a write took its
// base that left n. Of asked and order the other one is 0.
func (d *document) knewNewer(n doc.Numbers, asked, order uint64) bool {
	return d != nil && d.acked.newerThan(n) && (asked > d.acked.asked || order >= d.acked.order)
}

// acknowledge notes a write of the document.
func (d *document) acknowledge(a acked) {
	if !d.acked.newerThan(a.numbers) {
		d.acked = a
	}
}

// acknowledged notes that a write of the entry's document was acknowledged, and left n, if that is known.
func (sh *shard) acknowledged(e *entry, ix *life.Index[Session], n doc.Numbers, asked uint64) {
	if n.Known() {
		sh.order++
		e.doc.acknowledge(acked{n, asked, sh.order})
		ix.Acknowledged(asked)
	}
}

// isOther reports whether b, which was read, is certainly of another document than what is read now: not only of another form of
// the same. An engine that is asked for a readable form writes numbers anew, and rounds them to what a float64 holds.
func (b *body) isOther(data []byte, asked uint64) bool {
	if b == nil || data == nil || b.asked == 0 || asked == 0 {
		return false
	}
	var x, y any
	return json.Unmarshal(b.data, &x) == nil && json.Unmarshal(data, &y) == nil && !reflect.DeepEqual(x, y)
}

// IndexMissing notes that a read, which was asked for at its place in the order, says that there is no such index. What is known
// of the index is forgotten, unless a write of it was acknowledged since: that has made the index.
func (s *Store) IndexMissing(c Credentials, name string, asked uint64) {
	if !s.dryRun && s.index(name, c, s.clock()).Missing(life.Owner(c), asked) {
		s.notes.DropIndex(name, s.clock())
		s.o.Renewed.Call(c, name)
	}
}
