package wire

import (
	"context"
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
	for deadline := time.Now().Add(10 * time.Second); !PeerLeft(ctx); {
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
	for deadline := time.Now().Add(10 * time.Second); !PeerClosed(ctx); {
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
