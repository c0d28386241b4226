package state

import (
	"math/rand/v2"
	"testing"
)

// TestTokensGrowAndCannotBeTold: the next token is one of many, among fewer the more often a lock is taken, and never far ahead of the clock.
func TestTokensGrowAndCannotBeTold(t *testing.T) {
	const begin = 1_800_000_000_000
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		every int64 // ms between two leases
		among int64 // how many tokens the next one is one of, at least
	}{
		"taken each minute":            {60_000, 1 << 26},
		"taken each second":            {1000, 1 << 20},
		"taken each ms":                {1, 1 << 10},
		"taken all at once":            {0, 1 << 10},
		"taken each day":               {24 * 3600 * 1000, 1 << 27},
		"the clock goes back all time": {-1000, 1 << 10},
	} {
		last, now := int64(0), int64(begin)
		for n := 0; n < 100_000 && now < maxExact/perMs-maxAhead; n++ {
			least, most := Token(last, now, 0), Token(last, now, 0)
			for bit := int64(1); bit < 1<<40; bit <<= 1 {
				most = max(most, Token(last, now, bit-1))
			}
			next := Token(last, now, random.Int64())
			if next <= last || next < least || next >= maxExact {
				t.Fatalf("%s: token %d after %d", name, next, last)
			}
			if most-least+1 < c.among/2 {
				t.Fatalf("%s: lease %d: the next token is one of %d", name, n, most-least+1)
			}
			if c.every > 0 && next > max(last, now*perMs)+maxAhead {
				t.Fatalf("%s: %d is too far ahead of the clock", name, next)
			}
			last, now = next, now+c.every
		}
		if c.every >= 1 && last > now*perMs+maxAhead {
			t.Errorf("%s: tokens are %d ahead of the clock: the lock's document is never removed", name, last-now*perMs)
		}
	}
}

func TestNobodyLearnsFromARefusalWhereTheTokenIs(t *testing.T) {
	var d Doc
	token := on(&d, Global, 2, Op{Do: Acquire, Owner: "o", Rid: "r", Mode: Exclusive, TTL: 1000, Salt: 1 << 20})[0].Token
	for _, do := range []Verb{Renew, Release} {
		for _, guess := range []int64{1, token - 1, token + 1, maxExact - 1} {
			if got := on(&d, Global, 2, Op{Do: do, Owner: "o", Token: guess})[0].Verdict; got != Expired {
				t.Errorf("%s with a token that is %d away: %s", do, guess-token, got)
			}
		}
	}
}
