package intercept

import (
	"testing"
	"time"

	"optimist/internal/identity"
	"optimist/internal/session"
)

func TestAClientIsKnownForAWhile(t *testing.T) {
	k, now, anna := newKnown(), time.Now(), session.Credentials{1}
	k.add(1, anna, now)
	for after, want := range map[time.Duration]bool{0: true, knownFor - 1: true, knownFor: false} {
		if k.has(anna, now.Add(after)) != want {
			t.Errorf("known after %s: %v", after, !want)
		}
	}
	if k.has(session.Credentials{2}, now) {
		t.Error("a client that nobody has asked about")
	}
}

func TestManyClientsOfOneAddressHaveNoneOfAnotherForgotten(t *testing.T) {
	k, now, anna := newKnown(), time.Now(), session.Credentials{1}
	k.add(1, anna, now)
	for i := range 2 * maxKnown {
		k.add(identity.Network(2), session.Credentials{2, byte(i), byte(i >> 8)}, now)
	}
	if !k.has(anna, now) || k.until.Len() > maxKnown {
		t.Errorf("of %d clients, one at another address is forgotten", k.until.Len())
	}
}
