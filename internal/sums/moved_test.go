package sums

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/topology"
)

// heldLength is how many numbers a member of the world moves: not a power of two.
const heldLength = 37

// load makes ready what a member moves.
func (m *member) load(moving *Moving) {
	m.held, m.moving = make([]float64, heldLength), moving
	m.ready(moving, heldLength)
}

// ready brings what a member moves in some steps, the last numbers first, after what others may have added already.
func (m *member) ready(moving *Moving, from int) {
	scaled := from * (moving.a.Length / heldLength)
	for _, c := range moving.Load(scaled) {
		begin, end := c.run(heldLength)
		for i := begin; i < end; i++ {
			m.held[i] += float64(uint64(1) << m.index)
		}
	}
	if moving.Loaded(m.world.now, scaled); from > 0 {
		m.world.after(m.world.upTo(m.world.delay), func() {
			if m.moving == moving && !m.dead {
				m.ready(moving, max(from-heldLength/3, 0))
				m.settle()
			}
		})
	}
}

// holds gives a result of what is moved its numbers.
func (m *member) holds(r *Result) {
	if m.isMoved(r.Name) && r.Err == nil {
		r.Vector = slices.Clone(m.held)
	}
}

func (m *member) isMoved(sum string) bool { return sum[len(sum)-1] == '4' }

// movedOf is by which shape so many members move a sum.
func movedOf(members int) Op { return Moved.Over(topology.Shape(members % 3)) }

// run is where a chunk begins and ends.
func (p Chunk) run(length int) (from, to int) {
	return length * p.Part / p.Parts, length * (p.Part + 1) / p.Parts
}

// move carries a chunk: an offer, the numbers once it is accepted, and word that they are there.
func (w *world) move(from, to *member, p Chunk) {
	attempt := from.moving
	lost := func() bool { return from.dead || to.dead || from.moving != attempt }
	begin, end := p.run(heldLength)
	w.sent += uint64(4 * (end - begin))
	var offer func()
	offer = func() {
		if lost() {
			return
		}
		taking := to.moving
		switch {
		case taking == nil || taking.Attempt != attempt.Attempt:
			w.after(20*time.Millisecond, offer)
			return
		case !taking.Accept(w.now, from.self, p):
			w.after(w.upTo(w.delay), func() { from.Broken(w.now, to.self); from.settle() })
			return
		}
		numbers := slices.Clone(from.held[begin:end])
		w.after(w.upTo(w.delay), func() {
			if lost() || to.moving != taking {
				return
			}
			for i, v := range numbers {
				if p.Add {
					v += to.held[begin+i]
				}
				to.held[begin+i] = v
			}
			taking.Took(w.now, from.self, p)
			to.settle()
			w.after(w.upTo(w.delay), func() {
				if !lost() {
					attempt.Gave(w.now, to.self, p)
					from.settle()
				}
			})
		})
	}
	w.after(w.upTo(w.delay), offer)
}

// TestWhatIsMoved shows that a sum of what members move themselves is the same at all, whatever their number, and
// how much each sends.
func TestWhatIsMoved(t *testing.T) {
	for n := 1; n <= 40; n++ {
		op := movedOf(n)
		w := newWorld(t, uint64(n), n)
		for _, m := range w.members {
			m.Pace = inThirds(heldLength << (n % 20))
			m.calls = []Call{{Name: "sum 4", Op: op, Length: heldLength << (n % 20), Least: n, Timeout: time.Minute, Value: float64(n - m.index)}}
			w.after(w.upTo(time.Second), m.next)
		}
		w.run(time.Minute)
		for _, m := range w.members {
			if len(m.results) != 1 || m.results[0].Err != nil {
				t.Fatalf("%d members: %s has %+v", n, m.self, m.results)
			}
			r := m.results[0]
			if r.Peers != n || r.Value != 1 || slices.ContainsFunc(r.Vector, func(v float64) bool { return uint64(v) != 1<<n-1 }) {
				t.Errorf("%d members: %s has %+v", n, m.self, r)
			}
		}
		if most := uint64(2 * 4 * heldLength * max(n-1, 0)); w.sent > most+most/8 {
			t.Errorf("%d members sent %d bytes, want about %d", n, w.sent, most)
		}
	}
}

