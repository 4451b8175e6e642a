package workload

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

// releases has files as builds of earlier days wrote them: never write one anew.
const releases = "../../../testdata/releases"

// atSines is the loss of a model of 8×8 pictures in two classes where its inputs are sines.
func atSines(t *testing.T, name string, params tensor.Vector) float64 {
	t.Helper()
	model := pictured(t, name)
	batch := dataset.Batch{Labels: []uint8{0, 1, 1, 0}, X: make(tensor.Vector, 4*64)}
	for i := range batch.X {
		batch.X[i] = float32(math.Sin(float64(i)))
	}
	return model.Gradient(params, &batch, make(tensor.Vector, model.Layout().Len()))
}

func pictures(model string) settings.Settings {
	s := settings.Settings{}
	s.Run, s.Dataset, s.Model = "murmuration", "images", model
	return s
}

func pictured(t *testing.T, name string) nets.Model {
	t.Helper()
	model, err := nets.ByName(name, dataset.Shape{Height: 8, Width: 8, Channels: 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// TestFilesOfReleases: what builds of earlier days wrote is read, and is the same model: its
// loss, and that of its velocity taken for a model, are as that build computed them.
func TestFilesOfReleases(t *testing.T) {
	for _, c := range []struct {
		day, model     string
		loss, velocity float64
		older          bool
	}{
		{"2026-11-23", "cnn", 0.8281550396707991, 0.6931928987803776, true}, // layers named otherwise, weights turned
		{"2026-11-23", "softmax", 0.6893952729471747, 0.728444305117934, true},
		{"2026-11-25", "cnn", 6.687211091140547, 4.8837881069693605, false},
		{"2026-11-25", "softmax", 1.3544450113866828, 0.7459908383697758, false},
	} {
		folder := Folder(pictures(c.model))
		params := tensor.NewParams(pictured(t, c.model).Layout())
		path := filepath.Join(releases, c.day, c.model+".safetensors")
		taken, err := checkpoint.Read(folder, path, params)
		if err != nil {
			t.Errorf("%s of %s: %v", c.model, c.day, err)
			continue
		}
		if taken.Older != c.older || taken.Progress.Steps != 30 || !taken.Progress.Description.Known() {
			t.Errorf("%s of %s: %+v", c.model, c.day, taken.Progress)
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-5 {
				t.Errorf("%s of %s: the loss of its %s is %v, and it was %v", c.model, c.day, what, got, want)
			}
		}
		near("model", atSines(t, c.model, params.Vector()), c.loss)
		near("velocity", atSines(t, c.model, taken.Optimizer.Vectors["velocity"]), c.velocity)
		folder.Older = nil
		if _, err := checkpoint.Read(folder, path, params); c.older && (err == nil || !strings.Contains(err.Error(), `written by build "unknown" and read by "`)) {
			t.Errorf("%s of %s is taken for another layout, or refused without the builds: %v", c.model, c.day, err)
		}
	}
	for _, day := range []string{"2026-11-23", "2026-11-25"} {
		s := pictures("softmax")
		s.Init = filepath.Join(releases, day, "softmax-model.safetensors")
		params := tensor.NewParams(pictured(t, s.Model).Layout())
		if err := loadValues(s.Init, params); err != nil || params.Vector()[0] == 0 {
			t.Errorf("the model of %s: %v", day, err)
		}
	}
}
