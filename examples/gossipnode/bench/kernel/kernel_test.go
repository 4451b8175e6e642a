package kernel

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestKernel shows that every kernel is measured at every size.
func TestKernel(t *testing.T) {
	code, out, logged := program.Try("kernel", "--bytes", "65536,262144", "--rounds", "9", "--json")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	var r kernelResult
	fields := clitest.OneLine(t, []byte(out), &r)
	if _, ok := fields["kernels"]; !ok || r.CPU == "" || r.GOMAXPROCS < 1 || r.Rounds != 9 {
		t.Errorf("%+v", r)
	}
	seen := make(map[string]int)
	for _, k := range r.Kernels {
		if !(k.GBPerSecond > 0 && k.CopyGB > 0 && k.Ratio > 0) || k.Bytes != 65536 && k.Bytes != 262144 {
			t.Errorf("%+v", k)
		}
		seen[k.Name]++
	}
	for _, name := range []string{"add", "axpy", "scaled_difference", "norm2", "max_abs", "finite", "bf16_encode", "bf16_decode", "momentum", "adamw"} {
		if seen[name] != 2 {
			t.Errorf("%s was measured %d times, want 2", name, seen[name])
		}
		if !strings.Contains(logged, "\n"+name+" ") {
			t.Errorf("%s is not in the table:\n%s", name, logged)
		}
	}
}
