package bridge

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
)

var program = clitest.Only(Command, keys.Command)

func TestMain(m *testing.M) { program.Main(m) }
