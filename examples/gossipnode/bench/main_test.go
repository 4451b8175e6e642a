package bench

import (
	"os/exec"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var program = clitest.Only(Command)

func TestMain(m *testing.M) { program.Main(m) }

// command prepares a measurement as a process of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return clitest.Command(t, 3*time.Minute, args...)
}
