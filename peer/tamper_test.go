package peer_test

import (
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/quant"
)

// offences are the faults for which a partner is kept away.
var offences = []error{
	wire.ErrMagic, wire.ErrVersion, wire.ErrFlags, wire.ErrType, wire.ErrTooLong, wire.ErrChecksum, wire.ErrMessage,
	replica.ErrOrder, replica.ErrWindow, replica.ErrAbsurd, replica.ErrBound, quant.ErrSize, quant.ErrNotFinite,
}

// talkFaults are all faults that an exchange may fail of.
var talkFaults = append([]error{
	wire.ErrTruncated, replica.ErrSettled, errTimeout, io.ErrUnexpectedEOF, network.ErrReset,
}, offences...)

// TestFramesTamperedWithOverLoopback: over real sockets, and with both ends training,
// what happens to frames is found, told and costs nothing but time.
func TestFramesTamperedWithOverLoopback(t *testing.T) {
	for _, how := range []struct {
		name string
		pairing
	}{
		{"learning rate 0", pairing{codec: "raw", lanes: 1, apart: 3}},
		{"learning", pairing{codec: "bf16", lanes: 2, rate: 1. / 64}},
	} {
		t.Run(how.name, func(t *testing.T) {
			for _, kind := range tamperings {
				t.Run(kind.name, func(t *testing.T) {
					t.Parallel()
					wanted := int64(20)
					if kind.slow {
						wanted = 5
					}
					began := time.Now()
					pair := startTampered(t, kind, how.pairing, wanted)
					t1 := time.Since(began)
					pair.trained(pair.ordeal)
					t2 := time.Since(began)
					pair.check(how.pairing)
					t.Log("TIMES", t1, t2, time.Since(began))
				})
			}
		})
	}
}

// ordeal waits until both ends have tampered as often as they should, and then until
// the two have recovered from it.
func (c *tamperedPair) ordeal() {
	var before, after [2]peer.Stats
	for i, p := range c.peers {
		before[i] = p.Stats()
	}
	c.await("tampering", func() bool { return c.tamperers[0].spent() && c.tamperers[1].spent() })
	t0 := time.Now()
	defer func() { c.t.Log("RECOVERY", time.Since(t0)) }()
	for i, p := range c.peers {
		after[i] = p.Stats()
		const few = 20 // each took a millisecond, and what was tampered with longer
		if n := after[i].Steps - before[i].Steps; n < few {
			c.t.Errorf("peer %d took %d steps meanwhile", i, n)
		}
	}
	c.await("recovery", func() bool {
		return c.each(func(i int, s peer.Stats) bool {
			const more = 20
			return s.Quarantined == 0 && s.Exchanges.InDoubt == 0 &&
				s.Steps >= after[i].Steps+more && s.Exchanges.Completed() >= after[i].Exchanges.Completed()+more
		})
	})
}

// check holds what the two report against what has happened, and their models against
// what these should be.
func (c *tamperedPair) check(how pairing) {
	c.t.Helper()
	kind := c.tamperers[0].kind
	off, apart := c.drift()
	if !(off <= 1e-6) {
		c.t.Errorf("the sum of the models is off by %.3g of itself", off)
	}
	if !(apart <= 1) { // that is what the two would have of their own
		c.t.Errorf("the values are %.3g apart: the two hardly exchanged", apart)
	}
	for i, p := range c.peers {
		s, w := p.Stats(), c.witnesses[i]
		expected := kind.active
		if s.Role == "passive" {
			expected = kind.passive
		}
		if !w.saw(expected) {
			c.t.Errorf("the %s peer saw %v, never %v", s.Role, w.seen, expected)
		}
		x := s.Exchanges
		if int(x.Failed) != w.failed || int(x.Quarantines) != w.quarantined || x.Lost > 0 {
			c.t.Errorf("the %s peer counts %d failures, %d quarantines and %d slices lost; it reported %d and %d",
				s.Role, x.Failed, x.Quarantines, x.Lost, w.failed, w.quarantined)
		}
		if kind.slow && w.quarantined > 0 {
			c.t.Errorf("the %s peer takes silence for an offence", s.Role)
		}
		warned := w.logged.FilterField(zap.String("peer", string(w.partner))).FilterFieldKey("remedy").Len()
		if warned < w.quarantined {
			c.t.Errorf("the %s peer logged %d warnings with a remedy, and kept its partner away %d times", s.Role, warned, w.quarantined)
		}
		c.t.Logf("%s: %d steps, %d exchanges, saw %v; %d failed, %d declined, %d refused, %d quarantines, %d settled",
			s.Role, s.Steps, x.Completed(), w.seen, x.Failed, x.Declined, x.Refused, x.Quarantines, x.Settled)
	}
	c.t.Logf("the sum is off by %.3g; the values are %.3g apart", off, apart)
}
