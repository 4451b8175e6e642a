package settings

import (
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestOptimizerFlags: what the flags say reaches the optimizer and the course.
func TestOptimizerFlags(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{1, 1}}, tensor.Spec{Name: "bias", Shape: []int{1}, Kind: tensor.Bias})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range optimizerNames() {
		args := []string{"--optimizer", name, "--lr", "0.5", "--weight-decay", "0.1", "--clip", "1", "--lr-floor", "0.1", "--warmup", "0"}
		if name == "adamw" || name == "lion" || name == "muon" {
			args = append(args, "--beta2", "0.95")
		}
		s, err := parse(t, "", nil, args...)
		if err != nil {
			t.Fatal(err)
		}
		if faults := s.optimizerSettings.faults(); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
		if end := s.Course().RateAt(1); math.Abs(end-0.05) > 1e-12 {
			t.Errorf("%s: the rate ends at %g, want a tenth of 0.5", name, end)
		}
		o := s.NewOptimizer(layout)
		if err := o.(optim.Validator).Validate(layout); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		grad := tensor.Vector{0, 0}
		if o.Delta(grad, tensor.Vector{2, 2}, 1); math.Abs(float64(grad[0])+0.2) > 1e-6 || grad[1] != 0 {
			t.Errorf("%s: without a gradient weight and bias of 2 change by %v, want -0.2 and 0", name, grad)
		}
		switch o := s.NewOptimizer(layout).(type) {
		case *optim.SGD:
			if o.Clip != 1 || (o.Momentum > 0) != (name == "momentum") {
				t.Errorf("%s: momentum %g, clip %g", name, o.Momentum, o.Clip)
			}
		case *optim.AdamW:
			if o.Beta2 != 0.95 || o.Clip != 1 {
				t.Errorf("%s: beta2 %g, clip %g", name, o.Beta2, o.Clip)
			}
		case *optim.Muon:
			if o.AdamW.Beta2 != 0.95 || o.AdamW.Clip != 1 || o.Layout != layout {
				t.Errorf("%s: beta2 %g, clip %g", name, o.AdamW.Beta2, o.AdamW.Clip)
			}
		case *optim.Lion:
			if o.Beta2 != 0.95 || o.Clip != 1 {
				t.Errorf("%s: beta2 %g, clip %g", name, o.Beta2, o.Clip)
			}
		}
	}
}

// TestOptimizerFaults: all of them are told at once.
func TestOptimizerFaults(t *testing.T) {
	s, err := parse(t, "", nil, "--optimizer", "sgd", "--lr", "-1", "--weight-decay", "NaN", "--clip", "-1", "--lr-floor", "2", "--warmup", "3", "--beta2", "0.5")
	if err == nil {
		err = s.Validate(nil)
	}
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"--lr -1", "--weight-decay NaN", "--clip -1", "--lr-floor 2", "--warmup 3", "--beta2 is for adamw, lion and muon, not for sgd"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in\n%v", want, err)
		}
	}
}
