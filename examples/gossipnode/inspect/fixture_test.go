package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

func smallParams(t *testing.T, shape ...int) *tensor.Params {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: shape})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i) / 3
	}
	return params
}

func write(t *testing.T, path string, params *tensor.Params, metadata map[string]string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := params.WriteSafetensors(file, metadata); err != nil {
		t.Fatal(err)
	}
}

// keep adds a checkpoint of a model of that shape with a velocity to a folder; edit may change
// its metadata, sealed or not.
func keep(t *testing.T, c checkpoint.Folder, steps uint64, shape []int, edit func(map[string]string)) (path string) {
	t.Helper()
	params := smallParams(t, shape...)
	params.Vector()[0] = float32(steps)
	n := params.Layout().Len()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: shape}, tensor.Spec{Name: "optimizer/velocity", Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	all := tensor.NewParams(layout)
	copy(all.Vector(), params.Vector())
	all.Vector()[n] = 7
	number := func(n uint64) string { return fmt.Sprint(n) }
	metadata := map[string]string{
		"format": "murmuration-checkpoint-3", "run": c.Run, "dataset": c.Dataset, "model": c.Model, "layout": "0", "saved": "2026-11-23T10:00:00Z",
		"steps": number(steps), "age": number(steps + 5), "flock_steps": number(4 * steps), "incarnation": "2", "optimizer": "sgd", "optimizer_steps": "0",
		"ledger": `{"inherited":6,"past":[{"peer":"a","incarnation":1,"steps":9},{"peer":"b","incarnation":3,"steps":11}]}`,
	}
	if edit != nil {
		edit(metadata)
	}
	if sum := metadata["crc32c"]; metadata["format"] != "" {
		if checkpoint.Seal(metadata, all); sum != "" {
			metadata["crc32c"] = sum
		}
	}
	names, err := c.Names()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(c.Dir, fmt.Sprintf("checkpoint-%06d.safetensors", len(names)+1))
	write(t, path, all, metadata)
	return path
}
