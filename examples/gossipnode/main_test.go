package main

import (
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// mainVariable makes the test binary act as gossipnode; all processes that tests start
// inherit it.
const mainVariable = clitest.Variable

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	if err := errors.Join(os.Setenv(mainVariable, "1"), flag.Set("test.parallel", clitest.Waiting)); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// try executes a command line in this process.
func try(args ...string) (code int, out, err string) { return program.Try(args...) }

type sharedBuffer = clitest.Buffer

// program is gossipnode.
var program clitest.Program = newRoot

// configured are the settings that run takes from a file and the environment.
func configured(file string) (s settings.Settings, err error) {
	cmd := &cobra.Command{Use: "run"}
	s.Register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	if err := cmd.ParseFlags([]string{"--" + cli.ConfigFlag, file}); err != nil {
		return s, err
	}
	sources, err := s.Load(cmd)
	if err != nil {
		return s, err
	}
	return s, s.Validate(sources)
}

// runArgs are those of a small run alone with a checkpoint folder.
func runArgs(data, folder string, more ...string) []string {
	return append([]string{"run", "--dataset", "mnist", "--data", data, "--model", "softmax", "--batch", "10", "--lr", "0.01",
		"--listen", settings.Loopback, "--checkpoint", folder, "--json"}, more...)
}

// lastLine decodes the last line of standard output, as --json promises it.
func lastLine(t *testing.T, out string) (r result.Result) {
	t.Helper()
	clitest.LastLine(t, out, &r)
	return r
}
