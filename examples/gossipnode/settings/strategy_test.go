package settings

import (
	"strconv"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestEveryStrategyHasItsMachine shows that no strategy falls back on another.
func TestEveryStrategyHasItsMachine(t *testing.T) {
	made := map[string]bool{}
	for _, name := range Strategies() {
		s, err := parse(t, "", nil, "--strategy="+name)
		if err != nil {
			t.Fatal(err)
		}
		if faults := s.trainSettings.faults(); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
		make := s.Machine(s.Batch, s.Outer())
		if make == nil {
			continue // that of a peer
		}
		machine, err := make(averaging.Config{Self: "a"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switch machine.(type) {
		case *baseline.AllReduce, *baseline.ParamServer:
			if !s.gradients() {
				t.Errorf("%s averages gradients", name)
			}
		default:
			if s.gradients() {
				t.Errorf("%s averages no gradients", name)
			}
		}
		made[name] = true
	}
	if len(made) != len(Strategies())-1 {
		t.Errorf("made %v", made)
	}
}

// TestStrategiesSayWhatDoesNotGoTogether shows that settings which a strategy has no
// use for are wrong usage, and that the message says what to do.
func TestStrategiesSayWhatDoesNotGoTogether(t *testing.T) {
	for line, want := range map[string]string{
		"--strategy allreduce --codec lattice8+4":                "sends gradients: want raw, bf16, fp16 or int8",
		"--strategy ps-bsp --codec auto":                         "--codec a lattice code needs a model near",
		"--strategy dpsgd --every 4":                             `--every "4": with --strategy dpsgd peers talk in every step`,
		"--strategy allreduce --every drift=3":                   "leave it out, or use --strategy adpsgd",
		"--strategy ps-asp --budget 2GB/h":                       "--budget is for adpsgd",
		"--strategy ps-asp --consensus":                          "--consensus is for adpsgd",
		"--strategy adpsgd --server 12D3KooWx":                   "--server is for ps-bsp, ps-asp, ps-ssp or ps-dssp",
		"--strategy ps-bsp --server me":                          `--server "me": want a peer id`,
		"--strategy ps-bsp --staleness 4":                        "--staleness is for ps-ssp and ps-dssp",
		"--strategy ps-ssp --staleness -1":                       "--staleness -1: want 0 to",
		"--strategy ps-ssp --staleness-max 4":                    "--staleness-max is for ps-dssp",
		"--strategy ps-dssp --staleness 5 --staleness-max 4":     "--staleness-max 4: want at least --staleness, which is 5",
		"--strategy ps-asp --balance":                            "--balance is for adpsgd, allreduce and ps-bsp",
		"--strategy ps-dssp --staleness 2 --staleness-max 10000": "at most 1024",
		"--strategy dpsgd --outer-momentum 0.5":                  "--outer-momentum and --outer-rate are for adpsgd and diloco",
		"--strategy local-sgd --outer-rate 0.5":                  "--outer-momentum and --outer-rate are for adpsgd and diloco",
		"--outer-momentum 0.5":                                   "give a number of them, as in --every 64",
		"--every 64 --outer-momentum 1":                          "--outer-momentum 1: want 0 to below 1",
		"--every 64 --outer-rate -1":                             "--outer-rate -1: want 0, the default, to 10",
		"--accumulate 0":                                         "--accumulate 0: want 1 to",
		"--accumulate 2 --global-batch 64":                       "--accumulate the pictures of a step are divided",
		"--strategy ps-bsp --accumulate 2 --factors":             "--accumulate factors are those of one batch",
		"--accumulate 2 --tasks x":                               "tasks are done in steps of one batch",
		"--strategy diloco --every drift=3":                      "all peers talk after the same number of steps",
	} {
		code, _, text := try(append([]string{"run"}, strings.Fields(line)...)...)
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("run %s: exit code %d, no %q in\n%s", line, code, want, text)
		}
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

// TestOuterFlags: what the flags say reaches the optimizer, or the algorithm.
func TestOuterFlags(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]any{
		"--every 64":                                nil,
		"--every 64 --outer-momentum 0.5":           optim.Outer{Every: 64, Momentum: 0.5},
		"--every 16 --outer-rate 2":                 optim.Outer{Every: 16, Rate: 2},
		"--every 16 --burst 4 --outer-momentum 0.5": optim.Outer{Every: 64, Momentum: 0.5},
		"--strategy local-sgd":                      baseline.Outer{Every: 64, Rate: 1},
		"--strategy diloco --every 16":              baseline.Outer{Every: 16, Rate: 0.7, Momentum: 0.9},
		"--strategy diloco --every 16 --outer-rate 1 --outer-momentum 0.5": baseline.Outer{Every: 16, Rate: 1, Momentum: 0.5},
	} {
		s, err := parse(t, "", nil, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		if faults := s.trainSettings.faults(); len(faults) > 0 {
			t.Errorf("%s: %v", line, faults)
		}
		outer, wrapped := s.NewOptimizer(layout).(*optim.Outer)
		switch want := want.(type) {
		case optim.Outer:
			if !wrapped || outer.Every != want.Every || outer.Rate != want.Rate || outer.Momentum != want.Momentum {
				t.Errorf("%s: %+v, want %+v", line, outer, want)
			}
		case baseline.Outer:
			if s.Outer() != want || wrapped {
				t.Errorf("%s: %+v, want %+v", line, s.Outer(), want)
			}
		default:
			if wrapped {
				t.Errorf("%s: %+v", line, outer)
			}
		}
	}
}
