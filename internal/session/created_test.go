package session

import (
	"testing"
)

func TestADocumentIsKnownAsItWasMade(t *testing.T) {
	s, _ := newTest(t)
	for range 3 {
		s.ReadAbsent(pool, ref, s.Epoch())
	}
	first, second := take(t, s, pool, `{"by":"a"}`), take(t, s, pool, `{"by":"b"}`)
	if got := second.Created(); got != nil {
		t.Errorf("%s, and nobody has made one yet", got)
	}
	made := rev(1, `{"by":"a"}`)
	made.Version = 1
	first.Commit(Ack{Stored: made, Sent: made.Source, Created: true})
	if got := second.Created(); string(got) != `{"by":"a"}` {
		t.Errorf("%q, want what the first has made", got)
	}
	third := take(t, s, pool, `{"by":"c"}`)
	newer := rev(2, `{"by":"b"}`)
	newer.Version = 2
	second.Commit(Ack{Stored: newer, Sent: newer.Source})
	if got := third.Created(); third.Kind != KindAbsent || string(got) != `{"by":"a"}` {
		t.Errorf("%v, %q, want what the first has made, though it was written since", third.Kind, got)
	}
	third.Release()
	if got := third.Created(); got != nil {
		t.Errorf("%s, of a base that was given back", got)
	}
}
