package inspect

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var programs = map[string]clitest.Program{"inspect": clitest.Only(Command), "export": clitest.Only(ExportCommand)}

func TestMain(m *testing.M) { programs["inspect"].Main(m) }

// try executes a command line, of inspect or export, in this process.
func try(args ...string) (code int, out, err string) { return programs[args[0]].Try(args...) }
