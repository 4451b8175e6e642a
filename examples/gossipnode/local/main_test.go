package local

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/run"
)

// program has what the processes of a local run are.
var program = clitest.Only(run.Command, Command)

func TestMain(m *testing.M) { program.Main(m) }
