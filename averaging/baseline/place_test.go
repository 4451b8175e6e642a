package baseline

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Every place that there can be survives its word, the largest too.
func TestPlacesFitInWords(t *testing.T) {
	const last = markLimit - 1
	check := func(t interface{ Errorf(string, ...any) }, p place) {
		w := p.word(1)
		if got, ok := placeOf(w); !ok || got != p {
			t.Errorf("%+v is told as %+v, ok %t", p, got, ok)
		}
		if w.Value != math.Trunc(w.Value) || w.Value >= 1<<53 {
			t.Errorf("%+v: a value of %g", p, w.Value)
		}
	}
	check(t, place{rank: topology.MaxMembers - 1, size: topology.MaxMembers, lanes: MaxParts, next: last, previous: last})
	check(t, place{rank: 0, size: 1, lanes: 1})
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(1, topology.MaxMembers).Draw(r, "size")
		check(r, place{
			rank: rapid.IntRange(0, size-1).Draw(r, "rank"), size: size, lanes: rapid.IntRange(1, MaxParts).Draw(r, "lanes"),
			next: rapid.Uint64Range(0, last).Draw(r, "next"), previous: rapid.Uint64Range(0, last).Draw(r, "previous"),
		})
	})
}

// A word of anybody's making is a place that there is, or none.
func TestPlacesThatCannotBe(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := averaging.Word{View: rapid.Uint64().Draw(r, "view"), Value: rapid.Float64().Draw(r, "value")}
		if rapid.Bool().Draw(r, "whole") {
			w.Value = float64(rapid.Uint64().Draw(r, "bits"))
		}
		p, ok := placeOf(w)
		if ok && (p.rank < 0 || p.rank >= p.size || p.size > topology.MaxMembers || p.lanes < 1 || p.lanes > MaxParts || p.next >= markLimit || p.previous >= markLimit) {
			r.Errorf("%+v is the place %+v", w, p)
		}
	})
	for _, value := range []float64{0, -1, math.NaN(), math.Inf(1), 1 << 53, 3<<rankBits | 3, 1} {
		if p, ok := placeOf(averaging.Word{Value: value}); ok {
			t.Errorf("%g is the place %+v", value, p)
		}
	}
}

// Only the one before it in the ring hands a member parts of the sum.
func TestRingTakesFromThePreviousOnly(t *testing.T) {
	m, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1})
	d.told("b", standing{leader: "b"}.word(77))
	const attempt = 256
	at, _, _ := placeIn([]topology.PeerID{"b", "c", "a"}, 2, 1)
	d.told("b", at.word(attempt))
	part := averaging.Transfer{From: averaging.Sum, Into: averaging.Sum, Part: 2, Parts: 3, Round: attempt}
	for _, from := range []topology.PeerID{"stranger", "b"} {
		if answer := d.inbound(averaging.Offered, from, 9, part); answer.Kind != averaging.Refuse || answer.Reason != averaging.Unfit {
			t.Errorf("what %s hands on is answered by %s", from, answer)
		}
	}
	if answer := d.inbound(averaging.Offered, "c", 9, part); answer.Kind != averaging.Accept {
		t.Errorf("what the previous hands on is answered by %s", answer)
	}
}

// Strangers do not fill the memory of who came too early.
func TestRingRemembersMembersOnly(t *testing.T) {
	m, err := NewAllReduce(Config{Self: "a"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m}
	d.view("a", "b", "c")
	early := averaging.Transfer{From: averaging.Sum, Into: averaging.Sum, Add: true, Parts: 3, Round: 256}
	for _, from := range []topology.PeerID{"s1", "s2", "s3", "s4", "s5"} {
		d.inbound(averaging.Offered, from, 1, early)
	}
	if answer := d.inbound(averaging.Offered, "c", 1, early); answer.Reason != averaging.Round || len(m.early) != 1 {
		t.Errorf("a member is answered by %s, and %v are remembered", answer, m.early)
	}
}
