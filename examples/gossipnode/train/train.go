// Package train runs one peer, from its data to its result.
package train

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/history"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/examples/gossipnode/metrics"
	planned "github.com/seed-97356399/murmuration/examples/gossipnode/plan"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/plan"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// reportEvery is the time between two reports of progress.
const reportEvery = 200 * time.Millisecond

// training is one peer that trains. It belongs to one goroutine.
type training struct {
	settings.Settings
	work *workload.Workload
	Observer
	policy quant.Policy
	peer   *member
	keeper *checkpoint.Keeper

	batch    dataset.Batch
	measured workload.Measured
	travels
	staged staged
	clock
	seen
	record   *history.Recorder
	loss     course
	panel    panel
	pictures pictures
	waiting  atomic.Bool // whether it waits for the members that --min-peers asks for
	// announced are the addresses to join that were reported while the data was prepared.
	announced []string
}

// Run trains one peer, from its data to its result. When ctx ends early, it saves a checkpoint, leaves the run, and
// returns cli.ErrInterrupted. The first step waits for Observer.Begin.
func Run(ctx context.Context, s settings.Settings, to Observer) (_ result.Share, err error) {
	log := to.Log
	s = settings.ForFollow(s.ForTasks())
	duties := newDuties(s, log)
	ctx, changed := obedient(ctx, s.Allow, to, duties)
	defer func() { err = unlessDrained(ctx, err) }()
	if err := s.KnowOperator(log); err != nil {
		return result.Share{}, cli.Config(err)
	}
	lock, err := s.Checkpoints().Lock(log)
	if err != nil {
		return result.Share{}, folderFault(err)
	}
	defer func() { _ = lock.Close() }() // if this fails, the end of the process unlocks
	key, err := s.Lasting(log)
	if err != nil {
		return result.Share{}, cli.Config(err)
	}
	admission, err := s.Admission(log)
	if err != nil {
		return result.Share{}, cli.Config(err)
	}
	p := &preparing{Settings: &s, Observer: to, network: networkOf(s, key, admission, changed, log), duties: duties}
	defer func() {
		if p.node != nil {
			_ = p.node.Close() // after leave, which has closed the node and logged the error
		}
	}()
	if s.TaskFile != "" {
		if _, err := planned.Read(s.TaskFile, plan.Member{Name: "this peer", Speed: 1}); err != nil {
			return result.Share{}, cli.Config(cli.Faultf("tasks", "%s: %v", s.TaskFile, err))
		}
	}
	if s.Hold {
		return hold(ctx, p, key.Public().(ed25519.PublicKey))
	}
	work, err := p.work(ctx, key.Public().(ed25519.PublicKey))
	if err != nil {
		return result.Share{}, err
	}
	defer func() { err = errors.Join(err, work.Batches.Close()) }()
	if lock, err = takeFolder(s, lock, key, work, to); err != nil {
		return result.Share{}, err
	}
	if err := work.Keep(s.PipelineFile()); err != nil {
		return result.Share{}, err
	}
	var counts *metrics.Server
	if s.Metrics != "" {
		if counts, err = metrics.Listen(s.Metrics); err != nil {
			return result.Share{}, cli.Config(err)
		}
		defer func() { err = errors.Join(err, counts.Close()) }()
	}
	dashboard, server, err := openServers(s)
	if err != nil {
		return result.Share{}, cli.Config(err)
	}
	defer func() { err = errors.Join(err, dashboard.Close(), server.Close()) }()
	if ctx.Err() != nil {
		return result.Share{}, ErrNothingDone
	}
	policy, err := work.Codecs(s)
	if err != nil {
		return result.Share{}, err
	}
	record, err := history.Open(s.History, s.Trace, to.Begin == nil && s.Checkpoint == "", log)
	if err != nil {
		return result.Share{}, cli.Config(err)
	}
	defer record.Close()
	t := &training{record: record, Settings: s, work: work, policy: policy, Observer: to, measured: workload.Measured{Singly: work.Batches}, clock: clock{started: time.Now()}, announced: p.announced, travels: travels{taker: p.taker, duties: duties}}
	if t.peer, err = begin(ctx, t, p); err != nil {
		return result.Share{}, cli.ConfigOf(err, settings.Unusable...)
	}
	defer t.leave()
	if err := give(ctx, t); err != nil {
		return result.Share{}, err
	}
	t.record.Named(s.PeerName(), t.peer.Self())
	t.keeper = newKeeper(t)
	t.keeper.Start()
	defer t.keeper.End() // runs before t.leave
	if counts != nil {
		counts.Serve(t.peer, t.keeper.Age, s.Pprof)
	}
	serves(t, server)
	if err := t.panel.show(t, dashboard); err != nil {
		return result.Share{}, err
	}
	defer t.panel.alarms.judge(t)()
	done, err := t.run(ctx)
	if err == nil && to.Stay != nil && !drained(ctx) {
		to.Stay(done, t.panel.board.Load().Show)
	}
	if errors.Is(err, transport.ErrDuplicate) {
		err = fmt.Errorf("%w: %s", err, settings.Remedy(err))
	} else if errors.As(err, new(*transport.RefusedError)) {
		err = fmt.Errorf("%w: %s", errRefused, cmp.Or(settings.Remedy(err), "read the log of the peers there"))
	}
	return done, err
}

