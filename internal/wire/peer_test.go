package wire

import (
	"context"
	"maps"
	"testing"
	"time"
)

// A client that gave up sends its next request at once: whoever then asks must not be told what was true a tenth of a second ago.
func TestPeerThatLeftIsKnownAtOnce(t *testing.T) {
	ours, theirs := pair(t)
	ctx, cancel := context.WithTimeout(WithPeer(t.Context(), ours), time.Hour)
	defer cancel()
	if PeerLeft(ctx) {
		t.Error("it is there")
	}
	if _, err := theirs.Write([]byte("next")); err != nil {
		t.Fatal(err)
	}
	if PeerLeft(ctx) {
		t.Error("it is there, and has sent more")
	}
	_ = theirs.Close()
	for deadline := time.Now().Add(time.Minute); !PeerLeft(ctx); {
		if time.Now().After(deadline) {
			t.Fatal("it has left")
		}
	}
}

func TestPeerOfAContextThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if PeerLeft(ctx) {
		t.Error("nothing is known of it")
	}
	cancel()
	if !PeerLeft(ctx) {
		t.Error("cancelled")
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if PeerLeft(late) {
		t.Error("its time is up, and it waits for its answer")
	}
}

func TestAContextForAPartOfTheWorkSaysNothingOfThePeer(t *testing.T) {
	ours, theirs := pair(t)
	ctx, cancel := context.WithCancel(WithPeer(t.Context(), ours))
	cancel()
	if PeerClosed(ctx) || PeerClosed(t.Context()) {
		t.Error("it is there, or nothing is known of it")
	}
	_ = theirs.Close()
	for deadline := time.Now().Add(time.Minute); !PeerClosed(ctx); {
		if time.Now().After(deadline) {
			t.Fatal("it has left")
		}
	}
}

func BenchmarkPeerLeft(b *testing.B) {
	ours, _ := pair(b)
	ctx := WithPeer(b.Context(), ours)
	b.ReportAllocs()
	for b.Loop() {
		if PeerLeft(ctx) {
			b.Fatal("left")
		}
	}
}

// A bulk has several requests to the engine under way at the same time. One that ends first has no say about the others.
func TestAllWorkOfAClientThatLeftIsEnded(t *testing.T) {
	ours, _ := pair(t)
	ctx := WithPeer(t.Context(), ours)
	ended := map[string]int{}
	hold := func(name string) *Lasting {
		l := Last(ctx)
		l.Hold(func() { ended[name]++ })
		return l
	}
	first, _, third := hold("first"), hold("second"), hold("third")
	if !first.Release() || !third.Release() {
		t.Error("nothing was ended yet")
	}
	third.Hold(func() { ended["third, again"]++ })
	HangUp(ctx)
	late := hold("late")
	if late.Release() || third.Release() {
		t.Error("all is over")
	}
	if want := map[string]int{"second": 1, "third, again": 1, "late": 1}; !maps.Equal(ended, want) {
		t.Errorf("%v ended, want %v", ended, want)
	}
}
