package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/checkpoint"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
)

// checkpointSettings say how the state of a peer is kept, and how long it may take to
// leave.
type checkpointSettings struct {
	Checkpoint      string
	CheckpointEvery string
	Keep            int
	LeaveWithin     time.Duration
}

const (
	defaultKeep        = 3
	maxKeep            = 10_000
	defaultLeaveWithin = 20 * time.Second
	// identityFile is the key of a peer in its checkpoint folder, if --key names no other.
	identityFile = "node.key"
)

func (s *checkpointSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Checkpoint, "checkpoint", "", "folder in which the peer's state is kept, and its identity unless --key gives one: a run that finds a checkpoint there goes on from it")
	flags.StringVar(&s.CheckpointEvery, checkpoint.CadenceFlag, checkpoint.CadenceAuto, "how often a checkpoint is saved: auto (each epoch or minute, whichever comes first), a time such as 5m, epochs such as 2e, a number of steps, or end (at the end and on SIGTERM, as always)")
	flags.IntVar(&s.Keep, "keep", defaultKeep, "number of checkpoints that are kept")
	flags.DurationVar(&s.LeaveWithin, "leave-within", defaultLeaveWithin, "most time that leaving in good order may take after SIGINT or SIGTERM")
}

func (s checkpointSettings) faults() (faults []error) {
	if _, err := checkpoint.ParseCadence(s.CheckpointEvery); err != nil {
		faults = append(faults, err)
	}
	if s.Checkpoint == "" && s.CheckpointEvery != checkpoint.CadenceAuto {
		faults = append(faults, cli.Faultf(checkpoint.CadenceFlag, "needs --checkpoint, the folder that checkpoints are saved in"))
	}
	if s.Checkpoint == "" && s.Keep != defaultKeep {
		faults = append(faults, cli.Faultf("keep", "needs --checkpoint, the folder whose checkpoints it counts"))
	}
	if s.Keep < 1 || s.Keep > maxKeep {
		faults = append(faults, cli.Faultf("keep", "%d: want 1 to %d", s.Keep, maxKeep))
	}
	if s.LeaveWithin <= 0 {
		faults = append(faults, cli.Faultf("leave-within", "%s: want a positive time", s.LeaveWithin))
	}
	return faults
}

// checkpoints is the folder of --checkpoint.
func (s settings) checkpoints() checkpoint.Folder {
	return checkpoint.Folder{Dir: s.Checkpoint, Run: s.Run, Dataset: s.Dataset, Model: s.Model, Keep: s.Keep}
}

// lockFolder locks the folder of --checkpoint, if it is there.
func (s settings) lockFolder(log *zap.Logger) (*checkpoint.Lock, error) {
	if s.Checkpoint == "" {
		return nil, nil
	}
	return s.checkpoints().Lock(log)
}

// takeFolder makes the folder of --checkpoint and locks it, unless lockFolder has, sees to
// it that it can be written to, and keeps the identity there. It returns the lock, which
// stays held if that fails.
func (s settings) takeFolder(lock *checkpoint.Lock, key ed25519.PrivateKey, log *zap.Logger) (_ *checkpoint.Lock, err error) {
	if s.Checkpoint == "" {
		return nil, nil
	}
	if lock == nil {
		if lock, err = s.checkpoints().Make(log); err != nil {
			return nil, err
		}
	}
	if err := s.checkpoints().Probe(); err != nil {
		return lock, err
	}
	return lock, s.occupy(key)
}

// resume takes up the newest checkpoint of the folder that can be used, if one is there.
func (w *workload) resume(s settings) (err error) {
	if s.Checkpoint != "" {
		w.resumed, w.refused, err = s.checkpoints().Load(w.params)
	}
	return err
}

// behind is what lies behind the initial values.
func (w *workload) behind() peer.Checkpoint {
	if w.resumed == nil {
		return peer.Checkpoint{}
	}
	return w.resumed.Checkpoint
}

// newKeeper makes what saves checkpoints of this peer; nil without --checkpoint.
func (t *training) newKeeper() *checkpoint.Keeper {
	if t.Checkpoint == "" {
		return nil
	}
	every, _ := checkpoint.ParseCadence(t.CheckpointEvery) // validate has seen to it
	return checkpoint.NewKeeper(checkpoint.KeeperConfig{
		Into: t.checkpoints(), Refused: t.refused, Peer: t.peer, Layout: t.params.Layout(), Schedule: t.schedule(),
		Every: every, Epoch: float64(t.data.Total) / float64(t.Batch), Log: t.log,
	})
}

// tellResumed says where the run goes on, and what has been passed over.
func (t *training) tellResumed() {
	for _, err := range t.refused {
		t.log.Warn("a checkpoint is refused; the one before it is used. Move it away if it is of no use", zap.Error(err))
	}
	if t.resumed == nil {
		return
	}
	c, stats := t.behind(), t.peer.Stats()
	t.log.Info("resuming from a checkpoint", zap.String("file", t.resumed.Path), zap.Uint64("steps", c.Own),
		zap.Uint64("flock_steps", c.FlockSteps), zap.Uint64("incarnation", stats.Incarnation))
	if of := t.resumed.Peer(); of != "" && of != string(t.peer.Self()) {
		t.log.Warn("the checkpoint is another peer's: what that one has done counts as done by this one, and twice if both take part. Give its key with --key; or begin from the model alone, with gossipnode export and --init",
			zap.String("of", of))
	}
	saved := t.resumed.Course()
	if text, err := json.Marshal(t.schedule()); err == nil && saved != "" && saved != string(text) {
		t.log.Warn("the learning rate takes another course than when the checkpoint was saved: that of the flags holds from here on",
			zap.String("saved", checkpoint.InWords(saved)), zap.String("now", checkpoint.InWords(string(text))))
	}
	if stats.Target > 0 && c.FlockSteps >= stats.Target {
		t.log.Info("the run of this checkpoint has done its work: for more, give more --epochs or --steps, or another folder")
	}
}

