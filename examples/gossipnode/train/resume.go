package train

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/inspect"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// takeFolder prepares the folder of --checkpoint. Without a lock, it makes and locks the folder. It
// checks that the folder can be written to, and saves the identity there. It reports a folder that
// had no checkpoint. It returns the lock, which stays held after an error, too.
func takeFolder(s settings.Settings, lock *checkpoint.Lock, key ed25519.PrivateKey, work *workload.Workload, to Observer) (_ *checkpoint.Lock, err error) {
	if s.Checkpoint == "" {
		return nil, nil
	}
	if lock == nil {
		if lock, err = s.Checkpoints().Make(to.Log); err != nil {
			return nil, folderFault(err)
		}
	} else if work.Resumed == nil && s.ModelStages() == 1 {
		to.Tell(watch.Report{Kind: watch.ReportNews, Said: fmt.Sprintf("no checkpoint in %s: this peer begins anew", s.Checkpoint)})
	}
	if err := s.Checkpoints().Probe(); err != nil {
		return lock, cli.Config(fmt.Errorf("%w: let this user write there, or give another folder with --checkpoint", err))
	}
	return lock, s.Occupy(key)
}

// folderFault adds a remedy to an error of a checkpoint folder. It is no configuration error if
// another process uses the folder, which may be free when this one is started again.
func folderFault(err error) error {
	if errors.Is(err, checkpoint.ErrInUse) {
		return settings.Remedied(err)
	}
	return cli.Config(fmt.Errorf("%w: give one that this user may make and write to with --checkpoint", err))
}

// newKeeper makes the keeper, which saves checkpoints of this peer; nil without --checkpoint.
func newKeeper(t *training) *checkpoint.Keeper {
	if t.Checkpoint == "" {
		return nil
	}
	folder := workload.Folder(t.Settings)
	folder.About = map[string]string{}
	_ = rows.About(folder.About, t.work.Data.HeldOut, nil) // how rows are prepared lies beside
	return checkpoint.NewKeeper(checkpoint.KeeperConfig{
		Into: folder, Refused: t.work.Refused, Peer: t.peer, Layout: t.work.Params.Layout(), Schedule: t.Course(),
		Every: t.CheckpointEvery, About: readSoFar(t), Log: t.Log,
	})
}

// tellResumed reports from which checkpoint the run goes on, and which ones were refused.
func tellResumed(t *training) {
	for _, err := range t.work.Refused {
		t.Log.Warn("a checkpoint is refused; the one before it is used. Move it away if it is of no use", zap.Error(err))
	}
	if t.work.Resumed == nil {
		return
	}
	c, stats := t.work.Resumed.Progress, t.peer.Stats()
	t.say(fmt.Sprintf("resuming from a checkpoint: %s, after %s, %d of all peers", t.work.Resumed.Path, cli.Plural(c.Steps, "step"), c.FlockSteps))
	if t.work.Resumed.Older {
		t.say("its layers have other names: it was written by an older build, and is read by their order and shapes")
	}
	if of := t.work.Resumed.Peer(); of != "" && of != string(t.peer.Self()) {
		t.Log.Warn("the checkpoint is another peer's: what that one has done counts as done by this one, and twice if both take part. Give its key with --key; or begin from the model alone, with gossipnode export and --init",
			zap.String("of", inspect.Quoted(of)))
	}
	saved := t.work.Resumed.Course()
	if text, err := json.Marshal(t.Course()); err == nil && saved != "" && saved != string(text) {
		t.Log.Warn("the learning rate takes another course than when the checkpoint was saved: that of the flags holds from here on",
			zap.String("saved", inspect.InWords(saved)), zap.String("now", inspect.InWords(string(text))))
	}
	if stats.Target > 0 && c.FlockSteps >= stats.Target {
		t.Log.Warn("the run of this checkpoint has done its work: for more, give more --epochs or --steps, or another folder")
	}
}

// behind is the checkpoint behind the model, with the description of the run that its founder has signed.
func behind(t *training) peer.Checkpoint {
	if t.Described.Known() {
		return t.work.Behind().Describing(t.Described)
	}
	return t.work.Behind()
}

// describedBy is the signer of the run's description, empty if it is not known.
func describedBy(t *training) transport.PeerID {
	if !t.Described.Known() && t.work.Resumed != nil {
		return t.work.Resumed.Progress.Description.Signer
	}
	return t.Described.Signer
}

// restore gives an optimizer the state of the checkpoint. It ignores the state of a
// different optimizer: an optimizer soon builds up its state again.
func restore(t *training, optimizer optim.Optimizer) {
	stateful, ok := optimizer.(optim.Stateful)
	if !ok || t.work.Resumed == nil || t.work.Resumed.Optimizer.Kind == "" {
		return
	}
	if err := stateful.Restore(t.work.Resumed.Optimizer); err != nil {
		t.Log.Warn("the optimizer begins without the state of the checkpoint", zap.Error(err))
	}
	t.work.Resumed.Optimizer = optim.State{} // the optimizer owns its vectors now, or they are useless
}

// ErrNothingDone is a cli.ErrInterrupted before the first step.
var ErrNothingDone = fmt.Errorf("%w before the first step", cli.ErrInterrupted)

// orNothingDone returns err, or ErrNothingDone if err is an interruption and this peer has
// done nothing since its process started.
func orNothingDone(t *training, err error) error {
	if errors.Is(err, cli.ErrInterrupted) && checkpoint.Idle(t.peer.Stats()) {
		return ErrNothingDone
	}
	return err
}

// UnsavedError is a cli.ErrInterrupted after which the last checkpoint could not be saved.
type UnsavedError struct{ Cause error }

func (e *UnsavedError) Error() string {
	return fmt.Sprintf("%v, and the last checkpoint could not be saved: %v", cli.ErrInterrupted, e.Cause)
}

func (e *UnsavedError) Unwrap() []error { return []error{cli.ErrInterrupted, e.Cause} }

// Interruption adds to an interruption what was learned and where it is kept.
func Interruption(s settings.Settings, err error) error {
	nothing := errors.Is(err, ErrNothingDone)
	var unsaved *UnsavedError
	switch {
	case !errors.Is(err, cli.ErrInterrupted):
		return err
	case s.Hold:
		return fmt.Errorf("%w: members that train get no more of what this one held", err)
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

// Outcome makes a report of the result of Run: the peer has done its work, or has given up.
func Outcome(done result.Share, err error) watch.Report {
	if err == nil {
		r := watch.Report{Kind: watch.ReportResult, Share: &done}
		if done.Unsaved != nil {
			r.Unsaved = done.Unsaved.Error()
		}
		return r
	}
	r := watch.Failed(err)
	var unsaved *UnsavedError
	if errors.As(err, &unsaved) {
		r.Unsaved = unsaved.Cause.Error()
	}
	return r
}
