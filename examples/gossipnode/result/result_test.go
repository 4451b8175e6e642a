package result

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestResultFields holds the names of the contract.
func TestResultFields(t *testing.T) {
	text, err := json.Marshal(Result{Loss: cli.Number(math.Inf(1))})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	const contract = "peers strategy codec dataset model steps seconds test_accuracy loss consensus_distance exchanges refused failed " +
		"in_doubt peers_lost join_seconds connections_max bytes_sent bits_per_parameter resumed_step"
	for _, name := range strings.Fields(contract) {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %s in %s", name, text)
		}
	}
	for _, name := range []string{"mean", "min", "max"} {
		if _, ok := fields["test_accuracy"].(map[string]any)[name]; !ok {
			t.Errorf("no field test_accuracy.%s in %s", name, text)
		}
	}
	if fields["loss"] != nil {
		t.Errorf("loss is %v, want null for what is no number", fields["loss"])
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil || !math.IsNaN(float64(back.Loss)) {
		t.Errorf("read back: loss %v, error %v", back.Loss, err)
	}
}

// The mean of figures lies between the least and the greatest, also where a sum of their shares is
// rounded past both.
func TestSpreadHoldsItsMean(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		values := make([]float64, 1+draw.IntN(9))
		for i := range values {
			values[i] = 1 - draw.Float64()/1000
			if i > 0 && draw.IntN(4) > 0 {
				values[i] = values[0]
			}
		}
		if of := SpreadOf(values...); !(of.Min <= of.Mean && of.Mean <= of.Max) || math.Abs(of.Mean-values[0]) > 0.001 {
			t.Fatalf("%v: %+v", values, of)
		}
	}
}
