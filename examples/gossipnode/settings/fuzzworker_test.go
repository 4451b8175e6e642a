package settings

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestFuzzWorkers shows that the workers of a fuzz test, which inherit what makes other
// processes of a test act as the program, test.
func TestFuzzWorkers(t *testing.T) {
	cmd := clitest.Command(t, 3*time.Minute, "-test.run=^$", "-test.fuzz=^FuzzParsePolicy$", "-test.fuzztime=1x",
		"-test.fuzzcachedir="+t.TempDir(), "-test.parallel=1")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, clitest.Variable+"=") })
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
