package follow_test

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/follow"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

var (
	fashion = flag.Bool("fashion", false, "compare the policies on Fashion-MNIST in virtual time; takes minutes")
	course  = flag.String("course", "", "file for the course of both, for gossipnode plot")
	price   = flag.Float64("price", follow.DefaultPrice, "of the cost-aware policy")
	events  = flag.Bool("events", false, "log trainings")
	seeds   = flag.Int("seeds", 8, "pairs of runs of the comparison, over which it is judged in the mean; with fewer than eight it is not judged")
)

const (
	followers = 4
	phase     = 2 * time.Minute // of classes, or of labels
	phases    = 8               // five of two new classes each, then three of changed labels
	fileEvery = 5 * time.Second
	fileRows  = 128
	stepTime  = 50 * time.Millisecond
	examined  = 500
)

// sample is a picture with the label that it has now.
type sample struct {
	at    int
	label uint8
}

// stream is what the world is like: which pictures come, and how they are labelled.
type stream struct {
	train, test *dataset.Set
	of          [dataset.Classes][]int // training pictures by class
}

// classes are those that come in a phase, known those that have come by then, shift how labels have changed.
func (s *stream) classes(at time.Duration) (coming, known, shift int) {
	p := int(at / phase)
	if p < 5 {
		return 2 * p, 2*p + 2, 0
	}
	return 0, dataset.Classes, 3 * (p - 4)
}

// file draws a file of a moment.
func (s *stream) file(at time.Duration, chance *rand.Rand) (rows []sample) {
	from, to, shift := s.classes(at)
	for range fileRows {
		class := from + chance.IntN(to-from)
		rows = append(rows, sample{s.of[class][chance.IntN(len(s.of[class]))], uint8((class + shift) % dataset.Classes)})
	}
	return rows
}

// exam is held-out pictures as they are at a moment.
func (s *stream) exam(at time.Duration) *dataset.Set {
	_, known, shift := s.classes(at)
	var pixels, labels []uint8
	for i := 0; len(labels) < examined; i++ {
		if class := s.test.Label(i); class < known {
			pixels, labels = append(pixels, s.test.Image(i)...), append(labels, uint8((class+shift)%dataset.Classes))
		}
	}
	set, err := dataset.NewSet(pixels, labels, s.test.Shape(), dataset.Classes, s.test.Norm()...)
	if err != nil {
		panic(err)
	}
	return set
}

// pupil is a member's model.
type pupil struct {
	*stream
	peer  *peer.Peer
	model nets.Model
	x     tensor.Vector
	batch dataset.Batch
}

func (p *pupil) set(rows []sample) *dataset.Set {
	pixels, labels := make([]uint8, 0, len(rows)*p.train.Inputs()), make([]uint8, len(rows))
	for i, r := range rows {
		pixels, labels[i] = append(pixels, p.train.Image(r.at)...), r.label
	}
	set, err := dataset.NewSet(pixels, labels, p.train.Shape(), dataset.Classes, p.train.Norm()...)
	if err != nil {
		panic(err)
	}
	return set
}

func (p *pupil) Step(ctx context.Context, rows []sample) error {
	p.set(rows).Fill(&p.batch, 0, len(rows))
	return p.peer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
		time.Sleep(stepTime)
		return peer.Result{Loss: p.model.Gradient(x, &p.batch, grad), Samples: len(rows)}, nil
	})
}

func (p *pupil) Right(rows []sample) []bool {
	_, _ = p.peer.Snapshot(p.x, 0)
	right, likely := make([]bool, len(rows)), p.model.Probabilities(p.x, p.set(rows))
	for i, r := range rows {
		best := likely[i*dataset.Classes : (i+1)*dataset.Classes]
		right[i] = true
		for _, v := range best {
			right[i] = right[i] && v <= best[r.label]
		}
	}
	return right
}

func (p *pupil) Class(row sample) int { return int(row.label) }

// outcome is what became of a policy.
type outcome struct {
	trainings, steps int
	own, true        float64 // accuracy over time, as the members measured it and on the held-out pictures of each moment
}

