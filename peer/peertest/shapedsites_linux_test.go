package peertest_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

var shapedSites = flag.Uint64("sites", 0, "race 16 processes at two sites that tell where they are against 16 that do not, with so many seeds; needs root and MNIST, takes two minutes a seed")

// The race of TestShapedSites: peers of an even number are at one site, the others at the other. Steps are long for what they
// compute, so that 16 processes find the time on two processors.
const (
	sitePeers  = 16
	siteStep   = 40 * time.Millisecond
	siteTarget = 0.85
	siteBits   = 20e6 // a second, each way
	siteDelay  = 60 * time.Millisecond
	siteBatch  = 16
	siteHidden = 64
	siteRate   = 0.02
	siteLooks  = 10 // own steps from one look at a model to the next
	siteLimit  = 4 * time.Minute
)

// siteSchedule is constant: how far the run is says nothing.
var siteSchedule = optim.Schedule{Rate: siteRate, Shape: optim.Constant}

// learner is a peer of the race, in virtual time or in a process: it learns its part of MNIST.
type learner struct {
	model   nets.Model
	sampler *dataset.Sampler
	batch   dataset.Batch
	looked  *dataset.Set // pictures to look at its model with
	steps   int
}

func newLearner(data *dataset.Data, seed uint64, number int) (*learner, error) {
	model, err := nets.NewMLP(dataset.Inputs, siteHidden, dataset.Classes)
	if err != nil {
		return nil, err
	}
	sampler, err := dataset.NewSampler(data.Train, siteBatch, 1000*seed+uint64(number))
	return &learner{model: model, sampler: sampler, looked: data.HeldOut.Spread(500)}, err
}

// params are the initial values, the same for all.
func (l *learner) params(seed uint64) *tensor.Params {
	params := tensor.NewParams(l.model.Layout())
	l.model.Init(seed, params.Vector())
	return params
}

// step computes a gradient at x, and now and then the accuracy there; it is negative otherwise.
func (l *learner) step(x, gradient tensor.Vector) (_ peer.Result, accuracy float64, _ error) {
	accuracy = -1
	if l.steps%siteLooks == 0 {
		accuracy, _ = l.model.Evaluate(x, l.looked)
	}
	l.steps++
	if err := l.sampler.Next(&l.batch); err != nil {
		return peer.Result{}, accuracy, err
	}
	return peer.Result{Loss: l.model.Gradient(x, &l.batch, gradient), Samples: siteBatch}, accuracy, nil
}

// siteData says which part of MNIST is a peer's: labels are skewed.
func siteData(t *testing.T, seed uint64, number int) dataset.Config {
	t.Helper()
	dir, err := filepath.Abs("../../../shared/data/mnist")
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		t.Skipf("no MNIST to learn from: %v", err)
	}
	return dataset.Config{Name: "mnist", Dir: dir, Seed: seed, Part: number, Parts: sitePeers, Shard: dataset.Shard{Alpha: 0.3}}
}

// reached is when a flock had the target, in the mean, and what had gone across by then.
type reached struct {
	took   time.Duration
	across int64
	step   time.Duration // of a peer, in the mean
}

func (r reached) String() string {
	return fmt.Sprintf("%.1f s, %.2f MB across, %.1f ms a step", r.took.Seconds(), float64(r.across)/1e6, 1e3*r.step.Seconds())
}

// accuracies are the last that the peers have had, three of each: the mean of all does not leap.
type accuracies [sitePeers][3]float64

func (a *accuracies) add(peer int, accuracy float64) {
	a[peer] = [3]float64{a[peer][1], a[peer][2], accuracy}
}

func (a *accuracies) mean() (mean float64) {
	for _, one := range a {
		mean += (one[0] + one[1] + one[2]) / 3 / sitePeers
	}
	return mean
}

// siteWorld is the race in virtual time, a peertest.Task.
type siteWorld struct {
	seed     uint64
	learners []*learner
	accuracies
}

func (w *siteWorld) Params() *tensor.Params { return w.learners[0].params(w.seed) }

func (w *siteWorld) Gradient(i, _ int, x, gradient tensor.Vector) (peer.Result, error) {
	r, accuracy, err := w.learners[i].step(x, gradient)
	if accuracy >= 0 {
		w.add(i, accuracy)
	}
	return r, err
}

// Evaluate looks at nothing: the peers do, as processes do.
func (w *siteWorld) Evaluate(tensor.Vector, bool) (accuracy, loss float64) { return 0, 0 }

