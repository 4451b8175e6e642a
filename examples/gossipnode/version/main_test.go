package version

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var program = clitest.Only(Command)

func TestMain(m *testing.M) { program.Main(m) }

// try executes a command line in this process.
func try(args ...string) (code int, out, err string) { return program.Try(args...) }
