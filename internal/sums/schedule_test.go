package sums

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// flock is participants of one attempt, and the shares that are on their way between each two.
type flock struct {
	t      rapid.TB
	rand   *rand.Rand
	ids    []ID
	each   []*attempt
	ways   [][2]int // that something is on
	queues map[[2]int][]wire.Share
	sent   []int
}

// attemptOf runs one attempt at what each brings, whose shares arrive in a random order, but in order between two.
func attemptOf(t rapid.TB, seed uint64, calls []Call) *flock {
	n := len(calls)
	f := &flock{t: t, rand: rand.New(rand.NewPCG(seed, 2)), queues: make(map[[2]int][]wire.Share), sent: make([]int, n)}
	for i := range n {
		f.ids = append(f.ids, ID(fmt.Sprintf("m%04d", i)))
	}
	for rank := range calls {
		place := wire.Sum{Attempt: 7, Rank: uint32(rank), Size: uint32(n), Partners: named(f.ids, partners(schedule(calls[rank].Op, rank, n, 0))...)}
		f.each = append(f.each, newAttempt(&calls[rank], &place, func(o Outcome) { f.send(rank, o.To, *o.Share) }))
	}
	for _, a := range f.each {
		a.begin()
	}
	for len(f.ways) > 0 {
		f.deliver(f.rand.IntN(len(f.ways)))
	}
	for rank, a := range f.each {
		if !a.complete() || a.progress() != uint32(len(a.takes))*progressStep {
			t.Fatalf("of %d, %d has taken %d steps of %d, and tells %d", n, rank, a.taken, len(a.takes), a.progress())
		}
	}
	return f
}

func (f *flock) send(from int, to ID, s wire.Share) {
	payload := s.Append(nil)
	f.sent[from] += len(s.Data) + wire.NumberSize*len(s.Values)
	way := [2]int{from, slices.Index(f.ids, to)}
	var decoded wire.Share
	if err := decoded.Decode(payload); err != nil {
		f.t.Fatal(err)
	}
	if len(f.queues[way]) == 0 {
		f.ways = append(f.ways, way)
	}
	f.queues[way] = append(f.queues[way], decoded)
}

func (f *flock) deliver(i int) {
	way := f.ways[i]
	s := f.queues[way][0]
	if f.queues[way] = f.queues[way][1:]; len(f.queues[way]) == 0 {
		f.ways = slices.Delete(f.ways, i, i+1)
	}
	before := f.each[way[1]].progress()
	if !f.each[way[1]].take(f.ids[way[0]], &s) {
		f.t.Fatalf("of %d, %d does not take step %d of %d", len(f.each), way[1], s.Step, way[0])
	}
	if f.each[way[1]].progress() < before {
		f.t.Fatal("progress goes back")
	}
}

// TestAScheduleSums shows that all get the same bytes, the plain sum, for every number of participants,
// and in an order of additions that does not follow from who is faster; and what each sends.
func TestAScheduleSums(t *testing.T) {
	for n := 1; n <= 70; n++ {
		checkSums(t, uint64(n), n, n%7*5, Add)
		checkSums(t, uint64(n), n, 4*n+1, Max)
		checkSums(t, uint64(n), n, n%7*5, Add.Over(topology.Ring))
	}
	checkSums(t, 1, 1000, 8, Add)
	checkSums(t, 1, 300, 500, Add.Over(topology.Ring))
	rapid.Check(t, func(t *rapid.T) {
		n, length := rapid.IntRange(1, 70).Draw(t, "participants"), rapid.IntRange(0, 500).Draw(t, "length")
		if n < 9 && rapid.Bool().Draw(t, "many") {
			length += 3 * mostNumbers
		}
		checkSums(t, rapid.Uint64().Draw(t, "seed"), n, length, rapid.SampledFrom([]Op{Add, Max, Add.Over(topology.Ring)}).Draw(t, "operation"))
	})
}