// virtually runs the race in virtual time.
func virtually(t *testing.T, seed uint64, told bool) (r reached) {
	t.Helper()
	all, err := dataset.LoadAll(t.Context(), siteData(t, seed, 0))
	if err != nil {
		t.Fatal(err)
	}
	w := &siteWorld{seed: seed}
	links := peertest.Links{
		Port: 125e6, Link: memnet.Link{Delay: 50 * time.Microsecond},
		Across: memnet.Link{Delay: siteDelay, Bandwidth: siteBits / 8}, Blind: !told,
	}
	for i, data := range all {
		one, err := newLearner(data, seed, i)
		if err != nil {
			t.Fatal(err)
		}
		w.learners, links.Sites = append(w.learners, one), append(links.Sites, i%2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, _ = peertest.Simulate(ctx, peertest.Simulation{
		Peers: sitePeers, Task: w, Schedule: siteSchedule, Work: peer.Work{StepsPerPeer: uint64(siteLimit / siteStep)}, Seed: seed,
		World: peertest.World{Compute: peertest.Compute{Step: siteStep}, Links: links},
		Watch: peertest.Watch{Points: int(siteLimit / siteStep), Evaluate: 1, Point: func(p peertest.Point) {
			if r.took == 0 && w.mean() >= siteTarget {
				r = reached{time.Duration(p.Seconds * 1e9), p.Across, siteStep}
				cancel()
			}
		}},
	})
	return r
}

// really runs the race in processes, eight in each of two network namespaces.
func really(t *testing.T, seed uint64, told bool) reached {
	link := shape(t, siteBits, 2*siteDelay)
	ctx, cancel := context.WithTimeout(t.Context(), siteLimit)
	defer cancel()
	type said struct {
		peer int
		line string
	}
	all := make(chan said, sitePeers)
	var stdin [sitePeers]io.Writer
	begin := func(i int, join string) {
		end := i % 2
		_, address := shapedNames(end)
		site := "-"
		if told {
			site = fmt.Sprint("site", end)
		}
		var lines <-chan string
		lines, stdin[i] = atEnd(ctx, t, end, "TestSitePeer", siteRole+"="+fmt.Sprint(i, " ", seed, " ", address, " ", site, " ", join))
		go func() {
			for line := range lines {
				select {
				case all <- said{i, line}:
				case <-ctx.Done():
				}
			}
		}()
	}
	next := func() said {
		select {
		case one := <-all:
			return one
		case <-ctx.Done():
			return said{}
		}
	}
	begin(0, "")
	join := next().line
	for i := 1; i < sitePeers; i++ {
		begin(i, join)
	}
	for range sitePeers {
		next() // each sees all
	}
	began, before := time.Now(), link.across()
	for _, in := range stdin {
		fmt.Fprintln(in)
	}
	var have accuracies
	looks := 0
	for ; have.mean() < siteTarget && ctx.Err() == nil; looks++ {
		one := next()
		var accuracy float64
		_, _ = fmt.Sscan(one.line, &accuracy)
		have.add(one.peer, accuracy)
	}
	if ctx.Err() != nil {
		t.Errorf("after %s peers have %.3f", siteLimit, have)
	}
	took := time.Since(began)
	return reached{took, link.across() - before, took * sitePeers / time.Duration(max(looks-sitePeers/2, 1)*siteLooks)}
}

// across is what the link has carried both ways.
func (l *shapedLink) across() int64 { return l.moved[0].Load() + l.moved[1].Load() }

// TestShapedSites: what it is worth that peers tell where they are is the same in virtual time and in processes.
func TestShapedSites(t *testing.T) {
	if *shapedSites == 0 {
		t.Skip("left out: takes two minutes a seed as root; see the flag -sites")
	}
	ways := [...]struct {
		name string
		run  func(*testing.T, uint64, bool) reached
	}{{"virtual time", virtually}, {"processes", really}}
	var took, across [len(ways)][2]float64 // blind and told
	for seed := uint64(1); seed <= *shapedSites; seed++ {
		for k, told := range []bool{false, true} {
			for way, w := range ways {
				t.Run(fmt.Sprint(w.name, ", told ", told, ", seed ", seed), func(t *testing.T) {
					r := w.run(t, seed, told)
					t.Log(r)
					took[way][k] += r.took.Seconds()
					across[way][k] += float64(r.across)
				})
			}
		}
	}
	if took[1][1] == 0 {
		t.Skip("no processes at two sites, as each part says")
	}
	gain := func(both [2]float64) float64 { return both[0] / both[1] }
	for way, w := range ways {
		t.Logf("%s: told, %.0f %% are there %.2f times sooner, with %.1f times fewer bytes across", w.name, 100*siteTarget, gain(took[way]), gain(across[way]))
		if !(gain(took[way]) >= 3) || !(gain(across[way]) >= 5) {
			t.Errorf("%s: want 3 times sooner and 5 times fewer", w.name)
		}
	}
	if same := gain(took[1]) / gain(took[0]); !(math.Abs(same-1) <= 1.0/3) {
		t.Errorf("told, processes gain %.2f times what they do in virtual time: want the same within a third", same)
	}
}

const siteRole = "MURMURATION_SITE"

// TestSitePeer is one of the processes of TestShapedSites.
func TestSitePeer(t *testing.T) {
	var number int
	var seed uint64
	var address, site, join string
	if n, _ := fmt.Sscan(os.Getenv(siteRole), &number, &seed, &address, &site, &join); n < 4 {
		t.Skip("a part of TestShapedSites")
	}
	data, err := dataset.Load(t.Context(), siteData(t, seed, number))
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLearner(data, seed, number)
	if err != nil {
		t.Fatal(err)
	}
	config := peer.Config{
		Run: "sites", Params: l.params(seed),
		Network:  peer.Network{Listen: []string{fmt.Sprint(address, ":", 4213+number)}, Reach: peer.Reachable},
		Training: peer.Training{Optimizer: &optim.SGD{Momentum: optim.DefaultMomentum}, Schedule: siteSchedule},
	}
	if site != "-" {
		config.Network.Site = site
	}
	if join != "" {
		config.Join = []string{join}
	}
	p, err := peer.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if join == "" {
		fmt.Println(shapedLine, p.JoinAddresses()[0])
	}
	if err := p.WaitMembers(t.Context(), sitePeers); err != nil {
		t.Fatal(err)
	}
	fmt.Println(shapedLine, "ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	pace := rand.New(rand.NewPCG(seed, uint64(number)))
	for due := time.Now(); t.Context().Err() == nil; {
		due = due.Add(siteStep + time.Duration((pace.Float64()-0.5)/5*float64(siteStep)))
		err := p.Step(t.Context(), func(x, gradient tensor.Vector) (peer.Result, error) {
			r, accuracy, err := l.step(x, gradient)
			if accuracy >= 0 {
				fmt.Println(shapedLine, accuracy)
			}
			time.Sleep(time.Until(due))
			return r, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
