package settings

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// program has a command that takes settings, and refuses what run refuses.
var program = clitest.Only(func(cli.Streams) *cobra.Command {
	var s Settings
	cmd := &cobra.Command{Use: "run", RunE: func(cmd *cobra.Command, _ []string) error {
		sources, err := s.Load(cmd)
		if err != nil {
			return err
		}
		return s.Validate(sources)
	}}
	s.Register(cmd.Flags())
	cmd.Flags().String(cli.ConfigFlag, "", "")
	return cmd
})

func TestMain(m *testing.M) { program.Main(m) }

// try executes a command line in this process.
func try(args ...string) (code int, out, err string) { return program.Try(args...) }

// parse resolves flags against an environment and a file, without validation.
func parse(t *testing.T, file string, environment map[string]string, args ...string) (Settings, error) {
	t.Helper()
	var s Settings
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Register(flags)
	flags.String(cli.ConfigFlag, "", "")
	if file != "" {
		args = append(args, "--config", clitest.WriteFile(t, "config.yaml", file))
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	sources, err := cli.ResolveFrom(flags, map[string]string{"peers": "local"}, func(name string) (string, bool) { text, ok := environment[name]; return text, ok })
	if err != nil {
		return s, err
	}
	return s, s.settle(sources)
}
