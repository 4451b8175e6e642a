package compare

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
)

var program = clitest.Only(Command, simulate.Command)

func TestMain(m *testing.M) { program.Main(m) }

// try executes a command line in this process.
func try(args ...string) (code int, out, err string) { return program.Try(args...) }

// small are flags of a race that takes a moment.
func small(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{
		"--dataset", "mnist", "--data", clitest.Pictures(t, 600, 100), "--model", "softmax", "--epochs", "3", "--batch", "10",
	}, more...)
}
