package zoo

import "math/rand/v2"

// A domain keeps the random numbers of one purpose apart from those of another
// that has the same seed.
type domain uint64

const (
	domainOrder domain = iota + 1
	domainShard
	domainInit
	domainLabel
	domainGlyph
	domainHeldOut
	domainQuarter
)

// seedFor is the seed of one purpose.
func seedFor(seed uint64, d domain) uint64 { return mix(seed + mix(uint64(d))) }

// newRand is a generator that depends on its arguments and on nothing else.
func newRand(seed uint64, d domain, k uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seedFor(seed, d), mix(k)))
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014): seeds that
// differ in one bit become generators that have nothing in common.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// identity is 0, 1, … n-1.
func identity(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

func shuffle(rng *rand.Rand, order []int32) {
	for i := len(order) - 1; i > 0; i-- {
		j := rng.IntN(i + 1)
		order[i], order[j] = order[j], order[i]
	}
}
