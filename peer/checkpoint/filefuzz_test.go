package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// FuzzReadCheckpoint shows that whatever lies in a folder under a checkpoint's name is
// either refused, with the model left as it is, or is finite and of this run.
func FuzzReadCheckpoint(f *testing.F) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{2}})
	if err != nil {
		f.Fatal(err)
	}
	c := Folder{Run: "r", Dataset: "d", Model: "m", Keep: 1}
	write := func(metadata map[string]string) []byte {
		path := filepath.Join(f.TempDir(), nameOf(1))
		params := tensor.NewParams(layout)
		Seal(metadata, params)
		if err := writeFile(path, params, metadata); err != nil {
			f.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	full := map[string]string{
		keyFormat: checkpointFormat, keyRun: "r", keyDataset: "d", keyModel: "m", keySteps: "5", keyAge: "6", keyFlock: "7", keyLife: "8",
		keyLedger: `{"inherited":1,"past":[{"peer":"a","incarnation":1,"steps":2,"resumed":true}],"orders":["AQI="]}`, keyOptimizerSteps: "0",
	}
	f.Add(write(full))
	f.Add(write(map[string]string{keyFormat: checkpointFormat, keyRun: "r", keyDataset: "d", keyModel: "m", keySteps: "5"}))
	f.Add(write(map[string]string{}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), nameOf(1))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		params := tensor.NewParams(layout)
		params.Vector()[0] = 9
		taken, err := Read(c, path, params)
		if err != nil && (taken != nil || params.Vector()[0] != 9) {
			t.Errorf("refused (%v), and taken", err)
		}
		if err == nil && (!tensor.Finite(params.Vector()) || c.belongs(taken.metadata) != nil) {
			t.Errorf("taken: %+v", taken)
		}
		if metadata, err := readMetadata(path); taken != nil && (err != nil || c.belongs(metadata) != nil) {
			t.Errorf("a look says otherwise: %v", err)
		}
	})
}
