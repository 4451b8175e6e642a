package describe

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var program = clitest.Only(Command)

func TestMain(m *testing.M) { program.Main(m) }
