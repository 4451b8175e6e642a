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
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// Keeper saves checkpoints of a peer during training. It has memory for one copy of the model and of the optimizer's
// state. Only the training goroutine may call Start, End, Last, Interrupted and Rescued; a nil Keeper saves nothing.
type Keeper struct {
	KeeperConfig

	file      *tensor.Params // the next two are parts of its vector
	params    tensor.Vector
	optimizer optim.State
	inFile    []string // names of the optimizer's vectors in file

	savedAt atomic.Pointer[time.Time] // when a checkpoint was last saved, or the Keeper was made

	saving  chan struct{} // holds a token while the vectors are filled and written: Start's goroutine may be at it when Last is called
	ended   chan struct{}
	running sync.WaitGroup
	stop    sync.Once
}

// Peer is the part of a peer that a Keeper saves: a *peer.Peer is one. What stands for a node whose trainer changes saves the one of the
// moment.
type Peer interface {
	Self() transport.PeerID
	Stats() stats.Peer
	Save(params tensor.Vector, optimizer *optim.State) (peer.Checkpoint, error)
}

// KeeperConfig says what a Keeper saves, how often and where.
type KeeperConfig struct {
	Into Folder
	// Refused are the errors with which Into has refused files; these files stay as they are.
	Refused  []error
	Peer     Peer
	Layout   *tensor.Layout // of the peer's parameters
	Schedule optim.Schedule
	// Every is the time between two checkpoints while the peer trains; none is saved then if it is 0 or less. The first ones come sooner:
	// the first after firstAfter, each further one after twice the time of the one before.
	Every time.Duration
	// About makes entries like those of Into.About that change with the run. It is called before the model is copied, so
	// what it says has been done stands in the model. It may be nil.
	About func() map[string]string
	Log   *zap.Logger
}

// NewKeeper makes a Keeper, which does nothing before Start.
func NewKeeper(c KeeperConfig) *Keeper {
	c.Into.refused = refusedPaths(c.Refused)
	k := &Keeper{KeeperConfig: c, saving: make(chan struct{}, 1), ended: make(chan struct{})}
	made := time.Now()
	k.savedAt.Store(&made)
	return k
}

// Start saves at each due time if there were steps, until End.
func (k *Keeper) Start() {
	if k == nil || k.Every <= 0 {
		return
	}
	k.running.Go(func() { k.repeat(func() uint64 { return k.Peer.Stats().Steps }, k.attempt) })
}

// firstAfter is the time from the start to the first checkpoint.
const firstAfter = 5 * time.Second

// repeat saves at each due time if there were steps, until End.
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

// End stops the goroutine of Start, and waits for it.
func (k *Keeper) End() {
	if k != nil {
		k.stop.Do(func() { close(k.ended) })
		k.running.Wait()
	}
}

// attempt saves, and logs an error: the run continues.
func (k *Keeper) attempt() {
	if err := k.save(); err != nil {
		k.Log.Error("no checkpoint could be saved; the run goes on, the ones before are kept, and it is tried again when the next is due. Make room on the disk, or see who may write there",
			zap.String("folder", k.Into.Dir), zap.Error(err))
	}
}

// save writes a checkpoint.
func (k *Keeper) save() error {
	k.saving <- struct{}{}
	defer func() { <-k.saving }()
	began, metadata := time.Now(), map[string]string{}
	if k.About != nil {
		maps.Copy(metadata, k.About())
	}
	done, err := k.copy()
	if err != nil {
		return err
	}
	maps.Copy(metadata, k.Into.describe(k.Layout, began))
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

// copy copies the peer's state to the vectors of the next file.
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
		k.file = nil // the optimizer has different vectors now
	}
}

// layOut allocates memory for the parameters and the optimizer's current vectors.
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

// Age is the time since a checkpoint was last saved, or, if none was, since the Keeper was made: that shows a folder
// in which nothing can be saved. It reports false if no checkpoints are kept.
func (k *Keeper) Age() (time.Duration, bool) {
	if k == nil {
		return 0, false
	}
	return time.Since(*k.savedAt.Load()), true
}

// Last saves after the peer has left, if it has done anything in this incarnation.
func (k *Keeper) Last(s stats.Peer) error {
	if k == nil || Idle(s) {
		return nil
	}
	return k.save()
}

// Interrupted saves when the end is requested, before the peer leaves: leaving may take longer than the time left. If
// nothing was done, it saves nothing, since that would replace an earlier checkpoint.
func (k *Keeper) Interrupted(ctx context.Context) {
	if k != nil && ctx.Err() != nil && !Idle(k.Peer.Stats()) {
		k.attempt()
	}
}

// Rescued saves when training cannot continue, if anything was done: the model so far is valid. It returns why that
// failed.
func (k *Keeper) Rescued() error {
	if k == nil || Idle(k.Peer.Stats()) {
		return nil
	}
	k.End()
	return k.save()
}

// Idle tells that there is nothing to save: the peer's model is the one that this incarnation began with, or a copy
// of the flock's, which can be copied again.
func Idle(s stats.Peer) bool { return s.Steps == s.Resumed && s.Exchanges.Completed() == 0 }
