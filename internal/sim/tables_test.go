package sim_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/quant"
)

var tables = flag.Bool("tables", false, "train on MNIST to the end with three seeds, and log the tables of docs/design/013; takes minutes")

// extent is how much of a table is made.
type extent struct {
	seeds  []uint64
	epochs int
	slack  float64 // points that a single short training may be off in addition
}

// extentOf is one short training of each row, unless the flag asks for all.
// What codecs do to learning shows in the first epoch: models in four bits lose six
// points of accuracy by its end.
func extentOf(t *testing.T, epochs int) extent {
	t.Helper()
	switch {
	case *tables:
		return extent{seeds: []uint64{1, 2, 3}, epochs: epochs}
	case testing.Short():
		t.Skip("left out by -short: trains for half a minute")
	}
	return extent{seeds: []uint64{1}, epochs: 1, slack: 0.2}
}

// row is a line of a table: what has come out for each seed.
type row struct {
	name     string
	outcomes []outcome
}

// mean is the mean over the seeds.
func (r row) mean(of func(outcome) float64) float64 {
	sum := 0.0
	for _, o := range r.outcomes {
		sum += of(o)
	}
	return sum / float64(len(r.outcomes))
}

func (r row) accuracy() float64 { return r.mean(func(o outcome) float64 { return o.accuracy }) }

// bytes is those of an exchange, so that one exchange more or less tells nothing.
func (r row) bytes() float64 {
	return r.mean(func(o outcome) float64 { return o.sent / float64(o.exchanges) })
}

// line is the row as the documents have it.
func (r row) line(d *digits) string {
	each := ""
	for _, o := range r.outcomes {
		each += fmt.Sprintf(" %.2f", o.accuracy)
	}
	return fmt.Sprintf("| %s |%s | %.2f | %.2f | %.2f | %.3f | %.3f | %.5f |", r.name, each, r.accuracy(),
		r.mean(outcome.perPeer)/1e6,
		r.mean(func(o outcome) float64 { return o.bits(d.model.Layout().Len()) }),
		r.mean(func(o outcome) float64 { return 100 * float64(o.again) / float64(max(o.blocks, 1)) }),
		r.mean(func(o outcome) float64 { return o.halfway }), r.mean(func(o outcome) float64 { return o.apart }))
}

const columns = "| | accuracy of each seed, % | mean | MB a peer | bits a parameter, there and back | blocks failed, % | consensus distance, halfway | at the end |"

// lessons gives the same lesson to a flock of each seed.
func (d *digits) lessons(t *testing.T, name string, e extent, l lesson) row {
	t.Helper()
	r := row{name: name}
	l.epochs = e.epochs
	for _, l.seed = range e.seeds {
		r.outcomes = append(r.outcomes, d.take(t, l))
	}
	t.Log(r.line(d))
	return r
}

// TestCodecsLearnAlike exchanges after every step.
func TestCodecsLearnAlike(t *testing.T) {
	t.Parallel()
	e, d := extentOf(t, 6), loadDigits(t)
	goals := []struct {
		codec  string
		loss   float64 // points of accuracy, at most
		saving float64 // in bytes, at least
	}{
		{"raw", 0, 1},
		{"int8", 0.2, 3.9},
		{"lattice6+4", 0.2, 5.5},
		{"lattice4+1", 0.5, 11},
	}
	if *tables {
		goals = append(goals, goals[0], goals[0], goals[0])
		goals[4].codec, goals[5].codec, goals[6].codec = "bf16", "fp16", "lattice8+4"
	}
	var raw row
	t.Log(columns)
	for _, goal := range goals {
		r := d.lessons(t, goal.codec, e, lesson{pace: averaging.Pace{Every: 1}, policy: quant.Policy{Codec: goal.codec}})
		if goal.codec == "raw" {
			raw = r
		}
		if lost := raw.accuracy() - r.accuracy(); goal.loss > 0 && lost > goal.loss+e.slack {
			t.Errorf("%s loses %.2f points of raw's accuracy, at most %.2f", goal.codec, lost, goal.loss)
		}
		if saved := raw.bytes() / r.bytes(); saved < goal.saving {
			t.Errorf("%s takes 1/%.2f of raw's bytes, want 1/%.2f", goal.codec, saved, goal.saving)
		}
	}
}

// TestModelsInFourBitsDoNotLearn shows what the lattices are for: the same flock loses
// what it has learned if the models themselves are rounded to four bits.
func TestModelsInFourBitsDoNotLearn(t *testing.T) {
	t.Parallel()
	const least = 5 // points of accuracy lost
	e, d := extentOf(t, 6), loadDigits(t)
	exact, coarse := 0.0, 0.0
	for _, seed := range e.seeds {
		a, b := d.overwrite(t, seed, e.epochs, exactly), d.overwrite(t, seed, e.epochs, absmax(4))
		t.Logf("seed %d: models overwritten by the mean: %.2f %%; of models in 4 bits: %.2f %%", seed, a, b)
		exact, coarse = exact+a/float64(len(e.seeds)), coarse+b/float64(len(e.seeds))
	}
	if exact-coarse < least {
		t.Errorf("models in four bits lose %.2f points, want at least %d", exact-coarse, least)
	}
}

// TestFlockLearnsLikeAllReduce exchanges seldom and with few bits.
func TestFlockLearnsLikeAllReduce(t *testing.T) {
	t.Parallel()
	const fewer = 150 // times as few bytes
	most := 0.5       // points of accuracy lost
	if !*tables {
		most = 1 // two epochs are short: models hardly agree before the rate has fallen
	}
	e, d := extentOf(t, 12), loadDigits(t)
	e.epochs = max(e.epochs, 2)
	accuracy, sent := 0.0, 0.0
	ring := d.allReduceByFormula // TestAllReduceIsGradientDescent shows that it is the same, and takes longer
	if *tables {
		ring = d.allReduce
	}
	for _, seed := range e.seeds {
		a, bytes := ring(t, seed, e.epochs)
		t.Logf("seed %d: ring AllReduce %.2f %%, %.1f MB a peer", seed, a, bytes/1e6)
		accuracy, sent = accuracy+a/float64(len(e.seeds)), bytes
	}
	t.Log(columns)
	codecs := []string{"lattice6+4"}
	if *tables {
		codecs = append(codecs, "raw", "lattice4+1")
	}
	for i, codec := range codecs {
		r := d.lessons(t, codec, e, lesson{pace: averaging.Pace{Every: 16}, policy: quant.Policy{Codec: codec}})
		lost, saved := accuracy-r.accuracy(), sent/r.mean(outcome.perPeer)
		t.Logf("%s: %.2f points less than AllReduce, at 1/%.0f of the bytes", codec, lost, saved)
		if i == 0 && (lost > most || saved < fewer) {
			t.Errorf("%s loses %.2f points, at most %.1f, at 1/%.0f of the bytes, want 1/%d", codec, lost, most, saved, fewer)
		}
	}
}
