package main

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

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
	} {
		code, _, text := try(append([]string{"run"}, strings.Fields(line)...)...)
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("run %s: exit code %d, no %q in\n%s", line, code, want, text)
		}
	}
	code, _, text := try("local", "--strategy", "ps-bsp", "--server", "12D3KooWx")
	if want := "local gives each peer a new identity"; code != cli.ExitUsage || !strings.Contains(text, want) {
		t.Errorf("exit code %d, no %q in\n%s", code, want, text)
	}
}

// TestEveryStrategyHasItsMachine shows that no strategy falls back on another.
func TestEveryStrategyHasItsMachine(t *testing.T) {
	made := map[string]bool{}
	for _, name := range strategies() {
		s, err := parse(t, "", nil, "--strategy="+name)
		if err != nil {
			t.Fatal(err)
		}
		if faults := s.trainSettings.faults(); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
		make := s.machine(s.Batch)
		if make == nil {
			continue // that of a peer
		}
		machine, err := make(averaging.Config{Self: "a"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, gradients := machine.(averaging.GradientMachine)
		if gradients != s.gradients() {
			t.Errorf("%s averages gradients: %v, want %v", name, gradients, s.gradients())
		}
		made[name] = true
	}
	if len(made) != len(strategies())-1 {
		t.Errorf("made %v", made)
	}
}

// TestLocalStrategies shows that every strategy trains in processes over loopback, with
// codecs that each takes.
func TestLocalStrategies(t *testing.T) {
	t.Parallel()
	for _, name := range strategies() {
		t.Run(name, func(t *testing.T) {
			if name == strategyAlone || name == strategyADPSGD {
				t.Skip("has tests of its own")
			}
			t.Parallel()
			code, out, text := try(localArgs(pictures(t, 400, 200), "--in-process", "--peers", "3", "--strategy", name, "--codec", "bf16", "--epochs", "6")...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, text)
			}
			r := lastLine(t, out)
			bits := float64(r.BitsPerParameter)
			t.Logf("accuracy %.3f, %.2f bits a parameter in %d exchanges, %d refused, %d failed", r.TestAccuracy.Min, bits, r.Exchanges, r.Refused, r.Failed)
			if r.TestAccuracy.Min < 0.9 || r.Strategy != name || r.Exchanges == 0 || bits < 16 || bits > 17 || r.PeersLost > 0 {
				t.Errorf("%+v\n%s", r, text)
			}
		})
	}
}
