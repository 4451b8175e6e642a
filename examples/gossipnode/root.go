package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are the standard streams of one execution. Results go to out,
// everything else to err; in is read only to learn that a parent has gone.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a fault of the command line, the environment or the
// configuration file: the user has to write something else.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// execute runs one command line and returns its exit code.
func execute(args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(args)
	ran, err := root.ExecuteC()
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if errors.As(err, &reported{}) {
		return code
	}
	fmt.Fprintf(std.err, "gossipnode: %v\n", err)
	if code == exitUsage {
		fmt.Fprintf(std.err, "See %s --help.\n", ran.CommandPath())
	}
	return code
}

// exitCode is what an error ends the process with.
func exitCode(err error) int {
	var member *memberError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &member):
		return member.code
	case errors.As(err, &usageError{}):
		return exitUsage
	}
	return exitFailed
}

func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "gossipnode",
		Short: "Train one model together with others, with no server",
		Long: `Gossipnode trains a model on pictures together with other processes like it.
Each has its own data, and now and then averages its model with one neighbour.
There is no server, nobody waits for anybody, and any of them may fail.`,
		Example: `  gossipnode local
  gossipnode local --peers 8 --dataset mnist --data DIR --epochs 3
  gossipnode run --listen 0.0.0.0:4001
  gossipnode run --join 192.0.2.7:4001`,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagFault)
	root.SetHelpCommand(newHelp())
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.AddCommand(newRun(std), newLocal(std), newSimulate(std), newCompare(std), newKeygen(std), newControl(std), newTopology(std), newDoctor(std), newBench(std), newData(std, publicSets()),
		newInspect(std), newExport(std), newConfig(std), newVersion(std))
	return root
}

// newHelp makes the command that is help: cobra's own takes an unknown command
// for a good one.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil || about == cmd.Root() && len(rest) > 0:
				return unknownCommand(cmd.Root(), args)
			case len(rest) > 0:
				return noArguments(about, rest)
			}
			return about.Help()
		},
	}
}

// unknownCommand refuses what is no command, with those that are alike.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if alike := cmd.SuggestionsFor(args[0]); len(alike) > 0 {
		return usagef("unknown command %q: did you mean %s?", args[0], strings.Join(alike, " or "))
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return usagef("unknown command %q: want one of %s", args[0], strings.Join(known, ", "))
}

// noArguments refuses words after the flags: most often a flag without dashes.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes flags only, not %q", cmd.Name(), args[0])
	}
	return nil
}
