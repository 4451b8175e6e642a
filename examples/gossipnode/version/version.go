// Package version is the command version.
package version

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
)

// build describes the build of this program.
type build struct {
	// Version is the release, or, in the format of the go command, the revision, its time, and whether files differed
	// from it.
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Wire is the version of the frames, which must be the same at all peers of a run.
	Wire int `json:"wire"`
}

func thisBuild() build {
	return build{Version: cmp.Or(control.Version(), "(devel)"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Wire: peer.WireVersion}
}

func (b build) String() string {
	return fmt.Sprintf("gossipnode %s, wire version %d, %s, %s\n", b.Version, b.Wire, b.Go, b.Platform)
}

// Command makes the command version.
func Command(std cli.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of what it speaks",
		Long: `Version prints the release, the revision that it was built from, and the wire version:
peers of different releases take part in one run if these are the same, and the versions
of their member records (the change log names releases that raise one).`,
		Example: `  gossipnode version
  gossipnode version --json`,
		Args: cli.FlagsOnly,
		RunE: func(*cobra.Command, []string) error { return cli.Print(thisBuild(), asJSON, std) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
