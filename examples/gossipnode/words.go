package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// The words of package cli that nearly every file here uses.
const (
	exitDone    = cli.ExitDone
	exitFailed  = cli.ExitFailed
	exitUsage   = cli.ExitUsage
	configFlag  = cli.ConfigFlag
	fromDefault = cli.FromDefault
)

type (
	origins    = cli.Origins
	lineWriter = cli.LineWriter
	number     = cli.Number
)

var errInterrupted = cli.ErrInterrupted

func noArguments(cmd *cobra.Command, args []string) error { return cli.FlagsOnly(cmd, args) }

func untilSignal(parent context.Context, again func()) (ctx context.Context, release func()) {
	return cli.UntilSignal(parent, again)
}

func untilParentGone(parent context.Context, in io.Reader) (ctx context.Context, begin <-chan struct{}) {
	return cli.UntilParentGone(parent, in)
}

func usagef(format string, args ...any) error       { return cli.Usagef(format, args...) }
func faultf(flag, format string, args ...any) error { return cli.Faultf(flag, format, args...) }
func oneOf(flag, value string, known []string) error {
	return cli.OneOf(flag, value, known)
}
func within(flag string, value, least, most int) error {
	return cli.Within(flag, value, least, most)
}

func exitCode(err error) int               { return cli.ExitCode(err) }
func list(names []string) string           { return cli.List(names) }
func plural(n uint64, thing string) string { return cli.Plural(n, thing) }
func size(bytes uint64) string             { return cli.Size(bytes) }
