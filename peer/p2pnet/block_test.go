package p2pnet

import (
	"testing"
)

// TestBlockOfAConnection: it is known of those that are connected.
func TestBlockOfAConnection(t *testing.T) {
	a, b := pair(t)
	if got := a.Block(b.Self()); got != "" {
		t.Errorf("of one that is not connected the block is %q", got)
	}
	connectTo(t, a, b)
	if got := a.Block(b.Self()); got != "127.0.0.0/24" {
		t.Errorf("of one on loopback the block is %q", got)
	}
}
