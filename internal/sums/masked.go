package sums

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// brought is the part of a status that a masked sum needs.
type brought struct {
	Exponent int16
	Nonce    mask.Nonce
	Card     mask.Card
	tells
}

// tells is what a participant at stage Told reveals: its place and its masks.
type tells struct {
	Rank, Size uint32
	Seed       mask.Seed
	Missing    uint32    // 1 + the rank of a participant that does not reveal its seed, or 0
	Piece      mask.Seed // of that participant's seed; zeros if this participant has no piece
}

// readBrought reads that part of a status; it is empty for sums without masks.
func readBrought(w *wire.Sum) (b brought, sound bool) {
	if !Op(w.Op).masked() {
		return b, true
	}
	_, err := binary.Decode(w.Masks, binary.LittleEndian, &b)
	return b, err == nil && b.Exponent >= mask.MinExponent && b.Exponent <= mask.MaxExponent && b.Size <= mask.Most && b.Rank < max(b.Size, 1)
}

// hiding is a participant's part in a masked sum.
type hiding struct {
	masks *mask.Masks // of the current attempt
	point mask.Point
	tells // of the only attempt of this name in which it reveals anything; Size is 0 before
}

// takes tells whether this member may take a place, and if so hides its numbers for it. All participants must be
// different present members, and this member and its partners must have the ranks in the place. There must be as many
// participants as this member requires, and at least three. Every neighbour must have signed its key, and this member
// must not have revealed any seed.
func (h *hiding) takes(p *part, a *attempt, place *wire.Sum) bool {
	list := mask.ListSize(a.size)
	if h.Size > 0 || a.size < max(mask.Least, p.Least) || a.size > mask.Most || len(place.Masks) < list {
		return false
	}
	r, cards := mask.NewRoster(p.Name, place.Attempt, place.Masks[:list]), place.Masks[list:]
	tags, ranks, ids := make(map[string]ID), make(map[ID]int), make([]ID, a.size)
	for _, id := range p.m.members {
		tags[mask.Tag(id)] = id
	}
	for rank := range ids {
		id := tags[string(r.Entry(rank)[:mask.TagSize])]
		ids[rank], ranks[id] = id, rank
	}
	neighbours, secrets := r.Neighbours(a.rank), [][]byte(nil)
	if _, stranger := ranks[""]; stranger || len(ranks) < a.size || r.Exponent() < p.Exponent || r.Exponent() > mask.MaxExponent ||
		ids[a.rank] != p.m.self || !bytes.HasSuffix(r.Entry(a.rank), p.Nonce[:]) || len(cards) != len(neighbours)*len(mask.Card{}) ||
		slices.ContainsFunc(a.ranks, func(rank int) bool { return ids[rank] != a.partner(rank) }) {
		return false
	}
	for i, rank := range neighbours {
		secret := p.m.Keys.Secret(ids[rank], mask.Card(cards[i*len(mask.Card{}):]))
		if secrets = append(secrets, secret); secret == nil {
			return false
		}
	}
	h.masks, h.point = mask.New(r, a.rank, secrets), mask.PointOf(r.Exponent(), a.size)
	a.numbers.words = h.point.Encode(p.Vector)
	h.masks.Hide(a.numbers.words)
	return true
}

// reveal reveals the seed of this member's second mask when its coordinator asks. After that, this member takes no
// other place in a sum of this name: two attempts together could reveal the sum of too few members. If one
// participant does not reveal its seed, this member reveals its piece of that seed, provided that enough others
// reveal theirs.
func (h *hiding) reveal(p *part, w *wire.Sum) {
	if p.stage < Holding || w.Attempt != p.attempt {
		return
	}
	if missing := w.Rank + 1; w.Size > 0 {
		others, another := p.current.size-1, h.Missing > 0 && h.Missing != missing
		if another || int(w.Size) != p.current.size || int(w.Rank) == p.current.rank || others < max(mask.Least, p.Least) {
			return
		}
		h.Missing = missing
		copy(h.Piece[:], h.masks.Piece(int(w.Rank)))
	}
	p.stage, h.Rank, h.Size, h.Seed = Told, uint32(p.current.rank), uint32(p.current.size), h.masks.Seed()
	p.report()
}

// brings returns the masks' part of the status.
func (h *hiding) brings(p *part) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, brought{int16(p.Exponent), p.Nonce, p.m.Keys.Card, h.tells}) // a fixed size never fails
	return b
}

// open subtracts the second masks of all participants from the sum.
func (h *hiding) open(p *part, seeds []byte) ([]float64, error) {
	own, size := h.masks.Seed(), len(mask.Seed{})
	if len(seeds) != size*p.current.size || !bytes.HasPrefix(seeds[size*p.current.rank:], own[:]) {
		return nil, reason(codeOf(ErrOver), p.Name, "the seeds of its masks are not known any more, or are not right")
	}
	if !h.point.Enough(len(p.Vector)) {
		return nil, fmt.Errorf("sum %q: %w: scale the largest of these %d, or sum it apart (numbers have twice the bits in sums of at most %d)",
			p.Name, ErrImprecise, len(p.Vector), mask.MostFine)
	}
	mask.Open(p.current.numbers.words, seeds)
	return h.point.Decode(p.current.numbers.words, len(p.Vector)), nil
}
