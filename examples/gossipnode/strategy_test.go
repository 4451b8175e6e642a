package main

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestLocalStrategies shows that every strategy trains in processes over loopback, with
// codecs that each takes.
func TestLocalStrategies(t *testing.T) {
	t.Parallel()
	for _, name := range settings.Strategies() {
		t.Run(name, func(t *testing.T) {
			if name == settings.StrategyAlone || name == settings.StrategyADPSGD {
				t.Skip("TestLocal and TestLocalAlone train with it")
			}
			t.Parallel()
			code, out, text := try(localArgs(clitest.Pictures(t, 400, 200), "--in-process", "--peers", "3", "--strategy", name, "--codec", "bf16", "--epochs", "6")...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, text)
			}
			r := lastLine(t, out)
			bits := float64(r.BitsPerParameter)
			t.Logf("accuracy %.3f, %.2f bits a parameter in %d exchanges, %d refused, %d failed", r.TestAccuracy.Min, bits, r.Exchanges, r.Refused, r.Failed)
			most := 17.0 // 16, and a few bits
			if name == settings.StrategyAllReduce || name == "diloco" || name == "local-sgd" {
				most = 24 // on a busy machine a sum is repeated, or a member is behind and copies the model exactly, in 32
			}
			if r.TestAccuracy.Min < 0.9 || r.Strategy != name || r.Exchanges == 0 || bits < 16 || bits > most || r.PeersLost > 0 {
				t.Errorf("%+v\n%s", r, text)
			}
		})
	}
}
