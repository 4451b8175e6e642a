package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// What a check may find.
const (
	levelOK   = "ok"
	levelWarn = "warn" // the peer works, but not as well as it could
	levelFail = "fail" // the peer would not join, or not for long
)

// doctorTimeout bounds all checks together.
const doctorTimeout = 30 * time.Second

// diagnosis is what one check found, and what to do about it.
type diagnosis struct {
	Level   string `json:"level"`
	What    string `json:"what"`
	Finding string `json:"finding"`
	Remedy  string `json:"remedy,omitempty"`
}

func healthy(what, format string, args ...any) diagnosis {
	return diagnosis{Level: levelOK, What: what, Finding: fmt.Sprintf(format, args...)}
}

func (d diagnosis) warn(remedy string) diagnosis { d.Level, d.Remedy = levelWarn, remedy; return d }
func (d diagnosis) fail(remedy string) diagnosis { d.Level, d.Remedy = levelFail, remedy; return d }

// newDoctor makes the command that looks for what would keep a peer from joining.
func newDoctor(std cli.Streams) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what would keep this machine's peer from joining",
		Long: `Doctor takes the flags of run, or the same --config, and checks what run would meet:

  key        the file of the identity is there, is sound, and is its owner's only; it is
             that of --key, or in the folder of --checkpoint
  ports      every address of --listen can be listened on
  addresses  what would be announced to others, and from where that can be reached
  clock      this machine's clock
  admission  the files of --run-key and --allow, if they are given, can be used
  join       a peer answers at each address of --join
  run        it takes part in the same run, and speaks the same version
  layout     its model is the same as --model makes
  window     what the buffers here let one connection carry over that round trip

Each is a line: ok, warn or fail, what was checked, what was found, and what to do.
It joins nothing and leaves nothing behind. The exit code is 1 if anything fails.
Where a peer of this machine already runs on the ports of --listen, ports fails.`,
		Example: `  gossipnode doctor --listen 0.0.0.0:4001 --key node.key
  gossipnode doctor --join 192.0.2.7:4001 --model cnn
  gossipnode doctor --config node.yaml --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.load(cmd)
			if err != nil {
				return err
			}
			if err := s.validate(sources); err != nil {
				return err
			}
			// What libp2p says of a connection that does not come about is in the findings.
			defer p2pnet.BridgeLogs(zap.NewNop())()
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
			defer cancel()
			return printDiagnoses(s.examine(ctx), s.JSON, std)
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().String(cli.ConfigFlag, "", "YAML file with the same keys as the flags")
	return cmd
}

// examine makes all checks.
func (s settings) examine(ctx context.Context) []diagnosis {
	key, found := s.checkKey()
	known, remove, err := s.copyKnown()
	if err != nil {
		return append(found, healthy("key", "cannot look at the identities that are known: %v", err).fail("make room, and let this user read "+s.knownPeers()))
	}
	defer remove()
	transport, ports := s.checkPorts(key, known)
	found = append(found, ports...)
	if transport == nil {
		return append(found, healthy("join", "not tried: there is nothing to dial from").warn("mend what fails above, and run doctor again"))
	}
	defer transport.Close()
	if announced := transport.Addresses(); len(announced) > 0 {
		found = append(found, s.checkAddresses(announced))
	}
	found = append(found, checkClock(time.Now()))
	return append(found, s.checkJoin(ctx, transport)...)
}

// errUnhealthy: something failed, as the lines above say.
var errUnhealthy = errors.New("this peer would not get on as it is: see the lines that begin with fail")

// printDiagnoses prints what was found, and as JSON if asked to: then that is all there is
// on standard output.
func printDiagnoses(found []diagnosis, asJSON bool, std cli.Streams) error {
	var words io.Writer = std.Out
	if asJSON {
		words = std.Err
	}
	count := map[string]int{}
	var text strings.Builder
	for _, d := range found {
		count[d.Level]++
		fmt.Fprintf(&text, "%-4s  %-9s  %s", d.Level, d.What, d.Finding)
		if d.Remedy != "" {
			fmt.Fprintf(&text, "  →  %s", d.Remedy)
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(words, text.String())
	if err == nil && asJSON {
		err = json.NewEncoder(std.Out).Encode(map[string]any{
			"checks": found, "ok": count[levelOK], "warn": count[levelWarn], "fail": count[levelFail],
		})
	}
	switch {
	case err != nil:
		return fmt.Errorf("printing what was found: %w", err)
	case count[levelFail] > 0:
		return errUnhealthy
	}
	return nil
}
