package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitConfig is the code of sysexits.h for a value on the command line that cannot be used: a key, a folder,
	// data, an address that this machine does not have. A panic of Go exits with 2, as usage errors do, so a
	// supervisor cannot tell them apart.
	ExitConfig = 78
)

// Execute runs one command line and returns its exit code. It prints an error on the root's standard error, unless it
// is Reported.
func Execute(root *cobra.Command, args []string) int {
	root.SetArgs(args)
	ran, err := root.ExecuteC()
	if err == nil {
		return ExitDone
	}
	code := ExitCode(err)
	var reported Reported
	if errors.As(err, &reported) {
		return code
	}
	if errors.Is(err, context.Canceled) { // by a signal, since nothing else ends a command so
		err = ErrInterrupted
	}
	fmt.Fprintf(root.ErrOrStderr(), "%s: %v\n", root.Name(), err)
	if code == ExitUsage {
		fmt.Fprintf(root.ErrOrStderr(), "See %s --help.\n", ran.CommandPath())
	}
	return code
}

// Reported is an error that has been reported to the user already.
type Reported struct{ Cause error }

func (e Reported) Error() string { return e.Cause.Error() }
func (e Reported) Unwrap() error { return e.Cause }

// ExitCode is the exit code for an error: that of its method ExitWith, if it has one. A method ExitCode is ignored:
// exec.ExitError has one, with the code of another process.
func ExitCode(err error) int {
	var own interface{ ExitWith() int }
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &own):
		return own.ExitWith()
	}
	return ExitFailed
}

// Root prepares the root command of a program: Execute prints its errors, in this package's words.
func Root(root *cobra.Command) {
	root.Args, root.RunE = NoCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagFault)
	root.SetUsageFunc(usage)
	root.SetHelpCommand(newHelp())
}

// newHelp makes the command help: cobra's own accepts unknown commands.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil || about == cmd.Root() && len(rest) > 0:
				return NoCommand(cmd.Root(), args)
			case len(rest) > 0:
				return FlagsOnly(about, rest)
			}
			return about.Help()
		},
	}
}

// NoCommand returns an error for an unknown command, which names similar ones.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if alike := cmd.SuggestionsFor(args[0]); len(alike) > 0 {
		return Usagef("unknown command %q: did you mean %s?", args[0], strings.Join(alike, " or "))
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return Usagef("unknown command %q: want one of %s", args[0], strings.Join(known, ", "))
}

// FlagsOnly returns an error for words after the flags: most often a flag without dashes.
func FlagsOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes flags only, not %q", cmd.Name(), args[0])
	}
	return nil
}