// followed has four members follow the stream in virtual time.
func followed(t *testing.T, s *stream, policy follow.Policy, seed uint64, line func(seconds float64, step uint64, accuracy float64)) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		model := func() nets.Model {
			m, err := nets.ByName("mlp", s.train.Shape(), dataset.Classes)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		flock := peertest.Start(t, peertest.Config{Peers: followers, Seed: seed, Link: memnet.Link{Delay: 5 * time.Millisecond}, Params: func() *tensor.Params {
			params := tensor.NewParams(model().Layout())
			model().Init(seed, params.Vector())
			return params
		}, Configure: func(_ int, c *peer.Config) {
			c.Training.Schedule = optim.Schedule{Rate: 0.05}
			c.Training.Exchange.Pace.Every = 4
		}})
		ctx, cancel := context.WithTimeout(t.Context(), phases*phase)
		defer cancel()
		began := time.Now()
		var all sync.WaitGroup
		summaries := make([]follow.Summary, followers)
		for i, p := range flock.Peers {
			files := make(chan follow.Arrival[sample], 1000)
			all.Go(func() {
				chance := rand.New(rand.NewPCG(seed, uint64(i)))
				for tick := time.Duration(0); tick < phases*phase; tick += fileEvery {
					time.Sleep(time.Until(began.Add(tick)))
					files <- follow.Arrival[sample]{Name: tick.String(), Rows: s.file(tick, chance)}
				}
			})
			all.Go(func() {
				m := model()
				var err error
				summaries[i], err = follow.Run(ctx, follow.Config[sample]{
					Flock: p, Arrivals: files, Policy: policy, Price: *price, Passes: 2, Seed: seed + uint64(i),
					Told: func(e follow.Event) {
						if i == 0 && *events && e.Training > 0 {
							t.Logf("%s: %+v", time.Since(began), e)
						}
					},
					Learner: &pupil{stream: s, peer: p, model: m, x: make(tensor.Vector, m.Layout().Len())},
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		m := model()
		x, sum, n := make(tensor.Vector, m.Layout().Len()), 0.0, 0
		for at := time.Second; at < phases*phase; at += 2 * time.Second {
			time.Sleep(time.Until(began.Add(at)))
			_, _ = flock.Peers[0].Snapshot(x, 0)
			accuracy, _ := m.Evaluate(x, s.exam(at))
			sum, n = sum+accuracy, n+1
			line(at.Seconds(), flock.Peers[0].Stats().Steps, accuracy)
		}
		all.Wait()
		o = outcome{trainings: summaries[0].Trainings, steps: summaries[0].Steps, true: sum / float64(n)}
		for _, each := range summaries {
			o.own += each.Accuracy / followers
			if d := each.Trainings - o.trainings; d < -1 || d > 1 { // the last may be cut at some
				t.Errorf("members have trained differently: %+v, %+v", each, summaries[0])
			}
		}
	})
	return o
}

// enough is the least number of pairs by which the policies are judged: what one pair says varies by a point.
const enough = 8

// TestFashion: where classes arrive two by two and labels then change, the cost-aware policy trains at most 40 % as often as the
// best-effort one, for at most a point of accuracy over time, in the mean of pairs of runs with one seed each.
func TestFashion(t *testing.T) {
	if !*fashion {
		t.Skip("takes minutes: run with -fashion")
	}
	dir, _ := filepath.Abs("../../../shared/data/fashion-mnist")
	data, err := dataset.Load(t.Context(), dataset.Config{Name: "fashion-mnist", Dir: dir})
	if err != nil {
		t.Skip(err)
	}
	s := &stream{train: data.Train, test: data.HeldOut}
	for i := range data.Train.Len() {
		s.of[data.Train.Label(i)] = append(s.of[data.Train.Label(i)], i)
	}
	var out *json.Encoder
	if *course != "" {
		file, err := os.Create(*course)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		out = json.NewEncoder(file)
	}
	var shares, losses []float64
	for seed := range uint64(*seeds) {
		var of [2]outcome
		for _, policy := range []follow.Policy{follow.BestEffort, follow.CostAware} {
			began := time.Now()
			of[policy] = followed(t, s, policy, seed+1, func(seconds float64, step uint64, accuracy float64) {
				if out != nil && seed == 0 {
					_ = out.Encode(map[string]any{"peer": policy.String(), "seconds": seconds, "step": step, "accuracy": accuracy, "loss": nil, "distance": nil})
				}
			})
			t.Logf("seed %d, %s: %+v, in %s", seed+1, policy, of[policy], time.Since(began).Round(time.Second))
		}
		aware, best := of[follow.CostAware], of[follow.BestEffort]
		shares, losses = append(shares, float64(aware.trainings)/float64(best.trainings)), append(losses, best.true-aware.true)
	}
	trainings, lost := stat.Mean(shares, nil), stat.Mean(losses, nil)
	t.Logf("%.1f %% of the trainings, for %.2f points, with a standard error of %.2f, in the mean of %d pairs",
		100*trainings, 100*lost, 100*stat.StdErr(stat.StdDev(losses, nil), float64(len(losses))), len(losses))
	if len(losses) >= enough && (trainings > 0.4 || !(lost <= 0.01)) {
		t.Error("want 40 % at most, for a point at most")
	}
}
