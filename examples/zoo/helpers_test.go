package zoo

import (
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares text with a file in testdata, or rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%swant\n%s", path, got, want)
	}
}

// dataDir finds ../shared/data/NAME beside the project, or skips the test: a
// user's machine does not have it.
func dataDir(t *testing.T, name string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			t.Skip("no go.mod above this folder")
		}
		root = filepath.Dir(root)
	}
	dir := filepath.Join(root, "..", "shared", "data", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data set is not on this machine: %v", err)
	}
	return dir
}

// sum32 is a short fingerprint of bytes.
func sum32(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// bytesOf are the bits of a vector.
func bytesOf(v tensor.Vector) []byte {
	var out []byte
	for _, x := range v {
		b := math.Float32bits(x)
		out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
	}
	return out
}

// recipe is how the tests train: momentum SGD, a warm-up over the first twentieth
// of the steps, then a cosine to zero.
type recipe struct {
	batch    int
	rate     float64
	momentum float64
	passes   float64
}

// learner trains one model on one set.
type learner struct {
	recipe   recipe
	model    Model
	sampler  *Sampler
	batch    Batch
	x, v, g  tensor.Vector
	step     int
	lastStep int
}

func newLearner(t testing.TB, model Model, set *Set, r recipe, seed uint64) *learner {
	t.Helper()
	sampler, err := NewSampler(set, r.batch, seed)
	if err != nil {
		t.Fatal(err)
	}
	n := model.Layout().Len()
	l := &learner{
		recipe: r, model: model, sampler: sampler,
		x: make(tensor.Vector, n), v: make(tensor.Vector, n), g: make(tensor.Vector, n),
		lastStep: int(r.passes * float64(set.Len()) / float64(r.batch)),
	}
	model.Init(1, l.x)
	return l
}

func (l *learner) done() bool { return l.step >= l.lastStep }

func (l *learner) learn() {
	warm := max(1, l.lastStep/20)
	rate := l.recipe.rate * 0.5 * (1 + math.Cos(math.Pi*float64(l.step)/float64(l.lastStep)))
	if l.step < warm {
		rate = l.recipe.rate * float64(l.step+1) / float64(warm)
	}
	l.sampler.Next(&l.batch)
	l.model.Gradient(l.x, &l.batch, l.g)
	tensor.MomentumStep(l.g, l.v, l.g, l.x, tensor.MomentumRates{Rate: rate, Momentum: l.recipe.momentum})
	tensor.Add(l.x, l.g)
	l.step++
}

// accuracy trains to the end and evaluates.
func accuracy(t testing.TB, model Model, train, heldOut *Set, r recipe) float64 {
	t.Helper()
	l := newLearner(t, model, train, r, 2)
	for !l.done() {
		l.learn()
	}
	a, _ := model.Evaluate(l.x, heldOut)
	return a
}

func mustModel(t testing.TB, name string) Model {
	t.Helper()
	m, err := ModelByName(name, Inputs, Classes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
