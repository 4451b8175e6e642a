package main

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/checkpoint"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

var merges = flag.Bool("merges", false, "have TestFinalMerge merge among eight processes too, with a death at several moments; takes a minute or two")

// executioner starts processes, and kills one of them once it says how far the run is.
type executioner struct {
	*processes
	victim int
	at     float64 // of the run
}

// launch implements launcher.
func (e executioner) launch(number int, s settings, events chan<- event) (member, error) {
	if number != e.victim {
		return e.processes.launch(number, s, events)
	}
	own := make(chan event)
	m, err := e.processes.launch(number, s, own)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			next := <-own
			if r := next.report; r != nil && r.Status != nil && r.Status.Progress >= e.at {
				m.kill()
			}
			events <- next
			if next.end != nil {
				return
			}
		}
	}()
	return m, nil
}

// mergeAmong trains with processes, kills one if at is above 0, and returns the result.
func mergeAmong(t *testing.T, peers, victim int, at float64, flags ...string) result {
	t.Helper()
	args := append([]string{"--final", "merge", "--model", "softmax", "--steps", "400", "--batch", "16", "--every", "8", "--codec", "lattice8+4"}, flags...)
	s, err := parse(t, "", nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.adaptToLocal(peers, cli.Origins{}); err != nil {
		t.Fatal(err)
	}
	start, err := newProcesses(peers)
	if err != nil {
		t.Fatal(err)
	}
	var logs sharedBuffer
	began := time.Now()
	total, err := newFlock(s, peers, executioner{start, victim, cmpOr(at, 2)}, newDisplay(&logs, "")).run(t.Context(), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &logs)
	}
	t.Logf("%d peers, one killed at %g: %d lost, %d finished, %s, %v, %.1f s\n%s", peers, at, total.PeersLost, len(total.Hashes), total.Final, total.ModelHash, time.Since(began).Seconds(), &logs)
	if total.Final != finalMerge || total.ModelHash == "" {
		t.Errorf("the models after the merge: %+v", total.finalResult)
	}
	if len(total.Hashes) != peers-total.PeersLost || at == 0 && total.PeersLost > 0 {
		t.Errorf("%d peers have finished, %d are lost", len(total.Hashes), total.PeersLost)
	}
	if accuracy := total.TestAccuracy; accuracy.Min != accuracy.Max || accuracy.Mean < 0.5 {
		t.Errorf("accuracy %+v", accuracy)
	}
	if summary := total.summary(); !strings.Contains(summary, total.ModelHash) {
		t.Errorf("the hash is not in\n%s", summary)
	}
	return total
}

func cmpOr(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return a
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
		c := checkpoint.Folder{Dir: filepath.Join(dir, fmt.Sprintf("peer-%d", i)), Run: defaultRun, Dataset: "glyphs", Model: "softmax"}
		params := tensor.NewParams(model.Layout())
		if taken, _, err := c.Load(params); err != nil || taken == nil {
			t.Fatalf("peer %d: no checkpoint: %v", i, err)
		}
		if hash := modelHash(params.Vector()); hash != total.ModelHash {
			t.Errorf("peer %d: the last checkpoint is of %s, the result %s", i, hash, total.ModelHash)
		}
	}
}

// TestModelHash is that of the bytes, computed plainly.
func TestModelHash(t *testing.T) {
	values := make(tensor.Vector, 40_000) // more than a piece
	var plain []byte
	for i := range values {
		values[i] = float32(i) / 3
		plain = binary.LittleEndian.AppendUint32(plain, math.Float32bits(values[i]))
	}
	if got, want := modelHash(values), fmt.Sprintf("%x", sha256.Sum256(plain))[:16]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	values[len(values)-1] = float32(math.Copysign(0, -1))
	if modelHash(values) == fmt.Sprintf("%x", sha256.Sum256(plain))[:16] {
		t.Error("the last value does not count")
	}
}

// TestFinalOf puts the results of peers together.
func TestFinalOf(t *testing.T) {
	of := func(pairs ...string) (all []share) {
		for p := range slices.Chunk(pairs, 2) {
			all = append(all, share{Result: result{finalResult: finalResult{Final: p[0], ModelHash: p[1]}}})
		}
		return all
	}
	for _, c := range []struct {
		shares      []share
		final, hash string
		said        string
	}{
		{of("merge", "a", "merge", "a"), "merge", "a", "merged: a."},
		{of("merge", "a", "merge", "b"), "merge", "", "differ: a, b."},
		{of("merge", "a", "unmerged", "b"), "unmerged", "", "not come about at all peers: a, b."},
		{of("local", "a", "local", "b"), "local", "", ""},
		{of("local", "a"), "local", "a", "Final model: a."},
	} {
		got := finalOf(c.shares)
		if got.Final != c.final || got.ModelHash != c.hash || len(got.Hashes) != len(c.shares) || !strings.Contains(got.summary(), c.said) {
			t.Errorf("%+v: %s, want %s, %s and %q", got, got.summary(), c.final, c.hash, c.said)
		}
	}
	if text := (finalResult{Final: finalUnmerged, ModelHash: "a"}).summary(); !strings.Contains(text, "own model: a.") {
		t.Error(text)
	}
}

// TestFinalFlags: what makes no sense is refused with a word.
func TestFinalFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--final best", `--final "best": want local or merge`},
		{"--final merge --strategy allreduce", "--final merge is for adpsgd"},
		{"--final-weights samples", "--final-weights needs --final merge"},
		{"--final merge --final-wait " + strconv.Itoa(-1) + "s", "--final-wait -1s: want a positive time"},
	} {
		code, _, text := try(append([]string{"run"}, strings.Fields(c.args)...)...)
		if code != cli.ExitUsage || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, want %q in\n%s", c.args, code, c.want, text)
		}
	}
}
