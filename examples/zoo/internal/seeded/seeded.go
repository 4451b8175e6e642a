// Package seeded makes random numbers that depend only on a seed and a purpose, so that every process of a run draws
// the same ones without communication. No global random source is used.
package seeded

import "math/rand/v2"

// Domain separates the random numbers of one purpose from those of others with the same seed.
type Domain uint64

// The purposes.
const (
	Order Domain = iota + 1
	Shard
	Init
	Label
	Glyph
	HeldOut
	Quarter
	Augment
	Stream
	Folder
)

// For is the seed for one purpose.
func For(seed uint64, d Domain) uint64 { return Mix(seed + Mix(uint64(d))) }

// Rand is a generator that depends only on its arguments.
func Rand(seed uint64, d Domain, k uint64) *rand.Rand {
	return rand.New(rand.NewPCG(For(seed, d), Mix(k)))
}

// Mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014): seeds that differ in one bit give unrelated
// generators.
func Mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Identity is 0, 1, … n-1.
func Identity(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// Shuffle puts order into a random order.
func Shuffle(rng *rand.Rand, order []int32) {
	for i := len(order) - 1; i > 0; i-- {
		j := rng.IntN(i + 1)
		order[i], order[j] = order[j], order[i]
	}
}
