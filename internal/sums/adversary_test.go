package sums

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// adversary coordinates as m00, has m05 as its accomplice, gives two attempts up once all hold them, each time leaving
// one member out of the next, and has the seeds of the third told.
type adversary struct {
	bare   bool // the honest have no second masks
	totals [][]uint64
	shares map[uint64]bool // that came to it or its accomplice: what is finished comes several times
	told   []mask.Seed
}

const victims = 2

// intrude has the adversary do its work in a world of six, and returns what it sees, and what follows from that.
func intrude(t *testing.T, bare bool, shape uint64) map[string][]uint64 {
	const length = 4096
	w, a := newWorld(t, 7, 6).hides(true).over(shape), &adversary{bare: bare, shares: make(map[uint64]bool)}
	for _, m := range w.members {
		call := Call{Name: "x", Vector: slices.Repeat([]float64{float64(m.index + 1)}, length), Least: 3, Timeout: 10 * time.Second}
		m.calls = []Call{m.hidden(call)}
		w.after(0, m.next)
		m.lie = func(m *member, o Outcome) {
			if bad := o.To == "m00" || o.To == "m05"; o.Share != nil && bad && m.index > 0 && m.index < 5 {
				for _, word := range o.Share.Words {
					a.shares[word] = true
				}
			}
			if m.index == 0 && o.Message != nil && o.Message.Kind == wire.SumReveal && a.voids(w) {
				return
			}
			if s := o.Message; s != nil && s.Kind == wire.SumStatus && Stage(s.Stage) == Told && len(a.told) < 4 {
				if b, _ := readBrought(s); !slices.Contains(a.told, b.Seed) {
					a.told = append(a.told, b.Seed)
				}
			}
			w.carry(m, o)
		}
	}
	w.run(time.Minute)
	if len(a.totals) != victims+1 || len(a.told) < 2 {
		t.Fatalf("%d totals, %d seeds", len(a.totals), len(a.told))
	}
	for i, m := range w.members {
		ended := len(m.results) == 1 && (m.results[0].Err == nil) == (i == 0 || i > victims)
		if !ended || m.results[0].Err == nil && m.results[0].Vector[0] != 1+4+5+6 {
			t.Fatalf("%s has %+v", m.self, m.results)
		}
	}
	seen := map[string][]uint64{"shares": slices.Sorted(maps.Keys(a.shares))}
	for i, total := range a.totals[:victims] {
		seen["a total that is thrown away"] = append(seen["a total that is thrown away"], total...)
		difference := slices.Clone(total)
		for k, v := range a.totals[i+1] {
			difference[k] -= v
		}
		seen["a member, as the difference"] = append(seen["a member, as the difference"], difference...)
		for _, s := range a.told {
			mask.Open(difference, s[:])
			seen["a difference without seeds that are told"] = append(seen["a difference without seeds that are told"], difference...)
		}
	}
	return seen
}

// voids keeps the total of an attempt, less what the accomplices bring and, where they have none, the second masks of
// the honest; and gives the attempt up, unless it is the last.
func (a *adversary) voids(w *world) bool {
	s := w.members[0].open["x"]
	if s == nil || s.lead == nil || s.lead.opens == 0 {
		return true // the other words of an attempt that is given up
	}
	l, total := s.lead, slices.Clone(s.own.current.numbers.words)
	if len(a.totals) > victims {
		return false
	}
	for _, m := range w.members {
		own := m.open["x"]
		if bad := m.index == 0 || m.index == 5; own == nil || own.own == nil || own.own.current == nil || !bad && !a.bare {
			continue
		}
		seed := own.own.hiding.masks.Seed()
		mask.Open(total, seed[:])
		if m.index == 0 || m.index == 5 {
			for i, x := range own.own.point.Encode(own.own.Vector) {
				total[i] -= x
			}
		}
	}
	if a.totals = append(a.totals, total); len(a.totals) > victims {
		return false
	}
	victim := w.members[len(a.totals)].self
	l.opening, s.own.hiding, s.own.stage, s.own.current = opening{}, hiding{}, Waiting, nil // it is not bound by what it has told
	s.own.report()
	l.regroup("the adversary wants another")
	l.blame.out[victim] = ""
	l.m.tell(victim, thrown("x"))
	l.drop(victim)
	return true
}

// oddness is χ² of the bytes of numbers against that all are as frequent, in standard deviations beyond its mean.
func oddness(words []uint64) float64 {
	var counts [256]float64
	for _, w := range words {
		for _, b := range binary.LittleEndian.AppendUint64(nil, w) {
			counts[b]++
		}
	}
	expected, square := float64(8*len(words))/256, 0.0
	for _, n := range counts {
		square += (n - expected) * (n - expected) / expected
	}
	return (square - 255) / math.Sqrt(2*255)
}

// TestAnAdversaryLearnsNothing shows that what one sees that coordinates, has an accomplice and gives attempts up looks
// like chance, also how attempts with a member and without it differ, and that this is due to the second mask. It is so
// by halving, round a ring and over a tree.
func TestAnAdversaryLearnsNothing(t *testing.T) {
	for i := range 6 {
		bare, shape := i%2 == 1, topology.Shape(i/2)
		for what, words := range intrude(t, bare, uint64(shape)) {
			odd := oddness(words)
			t.Logf("%s, without second masks: %t: %s, %d numbers: %.1f deviations", shape, bare, what, len(words), odd)
			if telling := bare && what == "a member, as the difference"; telling != (odd > 5) && (telling || !bare) {
				t.Errorf("%s, without second masks: %t: %s: χ² is %.1f deviations beyond its mean", shape, bare, what, odd)
			}
		}
	}
}
