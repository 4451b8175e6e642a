package step

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

// measured are models of each kind; the deep ones take seconds a step.
func measured() []string {
	return slices.DeleteFunc(nets.Names(), func(model string) bool {
		return strings.HasPrefix(model, "vgg") || slices.Contains([]string{"alexnet", "resnet18", "resnet110"}, model)
	})
}

// TestStep shows that every figure that is promised is there for every model,
// and is one that such a measurement can have. Times themselves are the machine's
// affair.
func TestStep(t *testing.T) {
	for _, model := range measured() {
		t.Run(model, func(t *testing.T) {
			code, out, logged := program.Try("step", "--model", model, "--batch", "3", "--rounds", "3", "--json")
			if code != cli.ExitDone {
				t.Fatalf("exit code %d\n%s", code, logged)
			}
			var r stepResult
			fields := clitest.OneLine(t, []byte(out), &r)
			promised := "model batch parameters samples_per_second step_seconds gflops peak_gflops share_of_peak allocs_per_step instructions rounds gomaxprocs cpu"
			if nets.ReadsText(model) {
				promised += " tokens_per_second"
			}
			if onGonum(model) {
				promised += " gonum_samples_per_second ratio_to_gonum"
			}
			for _, name := range strings.Fields(promised) {
				if _, ok := fields[name]; !ok {
					t.Errorf("no field %s in %s", name, out)
				}
			}
			checkStep(t, r, model)
			if !strings.Contains(logged, "multiply-adds alone") || !strings.Contains(logged, r.CPU) {
				t.Errorf("no table on standard error:\n%s", logged)
			}
		})
	}
}

func checkStep(t *testing.T, r stepResult, model string) {
	t.Helper()
	positive := map[string]float64{
		"samples": r.SamplesPerSecond, "seconds": r.StepSeconds, "GFLOP/s": r.GFLOPS, "peak": r.PeakGFLOPS,
		"share of peak": r.ShareOfPeak, "operations": r.Operations,
	}
	if onGonum(model) {
		positive["gonum"], positive["ratio to gonum"] = r.GonumSamples, r.RatioToGonum
	}
	for name, value := range positive {
		if !(value > 0 && value < 1e12) {
			t.Errorf("%s is %v", name, value)
		}
	}
	if runtime.GOOS == "linux" && !(r.StepCPUSeconds > 0) {
		t.Errorf("%v processor seconds a step", r.StepCPUSeconds)
	}
	if r.AllocsPerStep != 0 {
		t.Errorf("%v allocations a step", r.AllocsPerStep)
	}
	layout := mustStepModel(t, model).Layout()
	if r.Model != model || r.Batch != 3 || r.Rounds != 3 || r.Parameters != layout.Len() || r.GOMAXPROCS != 1 || r.CPU == "" || r.Instructions != tensor.Instructions() {
		t.Errorf("%+v", r)
	}
}

// nearOnGonum compares two vectors by range, relative to the largest value of the range.
func nearOnGonum(t *testing.T, layout *tensor.Layout, what string, got, want tensor.Vector) {
	t.Helper()
	for _, r := range layout.Ranges() {
		g, w := got[r.Offset:r.Offset+r.Len], want[r.Offset:r.Offset+r.Len]
		largest := float64(tensor.MaxAbs(w))
		if largest == 0 {
			t.Errorf("%s of %s is zero", what, r.Name)
		}
		for i := range g {
			if math.Abs(float64(g[i])-float64(w[i])) > 1e-4*largest {
				t.Fatalf("%s of %s at %d is %v, on gonum %v, of at most %v", what, r.Name, i, g[i], w[i], largest)
			}
		}
	}
}
