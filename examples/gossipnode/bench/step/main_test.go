package step

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var program = clitest.Only(Command)

// TestMain shortens the samples: what the tests look at is that there are figures.
func TestMain(m *testing.M) {
	sampleTime = 10 * time.Millisecond
	program.Main(m)
}
