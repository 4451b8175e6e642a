package p2pnet

import (
	"net/netip"
	"testing"
)

// TestBlockIsWhatOneOwnerHas: neighbours share one, however their address is written.
func TestBlockIsWhatOneOwnerHas(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.0/24", "192.0.2.200": "192.0.2.0/24", "::ffff:192.0.2.9": "192.0.2.0/24",
		"2001:db8:1:2::3": "2001:db8:1::/48", "2001:db8:1:ffff::4": "2001:db8:1::/48",
	} {
		if got := blockOf(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s is of block %q, want %q", address, got, want)
		}
	}
	a, b := pair(t)
	if got := a.Block(b.Self()); got != "" {
		t.Errorf("of one that is not connected the block is %q", got)
	}
	connectTo(t, a, b)
	if got := a.Block(b.Self()); got != "127.0.0.0/24" {
		t.Errorf("of one on loopback the block is %q", got)
	}
}
