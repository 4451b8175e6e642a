package rows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// Of a file whose preparation is not whole, it is told so.
func TestOpenNeuralOfDamagedPreparations(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"{}", "null", "[", `{"pipeline":{"version":1,"input":{}},"labels":{"Classes":[]}}`} {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		file, err := os.Create(path)
		if err == nil {
			err = tensor.NewParams(layout).WriteSafetensors(file, map[string]string{PreparedKey: said, "model": "softmax"})
		}
		if err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		if _, err = OpenNeural(path); err == nil || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", said, err)
		}
	}
}
