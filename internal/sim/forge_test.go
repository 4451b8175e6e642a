package sim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// The lattices' own lies: about ranges, and about which blocks have failed. Frames are
// sealed again, so that only what they say is wrong.

func onlyRanges(h wire.Header) bool { return h.Type == wire.TypeRanges }
func onlyDiffs(h wire.Header) bool  { return h.Type == wire.TypeDiff }

// ranged replaces all ranges that are told.
func ranged(code func(rng *rand.Rand) byte) func(*rand.Rand) sim.Tamper {
	return func(rng *rand.Rand) sim.Tamper {
		return resealed(onlyRanges, func(payload []byte) []byte {
			for i := range payload {
				payload[i] = code(rng)
			}
			return payload
		})
	}
}

// always is a range, whatever is true.
func always(code byte) func(*rand.Rand) byte { return func(*rand.Rand) byte { return code } }

// anyRange is a random one.
func anyRange(rng *rand.Rand) byte { return byte(rng.Uint32()) }

// shorten takes a range away.
func shorten(*rand.Rand) sim.Tamper {
	return resealed(onlyRanges, func(payload []byte) []byte { return payload[:len(payload)-1] })
}

// setForged changes the set of failed blocks in a difference.
func setForged(change func(rng *rand.Rand, set byte) byte) func(*rand.Rand) sim.Tamper {
	return func(rng *rand.Rand) sim.Tamper {
		return resealed(onlyDiffs, func(payload []byte) []byte {
			payload[wire.InfoSize] = change(rng, payload[wire.InfoSize])
			return payload
		})
	}
}

// failing has blocks fail: it spoils the checksum of the first block of a code and of
// each of a code sent again.
func failing(*rand.Rand) sim.Tamper {
	return resealed(func(h wire.Header) bool { return h.Type == wire.TypeCode }, func(payload []byte) []byte {
		const spacing, checksum = 4, 4
		for at := wire.InfoSize + spacing; at < min(len(payload), wire.InfoSize+spacing+1+checksum); at++ {
			payload[at] ^= 0x5a
		}
		return payload
	})
}

// latticeForgeries make at least so many blocks come again.
var latticeForgeries = []struct {
	tampering
	again int
}{
	{tampering{name: "random ranges", tamper: ranged(anyRange)}, 100},
	{tampering{name: "unknown ranges", tamper: ranged(always(0))}, 0},
	{tampering{name: "the largest ranges", tamper: ranged(always(255))}, 100},
	{tampering{name: "the smallest ranges", tamper: ranged(always(1))}, 0},
	{tampering{name: "a range too few", tamper: shorten, expects: []error{coding.ErrSize}}, 0},
	{tampering{name: "blocks that fail", tamper: failing}, 100},
	{tampering{name: "failed blocks kept quiet", tamper: setForged(func(*rand.Rand, byte) byte { return 0 })}, 0},
	{tampering{name: "failed blocks that did not fail", tamper: setForged(func(*rand.Rand, byte) byte { return 3 }), expects: []error{replica.ErrBlocks}}, 0},
	{tampering{name: "failed blocks that are none", tamper: setForged(func(*rand.Rand, byte) byte { return 1 << 7 }), expects: []error{replica.ErrBlocks}}, 0},
	{tampering{name: "any failed blocks", tamper: setForged(func(rng *rand.Rand, _ byte) byte { return byte(rng.IntN(4)) }), expects: []error{replica.ErrBlocks}}, 0},
}

// TestForgedRangesAndSetsLoseNothing has slices of two blocks.
func TestForgedRangesAndSetsLoseNothing(t *testing.T) {
	t.Parallel()
	const sliceLen = coding.BlockLen + 100
	for _, codec := range []string{"lattice6+4", "lattice4+1"} {
		for _, kind := range latticeForgeries {
			t.Run(codec+"/"+kind.name, func(t *testing.T) {
				seen, counts := tampered(t, codec, 3*sliceLen, sliceLen, 2*time.Second, kind.tampering)
				for _, err := range kind.expects {
					if seen[err] == 0 {
						t.Errorf("saw %v, never %v", seen, err)
					}
				}
				if counts.Retransmitted < kind.again {
					t.Errorf("%d blocks came again, want at least %d", counts.Retransmitted, kind.again)
				}
				t.Logf("saw %v; %+v", seen, counts)
			})
		}
	}
}
