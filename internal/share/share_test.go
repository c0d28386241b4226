package share

import (
	"net/netip"
	"testing"

	"optimist/internal/identity"
)

// fill has clients take places in turn until none gets another, and returns how many each has.
func fill(total int, clients ...Client) []int {
	own, addr, taken := make([]int, len(clients)), map[identity.Network]int{}, 0
	for more := true; more; {
		more = false
		for i, c := range clients {
			if Fits(total, taken, Counted(c.Network, addr[c.Network]), Counted(c.Network, own[i])) {
				own[i]++
				addr[c.Network]++
				taken++
				more = true
			}
		}
	}
	return own
}

func at(addr string, who uint64) Client { return Of(netip.MustParseAddr(addr), who) }

func TestWhoeverComesLaterFindsAPlace(t *testing.T) {
	attacker := []Client{at("192.0.2.1", 1)}
	for n := range uint64(200) { // credentials that are made up
		attacker = append(attacker, at("192.0.2.1", n+2))
	}
	for _, total := range []int{8, 16, 512, 10_000} {
		for _, n := range []int{1, 2, 200} {
			taken := 0
			for _, n := range fill(total, attacker[:n]...) {
				taken += n
			}
			if free := total - taken; free < total/8 {
				t.Errorf("%d clients of one address leave %d of %d places", n, free, total)
			}
			if taken < total*3/4 {
				t.Errorf("%d clients of one address get %d of %d places only", n, taken, total)
			}
		}
		one := fill(total, attacker[0])[0]
		if !Fits(total, one, one, 0) {
			t.Errorf("a client that has %d of %d places leaves none to others at its address", one, total)
		}
	}
	for total := 1; total < 8; total++ {
		if n := fill(total, attacker[0])[0]; n < 1 || n < total-1 {
			t.Errorf("of %d places, one client gets %d", total, n)
		}
	}
}

func TestClientsOfOneKindHaveAsMuchAsEachOther(t *testing.T) {
	own := fill(512, at("192.0.2.1", 1), at("192.0.2.2", 1), at("192.0.2.3", 1))
	for _, n := range own {
		if n < 512/4 || n > 512/3 {
			t.Errorf("%v", own)
		}
	}
}

// optimist makes requests for all clients: it gets as much as some of them, but never everything.
func TestOptimistItselfIsWorthSomeClients(t *testing.T) {
	client := at("192.0.2.1", 1)
	if Counted(0, 5*optimistIs) != 5 || Counted(client.Network, 5) != 5 {
		t.Error("it isn't worth as many clients")
	}
	for _, total := range []int{8, 16, 512} {
		if got := fill(total, Client{})[0]; got < total*3/4 || !Fits(total, got, 0, 0) {
			t.Errorf("of %d places it gets %d", total, got)
		}
	}
}

func TestNobodyNeedsToCountWhileHalfIsFree(t *testing.T) {
	for total := 1; total < 600; total++ {
		for taken := 0; taken < total && !Crowded(total, taken); taken++ {
			if !Fits(total, taken, taken, taken) {
				t.Fatalf("%d of %d are taken", taken, total)
			}
		}
	}
}

func TestANetworkOfOneCustomerIsOneAddress(t *testing.T) {
	if at("2001:db8:1:2::1", 1) != at("2001:db8:1:2:ffff::7", 1) || at("2001:db8:1:2::1", 1) == at("2001:db8:1:3::1", 1) {
		t.Error("IPv6")
	}
	if at("::ffff:192.0.2.1", 1) != at("192.0.2.1", 1) || at("192.0.2.1", 1) == at("192.0.2.2", 1) {
		t.Error("IPv4")
	}
}

// TestNeedIsTheLeastThatFits compares Need with the rules that it stands for.
func TestNeedIsTheLeastThatFits(t *testing.T) {
	fits := func(free, addr, own int) bool {
		left := share*free - addr
		switch {
		case free <= 0:
			return false
		case addr == 0:
			return true
		case own == 0:
			return left > 0
		}
		return own < share*left && share*(free-1)-addr-1 > 0
	}
	for addr := range 300 {
		for own := range addr + 1 {
			for free := range 100 {
				if got := free >= Need(addr, own); got != fits(free, addr, own) {
					t.Fatalf("%d free, %d at the address, %d of its own: %v", free, addr, own, got)
				}
			}
		}
	}
}