// trains is the configuration of the peer's training.
func (t *training) trains() (peer.Training, error) {
	until, err := aim(t)
	if err != nil {
		return peer.Training{}, err
	}
	pace, _ := t.Pace() // Validate has checked it
	with := peer.Training{
		Params: t.work.Params, Checkpoint: behind(t), Optimizer: t.NewOptimizer(t.work.Params.Layout()), Schedule: t.Course(), Work: t.work.Target,
		Exchange: peer.Exchange{Pace: pace, Codec: t.policy, Lanes: t.Lanes, Topology: t.Shape(), Machine: t.Machine(t.Batch, t.Outer()), Final: mergeOf(t)},
	}
	with.Work.Grace, with.Work.Until = t.Grace(), until
	with.Hooks.Exchanged = func(e peer.Exchanged) {
		if e.Err != nil {
			return
		}
		t.partners.met(e.Partner, time.Since(t.started))
		t.record.Exchanged(e.Partner, e.Inbound, e.Took)
	}
	if t.Dashboard != "" {
		t.panel.subscribe(&with.Hooks)
	}
	restore(t, with.Optimizer)
	return with, nil
}

// run runs the peer until it has left, and returns its result.
func (t *training) run(ctx context.Context) (result.Share, error) {
	tellResumed(t)
	if t.Strategy == settings.StrategyAlone && len(t.Join) > 0 {
		t.Log.Warn("training alone: --join is not heeded")
	}
	t.Log.Info("how exchanges are coded", zap.Strings("joint_layers", t.policy.Explain(t.work.Params.Layout())))
	t.pictures.tell(t)
	started(t)
	if err := unlessDrained(ctx, gather(ctx, t)); err != nil {
		return result.Share{}, orNothingDone(t, err)
	}
	seconds, err := t.learn(ctx)
	err = unlessDrained(ctx, err)
	_ = t.work.Batches.Close() // tells holders what became of their rows; Run closes it again, and returns the error
	if err != nil && !errors.Is(err, cli.ErrInterrupted) {
		return result.Share{}, errors.Join(err, t.keeper.Rescued())
	}
	t.progress(true)
	t.keeper.End()
	t.keeper.Interrupted(ctx)
	t.pictures.tell(t)
	// Until all have finished, the peer serves the others, and its model comes
	// closer to theirs. The result is about the model after that.
	before := t.peer.Stats()
	table := crossEvaluate(ctx, t, err)
	whole, apart := collect(ctx, t, err)
	t.leave()
	stats := t.peer.Stats()
	stats.Role, stats.Lost, stats.Members = before.Role, before.Lost, before.Members
	if _, err := t.peer.Snapshot(t.work.Params.Vector(), 0); err != nil {
		return result.Share{}, err
	}
	unsaved := t.keeper.Last(stats)
	t.work.Params = whole
	if apart != nil {
		return result.Share{}, errors.Join(apart, unsaved)
	}
	if unsaved != nil {
		t.Log.Error("the last checkpoint could not be saved; the ones before are kept", zap.Error(unsaved))
	}
	if err != nil && unsaved != nil {
		return result.Share{}, &UnsavedError{unsaved}
	}
	if err != nil {
		return result.Share{}, orNothingDone(t, err)
	}
	ending := takeBest(t, stats)
	share := result.Share{
		Result: t.result(stats, seconds, ending), Initiated: stats.Exchanges.Initiated, Sketch: result.SketchOfShared(t.work.Params), Unsaved: unsaved,
		Found: stats.Joined || t.members > 1 || t.AloneOK,
	}
	share.Result.Cross, share.Result.Tasks, share.Result.Followed = table, t.tasks, t.followed
	share.Result.Travelled, share.Taken = travelled(t)
	return share, nil
}

