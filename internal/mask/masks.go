package mask

import (
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
	"slices"
)

// Masks are the masks of one participant in one attempt.
type Masks struct {
	rank       int
	neighbours []int
	between    []Seed   // by neighbour: of the mask that the lower rank adds and the higher subtracts
	own        [][]byte // by neighbour: its piece of the seed of this participant's second mask
	theirs     [][]byte // by neighbour: this participant's piece of the seed of the neighbour's second mask
}

// New makes the masks of a rank from the secrets with its neighbours, in their order.
func New(r *Roster, rank int, secrets [][]byte) *Masks {
	m := &Masks{rank: rank, neighbours: r.Neighbours(rank)}
	for i, secret := range secrets {
		key, _ := hkdf.Key(sha256.New, secret, r.digest, "murmuration masks", 3*len(Seed{})) // fails for much longer ones
		low, high := key[16:32], key[32:]
		if m.neighbours[i] < rank {
			low, high = high, low
		}
		m.between, m.own, m.theirs = append(m.between, Seed(key)), append(m.own, low), append(m.theirs, high)
	}
	return m
}

// Hide adds this participant's masks to its numbers.
func (m *Masks) Hide(words []uint64) {
	for i, s := range m.between {
		s.add(words, cmp.Compare(m.neighbours[i], m.rank))
	}
	m.Seed().add(words, 1)
}

// Seed is the seed of this participant's second mask.
func (m *Masks) Seed() Seed { return Join(m.own) }

// Piece is this participant's piece of the seed of a neighbour's second mask; nil for any other rank.
func (m *Masks) Piece(of int) []byte {
	if i := slices.Index(m.neighbours, of); i >= 0 {
		return m.theirs[i]
	}
	return nil
}
