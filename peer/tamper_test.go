package peer_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// TestFramesTamperedWithOverLoopback: over real sockets, and with both ends training,
// what happens to frames is found, told and costs nothing but time. Pairs wait more than
// they work, so a few run at once, but beside no other test: what takes longer than
// tamperedStall is given up. To leave takes a peer a second, so all leave together.
func TestFramesTamperedWithOverLoopback(t *testing.T) {
	const kindsAtOnce = 5
	var all []*tamperedPair
	for kinds := range slices.Chunk(tamperings, kindsAtOnce) {
		var pairs []*tamperedPair
		for _, kind := range kinds {
			for _, how := range pairings {
				networks, join := onLoopback(t)
				pair := startTampered(t, kind, how, networks, join)
				pair.often = func(string) int64 { return 8 / sparing }
				if kind.harmless {
					pair.often = func(string) int64 { return 3 } // each takes the whole stall bound
				}
				pairs = append(pairs, pair)
			}
		}
		survive(t, pairs)
		all = append(all, pairs...)
	}
	closeAll(all)
	for _, pair := range all {
		t.Run(fmt.Sprintf("%s/%s", pair.kind.name, pair.how.name), pair.check)
	}
}

// TestEveryFrameOfAnExchangeTamperedWith does so to each frame of an exchange in turn,
// in virtual time.
func TestEveryFrameOfAnExchangeTamperedWith(t *testing.T) {
	t.Parallel()
	for _, kind := range tamperings {
		t.Run(kind.name, func(t *testing.T) {
			for _, how := range pairings {
				synctest.Test(t, func(t *testing.T) {
					network := memnet.New(memnet.Config{Link: memnet.Link{Delay: 100 * time.Microsecond}})
					networks := [2]peer.Network{inMemory(t, network, "0", "digits"), inMemory(t, network, "1", "digits")}
					how.lanes = 1 // or nobody knows how many frames a stream has
					pair := startTampered(t, kind, how, networks, "mem:0")
					for _, tamperer := range pair.tamperers {
						tamperer.inTurn = true
					}
					pair.often = func(role string) int64 {
						switch {
						case kind.slices:
							return tamperedSlices
						case role == "active":
							return tamperedSlices + 2 // PROPOSE and ACK
						}
						return tamperedSlices + 1 // ACCEPT
					}
					survive(t, []*tamperedPair{pair})
					closeAll([]*tamperedPair{pair})
					pair.check(t)
				})
			}
		})
	}
}

// check holds what the two report against what has happened, and their models against
// what these should be. Both are closed.
func (c *tamperedPair) check(t *testing.T) {
	t.Helper()
	off, apart := c.drift(), c.apart()
	if !(off <= maxDrift) {
		t.Errorf("the sum of the models is off by %.3g of itself", off)
	}
	if !(apart <= together) {
		t.Errorf("the values are %.3g apart: the two hardly exchanged", apart)
	}
	t.Logf("%s, %s: the sum is off by %.3g", c.kind.name, c.how.name, off)
	for i, s := range c.stats() {
		const few = 10 // what was tampered with took longer than as many steps
		if n := c.after[i].Steps - c.before[i].Steps; n < few {
			t.Errorf("the %s peer took %d steps while frames were tampered with", s.Role, n)
		}
		c.witnesses[i].check(t, c.kind, s)
	}
}
