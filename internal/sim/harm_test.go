package sim_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/topology"
)

// conduct is what some peers of a flock do who keep every rule, by its share of the work
// that is done; nil is nothing.
type conduct struct {
	name   string
	labels func(rng *rand.Rand, label uint8) uint8 // that they learn from
	rate   float64                                 // times that of the others
	slower float64                                 // times as long as those of the others, its steps take
	late   bool                                    // it comes when a third of the work is done
	lie    lie                                     // to whom they meet, if far
	far    bool
	when   func(liar int, progress float64) bool // all the time
	harder float64                               // times as costly as others may be
}

var (
	shifted = func(_ *rand.Rand, label uint8) uint8 { return (label + 1) % dataset.Classes }
	swapped = func(_ *rand.Rand, label uint8) uint8 {
		switch label {
		case 1:
			return 7
		case 7:
			return 1
		}
		return label
	}
	noisy = func(rng *rand.Rand, label uint8) uint8 {
		if rng.IntN(5) == 0 {
			return uint8(rng.IntN(dataset.Classes))
		}
		return label
	}
	lateOn = func(_ int, progress float64) bool { return progress > 0.4 }
	inTurn = func(liar int, progress float64) bool { return int(progress*20)%2 == liar%2 }
)

// conducts are those of liars, and harmless those of honest peers that are unlike the others.
var (
	conducts = []conduct{
		{name: "labels shifted by one", labels: shifted},
		{name: "two labels swapped", labels: swapped},
		{name: "labels shifted from two fifths on", labels: shifted, when: lateOn},
		{name: "labels shifted, in turn", labels: shifted, when: inTurn},
		{name: "a push in one direction", far: true, lie: pushing},
		{name: "a push in one direction from two fifths on", far: true, lie: pushing, when: lateOn, harder: 1.6},
		{name: "back to the first weights", far: true, lie: farther},
		{name: "back to the first weights, wavering", far: true, lie: wavering},
		{name: "back, wavering, in turn", far: true, lie: wavering, when: inTurn},
	}
	harmless = []conduct{
		{name: "as all"},
		{name: "a fifth of the labels wrong", labels: noisy},
		{name: "ten times the rate", rate: 10},
		{name: "a hundred times slower", slower: 100},
		{name: "late", late: true},
	}
)

// conducted are pupils of whom some conduct themselves otherwise.
type conducted struct {
	*pupils
	conduct
	others []int
	rng    *rand.Rand
	kept   *[2]int // away: honest partners by honest peers, and the others by them
}

func (c conducted) quarantined(peer, partner int) {
	if !slices.Contains(c.others, peer) {
		c.kept[min(1, 1+slices.Index(c.others, partner))]++
	}
}

func (c conducted) at(peer int) bool {
	return slices.Contains(c.others, peer) && (c.when == nil || c.when(slices.Index(c.others, peer), float64(c.made)/float64(c.due)))
}

func (c conducted) Duration(peer, step, samples int) time.Duration {
	took := c.pupils.Duration(peer, step, samples)
	if slices.Contains(c.others, peer) {
		took *= time.Duration(cmp.Or(c.slower, 1))
	}
	return took
}

func (c conducted) Step(peer, step int, x, delta []float32) {
	if c.at(peer) && c.far {
		clear(delta)
		return
	}
	c.pupils.taint = nil
	if c.at(peer) {
		c.pupils.taint, c.faster = c.conduct.taint(c.rng), c.faster*cmp.Or(c.rate, 1)
		defer func(faster float64) { c.faster = faster }(c.faster / cmp.Or(c.rate, 1))
	}
	c.pupils.Step(peer, step, x, delta)
}

// taint changes the labels of a batch.
func (c conduct) taint(rng *rand.Rand) func(*dataset.Batch) {
	if c.labels == nil {
		return nil
	}
	return func(b *dataset.Batch) {
		for i, label := range b.Labels {
			b.Labels[i] = c.labels(rng, label)
		}
	}
}

// judged is what has become of a flock.
type judged struct {
	mean, worst float64
	others      float64 // accuracy of those that conduct themselves otherwise
	quarantines [2]int  // of honest partners, and of the others
}

