// Package doctor is the command doctor: it finds what would prevent a peer of this machine from joining.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// The levels of findings.
const (
	levelOK   = "ok"
	levelWarn = "warn" // the peer works, but not as well as it could
	levelFail = "fail" // the peer would not join, or would not stay
)

// doctorTimeout bounds all checks together.
const doctorTimeout = 30 * time.Second

// diagnosis is one finding, and its remedy.
type diagnosis struct {
	Level   string `json:"level"`
	What    string `json:"what"`
	Finding string `json:"finding"`
	Remedy  string `json:"remedy,omitempty"`

	difference *description.Difference
}

func healthy(what, format string, args ...any) diagnosis {
	return diagnosis{Level: levelOK, What: what, Finding: fmt.Sprintf(format, args...)}
}

func (d diagnosis) warn(remedy string) diagnosis { d.Level, d.Remedy = levelWarn, remedy; return d }
func (d diagnosis) fail(remedy string) diagnosis { d.Level, d.Remedy = levelFail, remedy; return d }

// Command makes the command doctor.
func Command(std cli.Streams) *cobra.Command {
	var s settings.Settings
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
  settings   they are those of the run, or are taken over from it
  window     what the buffers here let one connection carry over that round trip

Each is a line: ok, warn or fail, what was checked, what was found, and what to do.
It joins nothing and leaves nothing behind. The exit code is 1 if anything fails.
Where a peer of this machine already runs on the ports of --listen, ports fails.`,
		Example: `  gossipnode doctor --listen 0.0.0.0:4001 --key node.key
  gossipnode doctor --join 192.0.2.7:4001 --model cnn
  gossipnode doctor --config node.yaml --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			if err := cmp.Or(sources.Usage(s.Unused(s.Gives(), s.TrainOnly)...), s.Validate(sources)); err != nil {
				return err
			}
			// The findings include what libp2p logs about failed connections.
			defer p2pnet.BridgeLogs(zap.NewNop())()
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
			defer cancel()
			found := findings(examine(ctx, s, sources))
			if err := cli.Print(found, s.JSON, std); err != nil || found.count(levelFail) == 0 {
				return err
			}
			return errUnhealthy
		},
	}
	s.Register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	return cmd
}

// examine makes all checks.
func examine(ctx context.Context, s settings.Settings, from cli.Origins) []diagnosis {
	key, found := checkKey(s)
	known, remove, err := copyKnown(s)
	if err != nil {
		return append(found, healthy("key", "cannot look at the identities that are known: %v", err).fail("make room, and let this user read "+s.KnownPeers()))
	}
	defer remove()
	tr, ports := checkPorts(s, key, known)
	found = append(found, ports...)
	if tr == nil {
		return append(found, healthy("join", "not tried: there is nothing to dial from").warn("mend what fails above, and run doctor again"))
	}
	defer tr.Close()
	if announced := tr.Addresses(); len(announced) > 0 {
		found = append(found, checkAddresses(s, announced))
	}
	found = append(found, checkClock(time.Now()))
	return append(found, checkJoin(ctx, s, from, tr)...)
}

// errUnhealthy: at least one check failed.
var errUnhealthy = errors.New("this peer would not join, or not stay: see the lines that begin with fail")

// findings are the findings of all checks.
type findings []diagnosis

// count is the number of findings of a level.
func (f findings) count(level string) (n int) {
	for _, d := range f {
		if d.Level == level {
			n++
		}
	}
	return n
}

// differences returns the differences between this peer's settings and the run's.
func (f findings) differences() []description.Difference {
	found := []description.Difference{}
	for _, d := range f {
		if d.difference != nil {
			found = append(found, *d.difference)
		}
	}
	return found
}

// String has a line for each finding.
func (f findings) String() string {
	var text strings.Builder
	for _, d := range f {
		fmt.Fprintf(&text, "%-4s  %-9s  %s", d.Level, d.What, d.Finding)
		if d.Remedy != "" {
			fmt.Fprintf(&text, "  →  %s", d.Remedy)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// MarshalJSON adds the number of findings of each level.
func (f findings) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"checks": []diagnosis(f), "differences": f.differences(), levelOK: f.count(levelOK), levelWarn: f.count(levelWarn), levelFail: f.count(levelFail),
	})
}

// checkAdmission checks the list and the run's key.
func checkAdmission(s settings.Settings) (_ peer.Admission, found []diagnosis) {
	if s.Allow == "" && !s.Keyed() {
		return peer.Admission{}, nil
	}
	const what = "admission"
	admission, err := s.Admission(zap.NewNop())
	info, _ := os.Stat(s.RunKey)
	_, unread := os.ReadFile(s.Allow)
	switch {
	case err != nil:
		return peer.Admission{}, []diagnosis{healthy(what, "%v", err).fail("give the file that keygen --run-key has made")}
	case s.Allow != "" && unread != nil:
		return peer.Admission{}, []diagnosis{healthy(what, "the list %s is not there, or not this user's to read", s.Allow).fail("make the file, with the id of a peer in each line")}
	case info != nil && keys.Loose(info):
		return admission, []diagnosis{healthy(what, "others on this machine may use the run's key %s", s.RunKey).warn("chmod 600 " + s.RunKey)}
	}
	return admission, []diagnosis{healthy(what, "the list and the run's key can be read")}
}
