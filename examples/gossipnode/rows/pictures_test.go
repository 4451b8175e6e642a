package rows

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/tensor"
)

// What a file says of its pictures makes the model that was trained on them; one that says what cannot be is refused.
func TestOpenPictures(t *testing.T) {
	norm := []dataset.Normalization{{Mean: 0.5, Scale: 0.25}, {Mean: 0.1, Scale: 1}, {Mean: 0, Scale: 0.3}}
	levels := make([]uint8, 2*8*8*3)
	for i := range levels {
		levels[i] = uint8(37 * i)
	}
	rows := &table.Batch{Rows: 2, Columns: []table.Column{{Name: "more", Kind: table.Category, Codes: []int32{0, 0}, Values: []string{"a"}}}}
	for i := range 8 * 8 * 3 {
		rows.Columns = append(rows.Columns, table.Column{Name: fmt.Sprint("pixel", i), Numbers: []float64{float64(levels[i]), float64(levels[8*8*3+i])}})
	}
	set, err := dataset.NewSet(levels, []uint8{0, 1}, dataset.Shape{Height: 8, Width: 8, Channels: 3}, 5, norm...)
	if err != nil {
		t.Fatal(err)
	}
	model, err := nets.ByName("cnn", set.Shape(), set.Classes())
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(model.Layout())
	model.Init(1, params.Vector())
	metadata := map[string]string{"format": "pt", "model": "cnn"}
	if err := About(metadata, set, nil); err != nil {
		t.Fatal(err)
	}
	opened := func(metadata map[string]string) (learn.File, error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "m.safetensors")
		file, err := os.Create(path)
		if err == nil {
			err = params.WriteSafetensors(file, metadata)
		}
		if err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		return OpenModel(path)
	}
	p, err := opened(metadata)
	if err != nil || KindOf(p.Model) != "cnn" || len(p.Features) != 8*8*3 || strings.Join(p.Classes, "") != "01234" {
		t.Fatalf("%v %+v", err, p)
	}
	got, err := p.Predict(nil, rows)
	if want := model.Probabilities(params.Vector(), set); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for says, wrong := range map[string]table.Column{
		"pixel8 of row 2 is 0.5": {Name: "pixel8", Numbers: []float64{0, 0.5}}, "pixel8 of row 1 is 256": {Name: "pixel8", Numbers: []float64{256, 0}},
		"pixel8 of row 1 is NaN": {Name: "pixel8", Numbers: []float64{math.NaN(), 0}}, `no column "pixel8"`: {Name: "pixel"},
	} {
		other := &table.Batch{Rows: 2, Columns: slices.Clone(rows.Columns)}
		other.Columns[9] = wrong
		if _, err := p.Predict(nil, other); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for says, wrong := range map[string][2]string{
		"export it again": {NormKey, "0/0"}, "normalizations of 2 channels": {NormKey, "0,0/1,1"}, "damaged": {PicturesKey, "pixels 8x8/5"},
		"no such model": {"model", "gpt"}, "of their format": {PicturesKey, "pixels 4096x4096x3/5"}, "neither": {PicturesKey, "text 1x8x1/256"},
		"in the model": {PicturesKey, "pixels 16x16x3/5"},
	} {
		damaged := maps.Clone(metadata)
		damaged[wrong[0]] = wrong[1]
		if _, err := opened(damaged); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", wrong, err, says)
		}
	}
	params.Vector()[3] = float32(math.NaN())
	if _, err := opened(metadata); err == nil || !strings.Contains(err.Error(), "not finite") {
		t.Error(err)
	}
}