// schedule is the course of the learning rate.
func (t *training) schedule() peer.Schedule {
	s := peer.Schedule{Rate: t.rate(), Warmup: t.Warmup}
	s.Shape, s.At = shapeOf(t.Schedule)
	return s
}

// restore gives an optimizer the state of the checkpoint. One of another optimizer is
// left: what an optimizer remembers is soon made anew.
func (t *training) restore(optimizer peer.Optimizer) {
	stateful, ok := optimizer.(peer.StatefulOptimizer)
	if !ok || t.resumed == nil || t.resumed.Optimizer.Kind == "" {
		return
	}
	if err := stateful.Restore(t.resumed.Optimizer); err != nil {
		t.log.Warn("the optimizer begins without the state of the checkpoint", zap.Error(err))
	}
	t.resumed.Optimizer.Vectors = nil // the optimizer's own now, or of no use
}

// identityPath is where the identity lasts: the file of --key, or one beside the
// checkpoints, whose peer it is.
func (s settings) identityPath() string {
	if s.Key == "" && s.Checkpoint != "" {
		return filepath.Join(s.Checkpoint, identityFile)
	}
	return s.Key
}

// knownPeers is the file beside the identity; one that does not last remembers nobody.
func (s settings) knownPeers() string {
	if path := s.identityPath(); path != "" {
		return path + knownSuffix
	}
	return ""
}

// lasting is the key of a peer: that of --key, or the one beside the checkpoints, or a
// new one, which occupy keeps.
func (s settings) lasting(log *zap.Logger) (ed25519.PrivateKey, error) {
	if path := s.identityPath(); path != s.Key {
		key, err := readKey(path, log)
		if !errors.Is(err, fs.ErrNotExist) {
			return key, err
		}
	}
	return s.identity(log)
}

// occupy keeps the identity in the folder of the checkpoints if it is given by no other
// file.
func (s settings) occupy(key ed25519.PrivateKey) error {
	path := s.identityPath()
	if path == s.Key {
		return nil
	}
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	err = s.checkpoints().Put(identityFile, text, keyMode)
	if errors.Is(err, fs.ErrExist) {
		return nil // it is where the key comes from
	}
	if err != nil {
		return fmt.Errorf("keeping the identity beside the checkpoints: %w", err)
	}
	return nil
}

// leaveInTime calls exit if, once ctx has ended, the time of --leave-within runs out
// before done is called.
func (s settings) leaveInTime(ctx context.Context, errs io.Writer, exit func()) (done func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(s.LeaveWithin)
		defer timer.Stop()
		select {
		case <-timer.C:
			fmt.Fprintf(errs, "gossipnode: leaving has taken longer than --leave-within %s: ending at once\n", s.LeaveWithin)
			exit()
		case <-over:
		}
	})
	return func() {
		stop()
		close(over)
	}
}

// errNothingDone is a cli.ErrInterrupted that came before the first step.
var errNothingDone = fmt.Errorf("%w before the first step", cli.ErrInterrupted)

// orNothingDone is the error, or errNothingDone if it is an interruption that came before
// this peer had done anything in this life.
func (t *training) orNothingDone(err error) error {
	if errors.Is(err, cli.ErrInterrupted) && checkpoint.Idle(t.peer.Stats()) {
		return errNothingDone
	}
	return err
}

// unsavedError is an errInterrupted of which the last checkpoint could not be saved.
type unsavedError struct{ cause error }

func (e *unsavedError) Error() string {
	return fmt.Sprintf("%v, and the last checkpoint could not be saved: %v", cli.ErrInterrupted, e.cause)
}

func (e *unsavedError) Unwrap() []error { return []error{cli.ErrInterrupted, e.cause} }

// interruption tells an end that was asked for, and what has become of the work.
func (s settings) interruption(err error) error {
	nothing := errors.Is(err, errNothingDone)
	var unsaved *unsavedError
	switch {
	case !errors.Is(err, cli.ErrInterrupted):
		return err
	case errors.As(err, &unsaved):
		return fmt.Errorf("%w: %s has what was saved before, not what was learned since; make room there, or see who may write", err, s.Checkpoint)
	case nothing && s.Checkpoint == "":
		return fmt.Errorf("%w: nothing was learned", err)
	case nothing:
		return fmt.Errorf("%w: nothing was learned, and the checkpoints in %s are as they were", err, s.Checkpoint)
	case s.Checkpoint == "":
		return fmt.Errorf("%w before the work was done; with --checkpoint DIR the model would have been kept", err)
	}
	return fmt.Errorf("%w before the work was done; what was learned is kept in %s", err, s.Checkpoint)
}

// asReported is an error that has been logged or told, nil if there is none.
func asReported(err error) error {
	if err == nil {
		return nil
	}
	return reported{err}
}
