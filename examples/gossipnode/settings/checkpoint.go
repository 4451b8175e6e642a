package settings

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// checkpointSettings say how the state of a peer is kept, and how long it may take to
// leave.
type checkpointSettings struct {
	Checkpoint      string
	CheckpointEvery time.Duration
	Keep            int
	LeaveWithin     time.Duration
}

const (
	checkpointEveryFlag    = "checkpoint-every"
	defaultCheckpointEvery = time.Minute

	defaultKeep        = 3
	maxKeep            = 10_000
	defaultLeaveWithin = 20 * time.Second
	// identityFile is the key of a peer in its checkpoint folder, if --key names no other.
	identityFile = "node.key"
)

func (s *checkpointSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Checkpoint, "checkpoint", "", "folder in which the peer's state is kept, and its identity unless --key gives one: a run that finds a checkpoint there goes on from it")
	flags.DurationVar(&s.CheckpointEvery, checkpointEveryFlag, defaultCheckpointEvery, "how often a checkpoint is saved; 0 is only at the end and on SIGTERM, as always")
	flags.IntVar(&s.Keep, "keep", defaultKeep, "number of checkpoints that are kept")
	flags.DurationVar(&s.LeaveWithin, "leave-within", defaultLeaveWithin, "most time that leaving in good order may take after SIGINT or SIGTERM")
}

func (s checkpointSettings) faults() (faults cli.Faults) {
	faults.If(s.CheckpointEvery < 0, checkpointEveryFlag, "%s: want a time that is not negative", s.CheckpointEvery)
	faults.If(s.Checkpoint == "" && s.CheckpointEvery != defaultCheckpointEvery, checkpointEveryFlag, "needs --checkpoint, the folder that checkpoints are saved in")
	faults.If(s.Checkpoint == "" && s.Keep != defaultKeep, "keep", "needs --checkpoint, the folder whose checkpoints it counts")
	faults.If(s.Keep < 1 || s.Keep > maxKeep, "keep", "%d: want 1 to %d", s.Keep, maxKeep)
	faults.If(s.LeaveWithin <= 0, "leave-within", "%s: want a positive time", s.LeaveWithin)
	return faults
}