func checkSums(t rapid.TB, seed uint64, n, length int, op Op) {
	calls, want := make([]Call, n), make([]float64, length)
	random := rand.New(rand.NewPCG(seed, 1))
	for rank := range calls {
		calls[rank] = Call{Name: "x", Op: op, Vector: make([]float64, length)}
		for i := range length {
			v := float64(random.IntN(1 << 20)) // so that sums are exact
			if calls[rank].Vector[i] = v; op != Max {
				v += want[i]
			}
			want[i] = max(want[i], v)
		}
	}
	f := attemptOf(t, seed, calls)
	together := 0
	for rank, a := range f.each {
		if !slices.Equal(a.numbers.values, want) {
			t.Fatalf("of %d, %d has %v, want %v", n, rank, a.numbers.values, want)
		}
		if f.sent[rank] > int(moves(uint64(length)))+wire.NumberSize*len(a.hands) { // halves are not all equal
			t.Errorf("of %d, %d sends %d bytes of %d numbers", n, rank, f.sent[rank], length)
		}
		together += f.sent[rank]
	}
	if together != 2*(n-1)*wire.NumberSize*length {
		t.Errorf("%d send %d bytes of %d numbers", n, together, length)
	}
	for i := range calls {
		for k := range calls[i].Vector {
			calls[i].Vector[k] = random.NormFloat64()
		}
	}
	first, second := attemptOf(t, seed, calls), attemptOf(t, seed+1, calls)
	for rank := range calls {
		if !slices.Equal(first.each[0].numbers.values, second.each[rank].numbers.values) || !slices.Equal(first.each[0].numbers.values, first.each[rank].numbers.values) {
			t.Fatalf("of %d, the sum of %d is another, or follows from who is faster", n, rank)
		}
	}
}

// TestAScheduleGathers shows that all get all blocks in the order of the ranks, for every number of
// participants, and that together each is sent once to each.
func TestAScheduleGathers(t *testing.T) {
	for n := 1; n <= 70; n++ {
		calls, bytes := make([]Call, n), 0
		for rank := range calls {
			size := (rank * 7) % 11
			if n < 10 && rank == n/2 {
				size = 3*wire.MaxShare + 1
			}
			calls[rank] = Call{Name: "x", Op: Gather, Data: slices.Repeat([]byte{byte(rank)}, size)}
			bytes += size
		}
		f := attemptOf(t, uint64(n), calls)
		together := 0
		for rank, a := range f.each {
			for i, c := range calls {
				if !slices.Equal(a.blocks.each[i], c.Data) {
					t.Fatalf("of %d, %d has %v of %d, want %v", n, rank, a.blocks.each[i], i, c.Data)
				}
			}
			together += f.sent[rank]
		}
		if together != (n-1)*bytes {
			t.Errorf("%d send %d bytes, want %d", n, together, (n-1)*bytes)
		}
	}
}

// TestWhoHearsNumbersAsTheyAre shows that of three and more nobody is handed more than a half of what one
// brings, before others are added to it, nor stands as a partner in two rounds of halving; and round a ring an n-th.
// Over a tree, where one above is handed all, numbers without masks are not summed.
func TestWhoHearsNumbersAsTheyAre(t *testing.T) {
	if over := Add.Over(topology.Tree); over != Add {
		t.Errorf("numbers without masks have a %s", over)
	}
	for n := 3; n <= 200; n++ {
		for rank := range n {
			ring, _ := schedule(Add.Over(topology.Ring), rank, n, 1000)
			for i, h := range ring {
				if numbers := h.to - h.from; h.after == 0 && numbers > 1000/n+1 || h.after == 0 && i > 0 {
					t.Fatalf("of %d round a ring, %d hands %d of 1000 numbers, %+v", n, rank, numbers, h)
				}
			}
			hands, takes := schedule(Add, rank, n, 1000)
			heard := make(map[int]int)
			twice := make(map[int]int)
			for _, h := range hands {
				if h.after == 0 {
					heard[h.peer] += h.to - h.from
				}
			}
			for _, s := range takes {
				if s.adds {
					twice[s.peer]++
				}
			}
			for peer := range n {
				if heard[peer] > 500 || twice[peer] > 1 {
					t.Fatalf("of %d, %d hears %d of 1000 numbers of %d, and hands it %d halves", n, peer, heard[peer], rank, twice[peer])
				}
			}
			if len(partners(schedule(Add, rank, n, 0))) > wire.MaxSumPartners || len(partners(schedule(Gather, rank, n, 0))) > wire.MaxSumPartners {
				t.Fatalf("of %d, %d has too many partners", n, rank)
			}
		}
	}
}

// The steps that are counted are those of the schedule.
func TestStepsAreCounted(t *testing.T) {
	for _, op := range []Op{Add, Gather, Moved, Masked.Over(topology.Ring)} {
		for size := 1; size <= 130; size++ {
			if _, takes := schedule(op, 0, size, 0); taken(op, size) != len(takes) {
				t.Errorf("%s of %d: %d steps counted, %d taken", op, size, taken(op, size), len(takes))
			}
		}
	}
}