// say reports news to the observer.
func (t *training) say(text string) { t.Tell(watch.Report{Kind: watch.ReportNews, Said: text}) }

// leave leaves the run. It only logs an error, which does not harm what was learned.
func (t *training) leave() {
	if t.staged.Pipeline != nil {
		_ = t.staged.Close() // it never fails
	}
	if t.holder != nil {
		_ = t.peer.trainer().Close() // serves the others until they have done the work, for which they need rows; it never fails
		_ = t.holder.Close()         // likewise
	}
	if err := t.peer.Close(); err != nil {
		t.Log.Debug("leaving the run", zap.Error(err))
	}
	t.panel.board.Load().Rest()
}

// learn makes steps until the run is over, and returns the time that this took.
func (t *training) learn(ctx context.Context) (time.Duration, error) {
	if t.TaskFile != "" || t.Follow != "" {
		return otherwise(ctx, t)
	}
	overlap(t)
	if t.staged.Pipeline != nil {
		if err := ready(ctx, t, does(t)); err != nil {
			return 0, err
		}
	}
	then := peer.Accumulate(t.Accumulate, func(x, grad tensor.Vector) (peer.Result, error) { return t.gradient(ctx, x, grad) })
	step := firstGradient(ctx, t, then)
	if t.ServeOnly {
		if err := ready(ctx, t, "serving parameters"); err != nil {
			return 0, err
		}
	}
	for working := t.duties.working(ctx); ; {
		err := turn(working, t, step)
		if err != nil && working.Err() != nil && ctx.Err() == nil && !errors.Is(err, peer.ErrRunOver) {
			if working, err = rest(ctx, t); err == nil {
				continue
			}
		}
		switch {
		case err == nil:
			step = then
			t.progress(false)
		case errors.Is(err, peer.ErrRunOver):
			took := t.elapsed()
			t.awaitResting(ctx)
			return took, nil
		case ctx.Err() != nil:
			return t.elapsed(), cli.ErrInterrupted
		default:
			return t.elapsed(), err
		}
	}
}

// progress reports the peer's progress: at once if now is set, else only every reportEvery.
func (t *training) progress(now bool) {
	if !now && time.Since(t.reported) < reportEvery {
		return
	}
	t.reported, t.share = time.Now(), 0
	t.pictures.name(t)
	stats := t.peer.Stats()
	t.panel.look(t, stats, now)
	t.members = max(t.members, stats.Members)
	warnAlone(t, stats)
	forecast(t, stats)
	if t.joined == 0 && stats.Joined && stats.Members > 1 {
		t.joined = time.Since(t.started)
	}
	t.record.Progress(stats, t.elapsed(), now)
	current := watch.StatusOf(stats, t.elapsed())
	current.Begun = t.begun
	t.Tell(watch.Report{Kind: watch.ReportProgress, Status: &current})
}

