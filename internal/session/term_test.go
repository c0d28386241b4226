package session

import (
	"testing"

	"optimist/internal/doc"
)

// A write of another session is acknowledged under a later primary term: before a base is taken, or after that.
func TestABaseKnowsTheTermOfWritesThatWereAcknowledgedBeforeIt(t *testing.T) {
	s, _ := newTest(t)
	write := func(sess Session, seqNo, term int64) {
		b := take(t, s, sess, `{"a":2}`)
		n := doc.Numbers{SeqNo: seqNo, PrimaryTerm: term}
		b.Commit(Ack{Stored: doc.Revision{Numbers: n, Source: []byte(`{"a":2}`)}, Sent: []byte(`{"a":2}`)})
	}
	wants := func(b *Base, term int64) {
		t.Helper()
		if got := b.TermBefore(); got != term {
			t.Errorf("the term is %d, want %d", got, term)
		}
	}
	s.Read(one, ref, rev(1, `{"a":1}`), s.Epoch())
	s.Read(two, ref, rev(1, `{"a":1}`), s.Epoch())
	before := take(t, s, one, `{"a":3}`)
	wants(&before, 0)
	write(two, 2, 2)
	wants(&before, 0) // it was perhaps sent before
	after := take(t, s, two, `{"a":3}`)
	wants(&after, 2)
	after.Release()
	before.Release()
	before = take(t, s, one, `{"a":3}`)
	write(two, 3, 2)
	wants(&before, 2) // the first write of the term counts
	write(two, 4, 3)
	wants(&before, 0)
	s.DropIndex(one.Credentials(), ref.Index)
	before.Release()
	wants(&before, 0)
	wants(&Base{}, 0)
}
