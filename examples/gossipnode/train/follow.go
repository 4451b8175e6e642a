package train

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/arrivals"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/history"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/follow"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/tensor"
)

// overEvery is the time between two looks whether the run is over.
const overEvery = 100 * time.Millisecond

// example is a row that has come: a set of one, and where it is from.
type example struct {
	set  *dataset.Set
	from arrivals.Row
}

// joined is rows as one set.
func joined(some []example) *dataset.Set {
	sets := make([]*dataset.Set, len(some))
	for i, a := range some {
		sets[i] = a.set
	}
	return dataset.Join(sets)
}

// follower is the model of a peer that follows a folder.
type follower struct {
	*training
	ctx   context.Context
	model tensor.Vector // that is measured
}

// recent has the newest rows that no training has seen, once there are some.
type recent struct{ set atomic.Pointer[dataset.Set] }

// judges is the set by which models are judged now.
func (r *recent) judges(held *dataset.Set) *dataset.Set {
	if set := r.set.Load(); set != nil {
		return set
	}
	return held
}

// Step implements follow.Learner.
func (f *follower) Step(ctx context.Context, some []example) error {
	set := joined(some)
	set.Fill(&f.batch, 0, set.Len())
	defer f.progress(false)
	return f.peer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return f.learned(ctx, x, grad) })
}

// Right implements follow.Learner.
func (f *follower) Right(some []example) []bool {
	set := joined(some)
	_, _ = f.peer.Snapshot(f.model, 0) // fails for a vector of another length only
	likely, right := f.work.Model.Probabilities(f.model, set), make([]bool, len(some))
	for i := range right {
		of := likely[i*set.Classes() : (i+1)*set.Classes()]
		right[i] = true
		for _, p := range of {
			right[i] = right[i] && p <= of[set.Label(i)]
		}
	}
	return right
}

// Class implements follow.Learner.
func (f *follower) Class(row example) int { return row.set.Label(0) }

// Measured implements follow.Watcher: what is served is judged by these rows, too.
func (f *follower) Measured(some []example, accuracy float64) {
	f.recent.set.Store(joined(some))
	f.record.Evaluated(accuracy)
	f.panel.alarms.evaluated(accuracy)
	f.progress(false)
}

// otherwise learns where no work is given beforehand.
func otherwise(ctx context.Context, t *training) (time.Duration, error) {
	if t.Follow != "" {
		return followFolder(ctx, t)
	}
	return t.carryOut(ctx)
}

// followFolder trains on what arrives until the run is over, and returns the time that this took. A signal is no error: nothing else
// ends it, unless there is a deadline.
func followFolder(ctx context.Context, t *training) (time.Duration, error) {
	started := func(_, grad tensor.Vector) (peer.Result, error) {
		clear(grad) // this peer has joined now, and has the model of the others
		return peer.Result{}, nil
	}
	err := t.peer.Step(ctx, firstGradient(ctx, t, started))
	if err != nil {
		if ctx.Err() != nil {
			err = cli.ErrInterrupted
		}
		return t.elapsed(), err
	}
	within, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	files, folder := make(chan follow.Arrival[example]), folderOf(t.Settings, t.work, t.say)
	t.ledger = cmp.Or(t.ledger, arrivals.NewLedger(t.Part)) // without --checkpoint there is none yet
	folder.Ledger = t.ledger
	all.Go(func() { untilOver(within, t.peer, end) })
	all.Go(func() { bring(within, t, folder, files) })
	f := &follower{training: t, ctx: within, model: make(tensor.Vector, t.work.Params.Layout().Len())}
	done, err := follow.Run(within, follow.Config[example]{
		Flock: t.peer, Arrivals: files, Learner: f, Policy: t.FollowPolicy(), Price: t.Price, Passes: t.Epochs, Batch: t.Batch,
		Keep: t.Replay, Seed: t.Seed ^ uint64(t.peer.Self().Fingerprint()), Told: f.happened,
		Trained: func(rows, kept []example) { t.ledger.Trained(placesOf(rows), placesOf(kept)) },
	})
	end()
	all.Wait()
	if errors.Is(err, peer.ErrRunOver) {
		err = nil
	}
	t.followed = &result.Followed{
		Trainings: done.Trainings, MeanAccuracyOverTime: cli.Number(done.Accuracy), Arrived: done.Arrived, Waiting: done.Waiting, Kept: done.Kept,
		Refused: folder.Refused, Policy: t.FollowPolicy().String(),
	}
	if done.Arrived == 0 {
		t.say(fmt.Sprintf("nothing has come into %s that could be used: the model is as it began", t.Follow))
	}
	return t.elapsed(), err
}

