// Package version is the command version.
package version

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
)

// version is set by the linker in a release: make release.
var version string

// build is what this program was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	// Modified tells that the files were not those of the revision.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Wire is the version of the frames: peers of one run must have the same.
	Wire int `json:"wire"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Wire: peer.WireVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

func (b build) String() string {
	text := fmt.Sprintf("gossipnode %s, wire version %d, %s, %s", b.Version, b.Wire, b.Go, b.Platform)
	if b.Revision != "" {
		text += ", revision " + b.Revision
	}
	if b.Modified {
		text += " with changes"
	}
	return text
}

// Command makes the command that tells what this program is.
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
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(std.Out).Encode(thisBuild())
			}
			_, err := fmt.Fprintln(std.Out, thisBuild())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