// result evaluates the model and collects the figures of this peer.
func (t *training) result(stats stats.Peer, took time.Duration, ending result.Ending) result.Result {
	right, loss := evaluated(t)
	status, seconds := watch.StatusOf(stats, took), took.Seconds()
	partners, firstExchange := t.partners.count()
	memory, _ := host.PeakMemory() // 0 if it is unknown
	r := result.Result{
		Peers: max(t.members, 1), Joined: t.members > 1 || status.Exchanges > 0, Strategy: t.Strategy, Codec: t.policy.Effective().Codec, Dataset: t.Dataset, Model: t.Model,
		Steps: stats.Steps, Seconds: seconds,
		TestAccuracy: result.Accuracy{Mean: cli.Number(right), Min: cli.Number(right), Max: cli.Number(right)},
		TestLoss:     cli.Number(loss), Loss: status.Loss, RanAway: t.loss.away, ConsensusDistance: distanceKnown(stats),
		Exchanges: status.Exchanges, Refused: stats.Exchanges.Refused, Failed: stats.Exchanges.Failed,
		InDoubt: stats.Exchanges.InDoubt + stats.Exchanges.Lost, PeersLost: stats.Lost, JoinSeconds: t.joined.Seconds(),
		ConnectionsMax: stats.ConnectionsMax, BytesSent: stats.Exchanges.BytesSent,
		BitsPerParameter: cli.Number(stats.Exchanges.BitsPerParameter), ResumedStep: stats.Resumed,
		Every: stats.Exchanges.Every, LongestHold: stats.Exchanges.LongestHold.Seconds(),
		FirstExchangeSeconds: firstExchange.Seconds(),
		PeakMemory:           result.SpreadOf(float64(cmp.Or(t.staged.memory, memory))), Partners: result.SpreadOf(float64(partners)),
		Links: linksOf(stats), Name: stats.Name, Peer: string(stats.Self), Role: stats.Role, FinalResult: finalOf(t, stats.Merged), TextFigures: textOf(t, loss), Ending: ending, GlobalBatch: t.GlobalBatch,
	}
	if t.IsTable() && t.Follow == "" {
		area := accuracyOf(t.work.Area(context.Background()))
		r.AUC = &area
	}
	if seconds > 0 {
		r.SamplesPerSecond = float64(t.peer.Counters().Samples) / seconds
	}
	return r
}

// gradient computes the gradient of the next batch.
func (t *training) gradient(ctx context.Context, x, grad tensor.Vector) (peer.Result, error) {
	if err := t.nextBatch(); err != nil {
		return peer.Result{}, err
	}
	return t.learned(ctx, x, grad)
}

// learned computes the gradient of the batch.
func (t *training) learned(ctx context.Context, x, grad tensor.Vector) (peer.Result, error) {
	began := time.Now()
	loss := t.work.Model.Gradient(x, &t.batch, grad)
	if t.loss.see(loss, t.work.Data.Classes()) {
		t.Log.Warn("the loss runs away: this model is of no use as it is. Begin anew with a tenth of --lr, or with --clip 1 or --optimizer adamw",
			zap.Float64("loss", loss), zap.Float64("at_the_start", t.loss.start), zap.Float64("lr", t.Rate()))
	}
	select {
	case <-time.After(t.LeastStep/time.Duration(max(t.Accumulate, 1)) - time.Since(began)):
	case <-ctx.Done():
	}
	t.record.Computed(began, time.Now())
	return peer.Result{Loss: loss, Samples: t.batch.Len()}, nil
}

// nextBatch takes the next batch. If the pictures of a step are divided by speed, the
// peers have agreed on its size.
func (t *training) nextBatch() error {
	if !t.Divides() {
		return t.work.Batches.Next(&t.batch)
	}
	return t.measured.Fill(&t.batch, t.peer.Batch(ownBatch(t)))
}