// untilOver calls end once the run is over.
func untilOver(ctx context.Context, p *member, end func()) {
	ticker := time.NewTicker(overEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if p.Stats().StoppedBy != "" {
				end()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// placesOf tells where rows are from.
func placesOf(rows []example) []arrivals.Row {
	places := make([]arrivals.Row, len(rows))
	for i, a := range rows {
		places[i] = a.from
	}
	return places
}

// readSoFar makes the ledger of the folder, as the checkpoint has it if there is one, and returns what checkpoints are to say of it: nil
// without --follow.
func readSoFar(t *training) func() map[string]string {
	if t.Follow == "" {
		return nil
	}
	t.ledger = arrivals.NewLedger(t.Part)
	if t.work.Resumed != nil {
		if err := t.ledger.Resume(t.work.Resumed.About(arrivals.LedgerKey)); err != nil {
			t.say(err.Error())
		}
	}
	return func() map[string]string { return map[string]string{arrivals.LedgerKey: t.ledger.Text()} }
}

// bring hands out the rows that the run begins with, and then those of the folder.
func bring(ctx context.Context, t *training, folder *arrivals.Folder, to chan<- follow.Arrival[example]) {
	part, parts, _ := t.PartOf() // faults has checked it
	folder.Mine = func(row int) bool { return parts < 2 || row%parts == part }
	hand := func(file arrivals.File) bool {
		for _, a := range []follow.Arrival[example]{{Name: file.Name, Rows: rowsOf(file, file.Old), Old: true}, {Name: file.Name, Rows: rowsOf(file, file.New)}} {
			if len(a.Rows) == 0 {
				continue
			}
			select {
			case to <- a:
			case <-ctx.Done():
				return false
			}
		}
		return true
	}
	if t.work.Data.Train != nil && !t.Begins() {
		hand(folder.Begin("the data of the beginning", t.work.Data.Train))
	} else if t.work.Data.Train == nil {
		t.say("the pictures of the beginning do not fit into --memory: only those that come are trained on")
	}
	ticker := time.NewTicker(arrivals.Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		folder.Look(ctx, time.Now(), hand)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

func rowsOf(file arrivals.File, places []arrivals.Row) []example {
	rows := make([]example, len(places))
	for i, place := range places {
		rows[i] = example{file.Row(place), place}
	}
	return rows
}

// folderOf is the folder that a peer watches. Without a workload, nothing is read yet.
func folderOf(s settings.Settings, work *workload.Workload, say func(string)) *arrivals.Folder {
	f := &arrivals.Folder{Dir: s.Follow, Say: say, Wants: dataset.Later(s.Dataset) + ", for --dataset " + s.Dataset}
	f.Takes = func(name string) (is, companion bool) { return dataset.IsLater(s.Dataset, name) }
	f.Read = func(ctx context.Context, path string) (*dataset.Set, int, error) {
		return dataset.ReadLater(ctx, path, work.Data.HeldOut)
	}
	if s.IsTable() {
		f.Wants = "NAME." + s.Dataset + " for --dataset " + s.Dataset + ", packed or not"
		f.Takes = func(name string) (is, companion bool) { return rows.IsArrived(s.Dataset, name), false }
		var by *prepare.Prepared
		if work != nil {
			by = work.Prepared
		}
		f.Read = func(ctx context.Context, path string) (*dataset.Set, int, error) {
			return rows.ReadArrived(ctx, s.Rows(), by, path)
		}
	}
	return f
}

// begins waits for the first file that comes, if that is what the run begins with. It takes the file as the data of a table, and
// returns the workload of pictures.
func begins(ctx context.Context, p *preparing, self ed25519.PublicKey) (work *workload.Workload, err error) {
	folder := folderOf(*p.Settings, nil, func(text string) { p.Tell(watch.Report{Kind: watch.ReportNews, Said: text}) })
	folder.Read = func(ctx context.Context, path string) (*dataset.Set, int, error) {
		if p.Begun {
			return new(dataset.Set), 0, nil
		}
		if p.IsTable() {
			if err := rows.Readable(ctx, p.Rows(), path); err != nil {
				return nil, 0, err
			}
			p.Data, p.Begun = path, true
			return new(dataset.Set), 0, nil
		}
		data, err := dataset.Begun(p.Dataset, path)
		if err == nil {
			work, err = workload.Begin(*p.Settings, data, self)
			p.Begun = err == nil
		}
		return new(dataset.Set), 0, err
	}
	for began := time.Now(); ; {
		folder.Look(ctx, time.Now(), func(arrivals.File) bool { return true })
		switch {
		case p.Begun:
			return work, nil
		case p.Deadline > 0 && time.Since(began) > p.Deadline:
			return nil, fmt.Errorf("nothing that could be used has come into %s within --deadline %s: want %s", p.Follow, p.Deadline, folder.Wants)
		}
		select {
		case <-time.After(arrivals.Every):
		case <-ctx.Done():
			return nil, ErrNothingDone
		}
	}
}

// maxNames bounds the names of files in a line of the history, in bytes.
const maxNames = 2000

// happened says and records what has come, and which training has seen it.
func (f *follower) happened(e follow.Event) {
	line := history.Event{Rows: e.Rows, Training: e.Training}
	switch {
	case e.Err != nil:
		if f.ctx.Err() == nil {
			f.Log.Warn("the members did not meet as they should", zap.Error(e.Err))
		}
		return
	case e.Training > 0:
		line.Files = strings.Join(e.Names, ", ")
		accuracy := ""
		if !math.IsNaN(e.Accuracy) {
			accuracy = ", now " + cli.Percent(cli.Number(e.Accuracy)) + " of the newest rows are right"
		}
		dropped := ""
		if e.Dropped > 0 {
			dropped = fmt.Sprintf("; %d old ones, which new ones contradict, were dropped", e.Dropped)
		}
		f.say(fmt.Sprintf("training %d: %s in %s on %d new rows%s%s", e.Training, cli.Plural(uint64(e.Steps), "step"), e.Took.Round(10*time.Millisecond), e.Rows, accuracy, dropped))
	default:
		line.Files = e.Arrived
		f.say(fmt.Sprintf("%s: %d rows have come", filepath.Base(e.Arrived), e.Rows))
	}
	line.Files = line.Files[:min(len(line.Files), maxNames)]
	f.record.Happened(f.peer.Stats(), f.elapsed(), line)
}