// TestChunksOfAStripe shows that the chunks of all stripes are the numbers of each step, each once.
func TestChunksOfAStripe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 200).Draw(t, "members")
		op, stripes := movedOf(n), drawStripes(t)
		call := &Call{Op: op, Length: 1 << 20}
		a := &attempt{Call: call, rank: rapid.IntRange(0, n-1).Draw(t, "rank"), size: n}
		all := newStrands(a, stripes)
		if all == nil {
			t.Fatalf("%b are no stripes", stripes)
		}
		next := call.Length
		for _, s := range all {
			begin, end := Chunk{Part: s.at, Parts: s.of}.run(call.Length)
			if end != next {
				t.Fatalf("stripe %d of %d ends at %d, want %d", s.at, s.of, end, next)
			}
			next = begin
			for _, h := range s.hands {
				c, all := s.chunk(a, h), grains(op, n)
				from, to := c.run(call.Length)
				if from != begin+h.from*(end-begin)/all || to != begin+h.to*(end-begin)/all {
					t.Fatalf("step %+v of stripe %d of %d is %+v", h, s.at, s.of, c)
				}
			}
		}
		if next != 0 {
			t.Fatalf("the stripes begin at %d", next)
		}
	})
}

// inThirds is the pace at which ready makes numbers ready.
func inThirds(length int) Pace {
	at := func(third int) Ready {
		return Ready{From: length * third / 3, At: time.Duration(3-third) * time.Second}
	}
	return Pace{Length: length, Ready: []Ready{at(2), at(1), at(0)}, Sending: time.Second, Round: time.Millisecond}
}

// drawStripes draws stripes by halving some of them.
func drawStripes(t *rapid.T) (s Stripes) {
	var divide func(begin, end int)
	divide = func(begin, end int) {
		if end-begin == 1 || !rapid.Bool().Draw(t, "halved") {
			s |= 1 << begin
			return
		}
		divide(begin, (begin+end)/2)
		divide((begin+end)/2, end)
	}
	divide(0, mostStripes)
	return s
}

// TestNoStripes shows that a coordinator cannot give stripes that are none.
func TestNoStripes(t *testing.T) {
	for _, s := range []Stripes{0, 2, 1 << 63, 1 | 1<<1, 1 | 1<<16, 1 | 1<<32 | 1<<47} {
		if list := s.list(); list != nil {
			t.Errorf("%b: %v", s, list)
		}
	}
	if n := len(Stripes(1<<mostStripes - 1).list()); n != mostStripes {
		t.Errorf("%d stripes of one 64th, want %d", n, mostStripes)
	}
}

// TestStripesFollowReadiness shows how a coordinator divides a sum whose last three quarters are ready first.
func TestStripesFollowReadiness(t *testing.T) {
	const length = 64_000
	ready := []Ready{{From: 15_000, At: 40 * time.Millisecond}, {From: 1_000, At: 90 * time.Millisecond}, {From: 0, At: 100 * time.Millisecond}}
	for _, c := range []struct {
		pace Pace
		want []stripe
	}{
		{Pace{}, []stripe{{0, 1}}},
		{Pace{Length: length, Ready: ready, Sending: 100 * time.Millisecond, Round: time.Millisecond}, []stripe{{1, 2}, {1, 4}, {15, 64}, {14, 64}, {6, 32}, {2, 16}, {1, 16}, {1, 32}, {1, 64}, {0, 64}}},
		{Pace{Length: length, Ready: ready, Sending: 100 * time.Millisecond, Round: 20 * time.Millisecond}, []stripe{{1, 2}, {1, 4}, {0, 4}}},
		{Pace{Length: length, Ready: ready, Sending: 5 * time.Millisecond, Round: 20 * time.Millisecond}, []stripe{{0, 1}}},
		{Pace{Length: 1, Ready: ready, Sending: 100 * time.Millisecond}, []stripe{{0, 1}}},
	} {
		if got := c.pace.stripes(Moved, length, 4).list(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.pace, got, c.want)
		}
	}
}

// TestStripesOfLongSums: also where an int has 32 bits, a stripe of the longest sum begins where it does.
func TestStripesOfLongSums(t *testing.T) {
	for at := range 64 {
		s := stripe{at: at, of: 64}
		if begin := MaxLength / 64 * at; !s.begins(MaxLength, begin) || s.begins(MaxLength, begin+1) || !s.begins(MaxLength, 0) {
			t.Errorf("the stripe at %d of 64 does not begin at %d", at, begin)
		}
	}
}