// conduct trains a flock in which some conduct themselves otherwise.
func (d *digits) conduct(t *testing.T, b patientFlock, c conduct) judged {
	t.Helper()
	parts, err := dividing(b.dirichlet, b.peers)
	if err != nil {
		t.Fatal(err)
	}
	of := *d
	of.parts = parts
	others := b.lying(t)
	training := of.pupils(t, b.seed, b.epochs)
	training.faster = cmp.Or(b.rate, 1)
	if c.far {
		training.due = training.due * (b.peers - b.liars) / b.peers
	}
	var j judged
	peers := conducted{training, c, others, rand.New(rand.NewPCG(b.seed, 11)), &j.quarantines}
	b.lie = c.lie
	f := d.besiegedFlock(t, b, peers, func(peer int) bool { return !c.far || !peers.at(peer) })
	if c.late {
		f.world.Crash(others[0])
	}
	for away := c.late; !training.over(); f.world.Run(f.world.Now() + pupilStep) {
		if away && 3*training.made > training.due {
			f.renew(plan{}, others[0])
			if err := f.world.Arrive(others[0], f.besieged(t, b, others[0])); err != nil {
				t.Fatal(err)
			}
			away = false
		}
	}
	j.mean, j.worst = d.endure(t, b, f, others)
	for _, i := range others {
		f.replicas[i].Snapshot(f.scratch)
		j.others += d.accuracy(f.scratch) / float64(len(others))
	}
	return j
}

// harmed are flocks, and what those may cost who do harm: points of the mean, and of the worst.
type harmed struct {
	patientFlock
	mean, worst float64
}

// TestWhoDoesHarmMovesOthersLittle has some members keep every rule and do harm: the others
// learn nearly as well as without them.
func TestWhoDoesHarmMovesOthersLittle(t *testing.T) {
	t.Parallel()
	d := loadBesieged(t)
	flocks := []harmed{
		{patientFlock{peers: 4, liars: 1, every: 4}, 1.7, 1.7},
		{patientFlock{peers: 8, liars: 2, every: 4}, 1.3, 1.5},
	}
	kinds, seeds := []conduct{conducts[0], conducts[2], conducts[7]}, []uint64{besiegedSeed}
	if *tables {
		flocks = append(flocks,
			harmed{patientFlock{peers: 4, liars: 1, every: 1, only: topology.Active}, 2, 2},
			harmed{patientFlock{peers: 8, liars: 1, every: 4}, 0.7, 1.5},
			harmed{patientFlock{peers: 16, liars: 3, every: 4}, 2, 2}, // each meets each of them seldom
			harmed{patientFlock{peers: 4, liars: 1, every: 4, codec: "lattice6+4"}, 1.7, 1.7},
		)
		kinds, seeds = conducts, []uint64{besiegedSeed, 1, 2}
	}
	for _, f := range flocks {
		f.epochs = 2
		for _, c := range kinds {
			for _, f.seed = range seeds {
				of, got := d.honestly(t, f.patientFlock), d.conduct(t, f.patientFlock, c)
				t.Logf("%s: %.2f %% (worst %.2f) of %v, kept away: %d times, honest partners %d", f.named(c), got.mean, got.worst, of, got.quarantines[1], got.quarantines[0])
				harder := cmp.Or(c.harder, 1)
				if mean, worst := of.mean-got.mean, of.worst-got.worst; mean > harder*f.mean || worst > harder*f.worst {
					t.Errorf("%s: it costs %.2f points and the worst %.2f, at most %g and %g", f.named(c), mean, worst, harder*f.mean, harder*f.worst)
				}
			}
		}
	}
}

func (b patientFlock) named(c conduct) string {
	return fmt.Sprintf("%d of %d, %s, every %d steps, Dirichlet %g, %s, seed %d", b.liars, b.peers, c.name, b.every, b.dirichlet, cmp.Or(b.codec, "raw"), b.seed)
}

// TestHonestPeersAreNotKeptAway: whose labels are few or noisy, or whose rate is another,
// pulls against the others, and is no liar.
func TestHonestPeersAreNotKeptAway(t *testing.T) {
	t.Parallel()
	d := loadBesieged(t)
	seeds := []uint64{besiegedSeed}
	if *tables {
		seeds = make([]uint64, 25)
		for i := range seeds {
			seeds[i] = uint64(i + 1)
		}
	}
	flocks := []patientFlock{{peers: 4, liars: 1, every: 4, rate: 0.25}, {peers: 8, liars: 1, every: 4, rate: 0.25, dirichlet: 0.1}}
	if *tables {
		flocks = append(flocks, patientFlock{peers: 8, liars: 1, every: 1, rate: 0.25}, patientFlock{peers: 8, liars: 1, every: 4, rate: 0.25, dirichlet: twoClasses})
	}
	for _, b := range flocks {
		b.epochs = 1
		for _, c := range harmless {
			for _, b.seed = range seeds {
				got := d.conduct(t, b, c)
				t.Logf("%s: %.2f %% (worst %.2f), the other %.2f %%", b.named(c), got.mean, got.worst, got.others)
				if got.quarantines != [2]int{} {
					t.Errorf("%s: kept away %v times", b.named(c), got.quarantines)
				}
			}
		}
	}
}
