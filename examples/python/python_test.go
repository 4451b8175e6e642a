// Package python_test runs the tests of the Python package gossipnode: with the standard library
// of the python3 that is there, and with torch where a Python that has it is named.
package python_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bridge"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/run"
)

// torchPython names the variable with a python that has torch.
const torchPython = "MURMURATION_TORCH"

var program = clitest.Only(bridge.Command, run.Command, keys.Command)

func TestMain(m *testing.M) { program.Main(m) }

// TestPackage runs what needs no torch.
func TestPackage(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("there is no python3 here: %v", err)
	}
	unittest(t, python, "tests.test_flock", "tests.test_wheel")
}

// TestWithTorch runs the tests on torch's models, and the examples.
func TestWithTorch(t *testing.T) {
	t.Parallel()
	python := os.Getenv(torchPython)
	if python == "" {
		t.Skipf("%s names no python that has torch", torchPython)
	}
	unittest(t, python, "tests.test_torch", "tests.test_overlap", "tests.test_saving", "tests.test_ranks", "tests.test_callbacks", "tests.test_examples")
}

// unittest runs modules of tests, with this test's binary as the program.
func unittest(t *testing.T, python string, modules ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-m", "unittest", "-v"}, modules...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "GOSSIPNODE="+os.Args[0])
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	t.Logf("%s", out)
}
