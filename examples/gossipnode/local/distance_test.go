package local

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

var distances = flag.Bool("distances", false, "have TestClosingDistance look at twenty runs of several kinds; takes some minutes")

// lastModels are the models of the last checkpoints of a local run.
func lastModels(t *testing.T, dir, name string, peers int) (models []tensor.Vector) {
	t.Helper()
	model, err := nets.ByName(name, dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range peers {
		c := checkpoint.Folder{Dir: filepath.Join(dir, fmt.Sprintf("peer-%d", i)), Run: settings.DefaultRun, Dataset: "glyphs", Model: name}
		params := tensor.NewParams(model.Layout())
		if taken, _, err := c.Load(params); err != nil || taken == nil {
			t.Fatalf("peer %d: no checkpoint: %v", i, err)
		}
		models = append(models, params.Vector())
	}
	return models
}

// spread is the root mean square distance of models from their mean.
func spread(models []tensor.Vector) float64 {
	squared, n := 0.0, float64(len(models))
	for i, origin := range models[0] { // the mean of equal values may be rounded
		mean := 0.0
		for _, m := range models {
			mean += (float64(m[i]) - float64(origin)) / n
		}
		for _, m := range models {
			d := float64(m[i]) - float64(origin) - mean
			squared += d * d
		}
	}
	return math.Sqrt(squared / n)
}

// TestClosingDistance compares the distance of models that a run reports with that between
// its last checkpoints. Without the flag it is one run, of two to three seconds: three peers
// have to meet, learn and leave.
func TestClosingDistance(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: trains with peers")
	}
	kinds := []struct {
		flags string
		peers []int
	}{{"--in-process --model softmax --codec raw", []int{3}}}
	if *distances {
		kinds = append(kinds, []struct {
			flags string
			peers []int
		}{
			{"--model softmax --codec raw", []int{2, 4, 8}},
			{"--model mlp --codec raw", []int{2, 3, 4}},
			{"--model mlp --codec lattice8+4", []int{2, 4, 6}},
			{"--model softmax --codec lattice4+1 --every 16", []int{3, 5}},
			{"--in-process --model mlp --codec lattice8+4", []int{2, 8}},
			{"--in-process --model softmax --codec bf16", []int{4, 7}},
			{"--in-process --model softmax --strategy alone", []int{3}},
			{"--model softmax --final merge", []int{3, 6}},
			{"--in-process --model mlp --final merge", []int{4}},
		}...)
	}
	for _, kind := range kinds {
		for _, peers := range kind.peers {
			t.Run(fmt.Sprintf("%d %s", peers, kind.flags), func(t *testing.T) {
				dir := t.TempDir()
				args := append([]string{"local", "--peers", strconv.Itoa(peers), "--json", "--steps", strconv.Itoa(60 * peers), "--checkpoint", dir}, strings.Fields(kind.flags)...)
				code, out, errs := program.Try(args...)
				if code != 0 {
					t.Fatalf("exit code %d\n%s", code, errs)
				}
				var r result.Result
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatal(err)
				}
				got, want := float64(r.ConsensusDistance), spread(lastModels(t, dir, r.Model, peers))
				t.Logf("%.6g, the truth is %.6g", got, want)
				if !(math.Abs(got-want) <= 0.05*want) || r.ConsensusPeers != peers {
					t.Errorf("distance %g over %d peers, in the last checkpoints %g over %d", got, r.ConsensusPeers, want, peers)
				}
			})
		}
	}
}
