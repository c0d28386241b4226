package viewcache

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"optimist/internal/identity"
	"optimist/internal/rank"
)

// A client that makes up credentials has its own habits forgotten, and nobody else's.
func TestNobodyHasTheHabitsOfOthersForgotten(t *testing.T) {
	h := NewHabits()
	learn := func(addr string, credentials uint64) identity.Session {
		c := identity.CredentialsOf(binary.BigEndian.AppendUint64(nil, credentials))
		at := netip.MustParseAddr(addr)
		sess := identity.Inferred(c, at).At(identity.NetworkOf(at))
		h.Learn(sess, "shop", &rank.Choice{Certain: true, Pattern: 7})
		return sess
	}
	quiet := learn("10.0.0.1", 0)
	first := learn("10.9.9.9", 1)
	for n := range uint64(2 * maxHabits) {
		learn("10.9.9.9", n+2)
	}
	if h.Known(quiet, "shop") == nil {
		t.Error("another client's habits are forgotten")
	}
	if h.Known(first, "shop") != nil || h.of.Len() > maxHabits {
		t.Errorf("nothing is forgotten: %d are kept, want %d at most", h.of.Len(), maxHabits)
	}
}

// Each thing that a choice shows is learnt, also by itself.
func TestHabitsAreLearntFromWhatAChoiceShows(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.1")
	sess := identity.Inferred(identity.CredentialsOf([]byte("ada")), at).At(identity.NetworkOf(at))
	for name, c := range map[string]rank.Choice{
		"":          {},
		"a pattern": {Certain: true, Pattern: 7},
		"a part":    {Part: rank.PartRestates},
		"memory":    {Memory: rank.FromMemory},
		"repeats":   {Repeats: 7},
		"named":     {Named: 7},
	} {
		h := NewHabits()
		h.Learn(sess, "shop", &c)
		if known := h.Known(sess, "shop") != nil; known != (name != "") {
			t.Errorf("%q shows something: %v", name, known)
		}
	}
}
