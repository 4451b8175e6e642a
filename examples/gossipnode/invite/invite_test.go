package invite

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

var program = clitest.Only(Command)

func TestMain(m *testing.M) { program.Main(m) }

// TestHelpSaysWhoSeesAKey shows that whoever puts a run's key into a token is told that the
// token, as an argument, is in lists of processes, and where to put it instead.
func TestHelpSaysWhoSeesAKey(t *testing.T) {
	code, out, _ := program.Try("invite", "--help")
	text := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"lists of processes", "--config", "GOSSIPNODE_JOIN"} {
		if code != cli.ExitDone || !strings.Contains(text, want) {
			t.Errorf("exit code %d, help without %q:\n%s", code, want, out)
		}
	}
}

func TestWrongUse(t *testing.T) {
	for line, want := range map[string]string{
		"invite":                                 "invite needs --join",
		"invite --join 127.0.0.1:1 --with-key":   "--with-key needs --run-key",
		"invite --join 127.0.0.1:1 --expires 0s": "--expires 0s: want a time in the future",
	} {
		if code, out, err := program.Try(strings.Fields(line)...); code != cli.ExitUsage || out != "" || !strings.Contains(err, want) {
			t.Errorf("%s: exit code %d, standard output %q, standard error:\n%s\nwant %q", line, code, out, err, want)
		}
	}
}
