package fit

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/predict"
)

var program = clitest.Only(Command, predict.Command)

func TestMain(m *testing.M) { program.Main(m) }
