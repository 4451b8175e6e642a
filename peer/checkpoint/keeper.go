package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/tensor"
)

// Keeper saves checkpoints of a peer beside its training. It keeps room for one copy of
// the model and of the optimizer's state. Start, End, Last, Interrupted and Rescued belong
// to the goroutine that trains; a nil Keeper saves nothing.
type Keeper struct {
	KeeperConfig

	file      *tensor.Params // whose vector the next two are parts of
	params    tensor.Vector
	optimizer optim.State
	inFile    []string // the optimizer's vectors there

	savedAt atomic.Pointer[time.Time] // when a checkpoint was last saved, or the keeper made

	ended   chan struct{}
	running sync.WaitGroup
	stop    sync.Once
}

// KeeperConfig says what a Keeper keeps, how often and where.
type KeeperConfig struct {
	Into Folder
	// Refused are the errors with which Into has refused files: those are left alone.
	Refused  []error
	Peer     *peer.Peer
	Layout   *tensor.Layout // of the peer's parameters
	Schedule optim.Schedule
	// Every is the time between two checkpoints while the peer trains; 0 is none then. The first
	// come sooner: after firstAfter, and each after twice the time of the one before.
	Every time.Duration
	Log   *zap.Logger
}

// NewKeeper makes a Keeper, which does nothing by itself until Start.
func NewKeeper(c KeeperConfig) *Keeper {
	c.Into.refused = refusedPaths(c.Refused)
	k := &Keeper{KeeperConfig: c, ended: make(chan struct{})}
	made := time.Now()
	k.savedAt.Store(&made)
	return k
}

// Start saves whenever it is due and there were steps, until End.
func (k *Keeper) Start() {
	if k == nil || k.Every == 0 {
		return
	}
	k.running.Go(func() { k.repeat(func() uint64 { return k.Peer.Stats().Steps }, k.attempt) })
}

// firstAfter is how long a peer has to live for what it did to outlive it.
const firstAfter = 5 * time.Second

// repeat saves each time that one is due, if there were steps, until End.
func (k *Keeper) repeat(steps func() uint64, save func()) {
	every := min(k.Every, firstAfter)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for last := steps(); ; {
		select {
		case <-k.ended:
			return
		case <-ticker.C:
		}
		if now := steps(); now != last {
			last = now
			if every < k.Every {
				every = min(2*every, k.Every)
				ticker.Reset(every)
			}
			save()
		}
	}
}

// End stops what Start began, and waits for it.
func (k *Keeper) End() {
	if k != nil {
		k.stop.Do(func() { close(k.ended) })
		k.running.Wait()
	}
}

// attempt saves, and says what kept it from that: the run goes on.
func (k *Keeper) attempt() {
	if err := k.save(); err != nil {
		k.Log.Error("no checkpoint could be saved; the run goes on, the ones before are kept, and it is tried again when the next is due. Make room on the disk, or see who may write there",
			zap.String("folder", k.Into.Dir), zap.Error(err))
	}
}

// save writes a checkpoint. The caller sees to it that nobody else saves.
func (k *Keeper) save() error {
	began := time.Now()
	done, err := k.copy()
	if err != nil {
		return err
	}
	metadata := k.Into.describe(k.Layout, began)
	if err := progressMetadata(metadata, done, k.optimizer); err != nil {
		return err
	}
	schedule, err := json.Marshal(k.Schedule)
	if err != nil {
		return fmt.Errorf("encoding the schedule: %w", err)
	}
	metadata[keySchedule], metadata[keyPeer] = string(schedule), string(k.Peer.Self())
	metadata[keyTarget] = strconv.FormatUint(k.Peer.Stats().Target, 10)
	Seal(metadata, k.file)
	path, err := k.Into.save(k.file, metadata)
	if path == "" {
		return err
	}
	if err != nil {
		k.Log.Warn("a checkpoint was saved, but older ones stay", zap.Error(err))
	}
	k.savedAt.Store(&began)
	k.Log.Debug("saved a checkpoint", zap.String("file", path), zap.String("steps", metadata[keySteps]), zap.Duration("took", time.Since(began)))
	return nil
}

// copy takes the peer's state into the vectors of the file to be.
func (k *Keeper) copy() (done peer.Checkpoint, err error) {
	for {
		if k.file == nil {
			if err := k.layOut(); err != nil {
				return done, err
			}
		}
		if done, err = k.Peer.Save(k.params, &k.optimizer); err != nil {
			return done, err
		}
		if len(k.inFile) == len(k.optimizer.Vectors) && !slices.ContainsFunc(k.inFile, func(name string) bool { return k.optimizer.Vectors[name] == nil }) {
			return done, nil
		}
		k.file = nil // the optimizer has other vectors by now
	}
}

// layOut makes room for the parameters and the vectors that the optimizer has had last.
func (k *Keeper) layOut() error {
	k.inFile = slices.Sorted(maps.Keys(k.optimizer.Vectors))
	var specs []tensor.Spec
	for _, at := range k.Layout.Ranges() {
		specs = append(specs, tensor.Spec{Name: at.Name, Shape: at.Shape})
	}
	for _, name := range k.inFile {
		specs = append(specs, tensor.Spec{Name: optimizerPrefix + name, Shape: []int{k.Layout.Len()}})
	}
	layout, err := tensor.NewLayout(specs...)
	if err != nil {
		return fmt.Errorf("laying out a checkpoint: %w", err)
	}
	k.file = tensor.NewParams(layout)
	all, n := k.file.Vector(), k.Layout.Len()
	k.params = all[:n:n]
	for i, name := range k.inFile {
		k.optimizer.Vectors[name] = all[(i+1)*n : (i+2)*n : (i+2)*n]
	}
	return nil
}

// Age is the time since a checkpoint was last saved, or since the keeper was made, so that
// a folder nothing could ever be saved in shows too; false if none are kept.
func (k *Keeper) Age() (time.Duration, bool) {
	if k == nil {
		return 0, false
	}
	return time.Since(*k.savedAt.Load()), true
}

// Last saves when the peer has left, if it has done anything in this life.
func (k *Keeper) Last(s stats.Peer) error {
	if k == nil || Idle(s) {
		return nil
	}
	return k.save()
}

// Interrupted saves when somebody asked for an end, before the peer leaves: that may
// take longer than there is time. If nothing was done, there is nothing to save, and to
// do so would cost one of the checkpoints that are kept.
func (k *Keeper) Interrupted(ctx context.Context) {
	if k != nil && ctx.Err() != nil && !Idle(k.Peer.Stats()) {
		k.attempt()
	}
}

// Rescued saves when training cannot go on, if anything was done: what was learned until
// then is as good as it was. It reports what kept it from that.
func (k *Keeper) Rescued() error {
	if k == nil || Idle(k.Peer.Stats()) {
		return nil
	}
	k.End()
	return k.save()
}

// Idle tells that a peer's model is the one with which this life of it began, or that of
// a flock from which it can be had again: there is nothing to save.
func Idle(s stats.Peer) bool { return s.Steps == s.Resumed && s.Exchanges.Completed() == 0 }
