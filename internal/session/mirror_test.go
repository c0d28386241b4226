package session

import (
	"slices"
	"strings"
	"testing"

	"optimist/internal/doc"
)

// A program keeps its documents in a database. It writes from there, and shows what a search finds: an old state. What its first write
// makes of the stored document isn't what it sent, and the next one puts that right.
func TestWhatAMirrorSentIsThereAgain(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	body := func(tags ...string) []byte { return []byte(`{"tags":["` + strings.Join(tags, `","`) + `"]}`) }
	stored, tags := rev(1, string(body("t1"))), []string{"t1"}
	stored.Version = 1
	write := func(want Kind, store ...string) Base {
		t.Helper()
		tags = append(tags, "t"+string(rune('0'+len(tags)+1)))
		sent := body(tags...)
		b := take(t, s, pool, string(sent))
		if b.Kind != want {
			t.Fatalf("%+v, want %v", b, want)
		}
		made := sent
		if len(store) > 0 {
			made = body(store...)
		}
		stored = doc.Revision{Numbers: doc.Numbers{SeqNo: stored.SeqNo + 1, PrimaryTerm: 1}, Version: stored.Version + 1, Source: made}
		b.Commit(Ack{Stored: stored, Sent: sent, StoredDiffers: len(store) > 0})
		return b
	}
	old := stored
	s.Read(pool, ref, old, s.Epoch())
	write(KindRead)
	write(KindView)
	s.Read(pool, ref, old, s.Epoch()) // a search, before the refresh
	write(KindRead, "t1", "t2", "t3", "t2", "t3", "t4")
	s.Read(pool, ref, old, s.Epoch())
	write(KindRead, "t1", "t2", "t3", "t2", "t3", "t4", "t2", "t3", "t4", "t5") // one may be chance
	before := slices.Clone(stored.Source)
	s.Read(pool, ref, old, s.Epoch())
	if b := write(KindView); string(b.View) != string(before) || b.StoredDiffers {
		t.Errorf("the view %s, want the one that is stored", b.View)
	}
}

// What another client wrote stays.
func TestWhatOthersWroteIsNotAstray(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	const sent = `{"tags":["harbor","candle"]}`
	first := take(t, s, pool, `{"tags":["harbor"]}`)
	made := rev(1, `{"tags":["harbor"]}`)
	made.Version = 1
	first.Commit(Ack{Stored: made, Sent: made.Source, Created: true})
	b := take(t, s, pool, sent)
	want(t, b, KindView, 1)
	merged := rev(3, `{"tags":["harbor","candle"],"note":"by another"}`)
	merged.Version = 3
	b.Commit(Ack{Stored: merged, Sent: []byte(sent), StoredDiffers: true})
	for range 2 {
		s.index(ref.Index, pool.Credentials(), s.clock()).WroteOwn(pool, s.clock())
	}
	if b = take(t, s, pool, `{"tags":["harbor","candle","maple"]}`); string(b.View) != sent || !b.StoredDiffers {
		t.Errorf("%+v with the view %s", b, b.View)
	}
}
