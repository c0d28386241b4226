package identity

import (
	"net/netip"
	"testing"
)

func TestANetworkIsWhatOneCustomerHas(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "::1": "::1", "2001:db8::7": "2001:db8::", "2001:db8:0:1::7": "2001:db8:0:1::",
		"fe80::1%eth0": "fe80::", "64:ff9b::a00:1": "64:ff9b::", "255.255.255.255": "255.255.255.255",
	} {
		n := NetworkOf(netip.MustParseAddr(addr))
		if got := n.Addr().String(); got != want || n == 0 || NetworkOf(n.Addr()) != n {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if NetworkOf(netip.Addr{}) != 0 {
		t.Error("no address is somewhere")
	}
}
