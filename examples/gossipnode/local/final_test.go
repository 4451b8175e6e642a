package local

import (
	"cmp"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

var merges = flag.Bool("merges", false, "have TestFinalMerge merge among eight processes too, with a death at several moments; takes a minute or two")

// executioner starts peers, and kills one of them once it says how far the run is.
func executioner(start launcher, victim int, at float64) launcher {
	return func(number int, s settings.Settings, events chan<- supervise.Event) (*supervise.Member, error) {
		if number != victim {
			return start(number, s, events)
		}
		own := make(chan supervise.Event)
		m, err := start(number, s, own)
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				next := <-own
				if r := next.Report; r != nil && r.Status != nil && r.Status.Progress >= at {
					m.Kill()
				}
				events <- next
				if next.End != nil {
					return
				}
			}
		}()
		return m, nil
	}
}

// mergeAmong trains with processes, kills one if at is above 0, and returns the result.
func mergeAmong(t *testing.T, peers, victim int, at float64, flags ...string) result.Result {
	t.Helper()
	args := append([]string{"--final", "merge", "--model", "softmax", "--steps", "400", "--batch", "16", "--every", "8", "--codec", "lattice8+4"}, flags...)
	var s settings.Settings
	set := pflag.NewFlagSet("local", pflag.ContinueOnError)
	s.Register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := adapt(&s, peers, 0, cli.Origins{}); err != nil {
		t.Fatal(err)
	}
	var logs clitest.Buffer
	began := time.Now()
	total, err := newFlock(s, peers, 0, executioner(processes(peers), victim, cmp.Or(at, 2)), &logs, "").run(t.Context(), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &logs)
	}
	t.Logf("%d peers, one killed at %g: %d lost, %d finished, %s, %v, %.1f s\n%s", peers, at, total.PeersLost, len(total.Hashes), total.Final, total.ModelHash, time.Since(began).Seconds(), &logs)
	if total.Final != settings.FinalMerge || total.ModelHash == "" {
		t.Errorf("the models after the merge: %+v", total.FinalResult)
	}
	if len(total.Hashes) != peers-total.PeersLost || at == 0 && total.PeersLost > 0 {
		t.Errorf("%d peers have finished, %d are lost", len(total.Hashes), total.PeersLost)
	}
	if accuracy := total.TestAccuracy; accuracy.Min != accuracy.Max || accuracy.Mean < 0.5 {
		t.Errorf("accuracy %+v", accuracy)
	}
	if d := total.ConsensusDistance; d != 0 || total.ConsensusPeers != len(total.Hashes) {
		t.Errorf("models of one hash are %v apart, over %d peers", d, total.ConsensusPeers)
	}
	if summary := total.String(); !strings.Contains(summary, total.ModelHash) {
		t.Errorf("the hash is not in\n%s", summary)
	}
	return total
}

// TestFinalMerge: all processes end with the same bytes, whoever is killed just before.
func TestFinalMerge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: trains with processes")
	}
	sizes, moments := []int{4, 5}, []float64{0.97}
	if *merges {
		sizes, moments = []int{4, 5, 8}, []float64{0, 0.9, 0.97, 1}
	}
	for _, n := range sizes {
		for i, at := range moments {
			t.Run(fmt.Sprintf("%d/%g", n, at), func(t *testing.T) {
				t.Parallel()
				mergeAmong(t, n, (n+i)%n, at)
			})
		}
	}
}

// TestFinalMergeBySamples weighs models by their pictures; nobody is killed.
func TestFinalMergeBySamples(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: trains with processes")
	}
	dir := t.TempDir()
	total := mergeAmong(t, 4, 0, 0, "--final-weights", "samples", "--shard", "dirichlet=1", "--checkpoint", dir)
	model, err := nets.ByName("softmax", dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // the last checkpoints are of the same model
		c := checkpoint.Folder{Dir: filepath.Join(dir, fmt.Sprintf("peer-%d", i)), Run: settings.DefaultRun, Dataset: "glyphs", Model: "softmax"}
		params := tensor.NewParams(model.Layout())
		if taken, _, err := c.Load(params); err != nil || taken == nil {
			t.Fatalf("peer %d: no checkpoint: %v", i, err)
		}
		if hash := result.Hash(params); hash != total.ModelHash {
			t.Errorf("peer %d: the last checkpoint is of %s, the result %s", i, hash, total.ModelHash)
		}
	}
}
