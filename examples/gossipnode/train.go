package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/checkpoint"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/dashboard"
	"github.com/seed-97356399/murmuration/examples/gossipnode/metrics"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// reportEvery is the time between two reports of progress.
const reportEvery = 200 * time.Millisecond

// training is one peer at work. It belongs to one goroutine.
type training struct {
	settings
	*workload
	policy quant.Policy
	log    *zap.Logger
	tell   reporter
	peer   *peer.Peer
	keeper *checkpoint.Keeper
	// begin is closed when the first step may be taken; nil is at once.
	begin <-chan struct{}

	batch dataset.Batch
	measured
	started    time.Time // when the peer was
	first      time.Time // when the first step began
	begun      float64   // how far the flock was then
	told       time.Time // when progress was last reported
	joined     time.Duration
	members    int // the most seen
	skipped    int // damaged records that have been named
	standstill standstill

	board     atomic.Pointer[dashboard.Board] // what the dashboard shows; nil without one
	dashboard string                          // where it is

	partners      partners
	firstExchange atomic.Int64 // when the first one ended, as a time since started
}

// train trains one peer, from its data to its result. When ctx ends early it
// keeps what was learned, leaves the run, and returns cli.ErrInterrupted. The first
// step waits until begin is closed, if it is not nil.
func train(ctx context.Context, s settings, log *zap.Logger, tell reporter, begin <-chan struct{}) (_ share, err error) {
	if err := s.knowOperator(log); err != nil {
		return share{}, err
	}
	lock, err := s.lockFolder(log)
	if err != nil {
		return share{}, err
	}
	defer func() { _ = lock.Close() }() // at the end of the process at the latest
	key, err := s.lasting(log)
	if err != nil {
		return share{}, err
	}
	admission, err := s.admission(log)
	if err != nil {
		return share{}, err
	}
	work, err := s.prepare(key.Public().(ed25519.PublicKey))
	if err != nil {
		return share{}, err
	}
	defer func() { err = errors.Join(err, work.batches.Close()) }()
	if lock, err = s.takeFolder(lock, key, log); err != nil {
		return share{}, err
	}
	var counts *metrics.Server
	if s.Metrics != "" {
		if counts, err = metrics.Listen(s.Metrics); err != nil {
			return share{}, err
		}
		defer func() { err = errors.Join(err, counts.Close()) }()
	}
	dashboard, err := s.openDashboard()
	if err != nil {
		return share{}, err
	}
	defer func() { err = errors.Join(err, dashboard.Close()) }()
	if ctx.Err() != nil {
		return share{}, errNothingDone
	}
	policy, err := s.codecs(work)
	if err != nil {
		return share{}, err
	}
	t := &training{settings: s, workload: work, policy: policy, log: log, tell: tell, begin: begin, measured: measured{singly: work.batches}, started: time.Now()}
	if t.peer, err = peer.Start(ctx, t.config(key, admission)); err != nil {
		return share{}, err
	}
	defer t.leave()
	t.keeper = t.newKeeper()
	t.keeper.Start()
	defer t.keeper.End() // before the peer leaves
	if counts != nil {
		counts.Serve(t.peer, t.keeper.Age, s.Pprof)
	}
	if err := t.show(dashboard); err != nil {
		return share{}, err
	}
	done, err := t.run(ctx)
	if errors.As(err, new(*peer.RefusedError)) {
		err = errRefused
	}
	return done, err
}

// errRefused: package peer has logged who refuses, why, and what to do about it.
var errRefused = errors.New("no peer to join will have this one, as logged above")

// config is that of the peer.
func (t *training) config(key ed25519.PrivateKey, admission peer.Admission) peer.Config {
	pace, _ := t.pace() // validate has seen to it
	config := peer.Config{
		Run: t.Run, Params: t.params, Join: t.Join, Work: t.target, Log: t.log,
		Network: peer.Network{
			Key: key, Listen: t.Listen, KnownPeers: t.knownPeers(), Admission: admission, State: peer.State{Checkpoint: t.behind()},
			Reach: t.reach(), Gossip: t.gossip(),
		},
		Exchange: peer.Exchange{Pace: pace, Codec: t.policy, Lanes: t.Lanes, Seed: t.Seed},
	}
	config.Network.Control = peer.Control{
		Operator: seam.PeerID(t.Operator),
		Settings: map[string]string{"dataset": t.Dataset, "model": t.Model},
	}
	config.Hooks.Exchanged = func(e peer.Exchanged) {
		t.partners.met(e.Partner)
		if t.firstExchange.Load() == 0 {
			t.firstExchange.Store(int64(time.Since(t.started)))
		}
	}
	config.Network.Control.Digests = t.digests()
	t.watchHooks(&config.Hooks)
	config.Optimizer = t.newOptimizer()
	config.Schedule = t.schedule()
	t.restore(config.Optimizer)
	if t.Strategy == strategyAlone {
		config.Join, config.Network.Listen = nil, []string{loopback}
	}
	config.Exchange.Machine, config.Work.Grace = t.algorithm(), t.grace()
	return config
}

// newOptimizer makes that of --optimizer.
func (s trainSettings) newOptimizer() peer.Optimizer {
	switch s.Optimizer {
	case optimizerSGD:
		return &peer.SGD{}
	case optimizerAdamW:
		return &peer.AdamW{}
	}
	return &peer.SGD{Momentum: peer.DefaultMomentum}
}

// run takes the peer through its life.
func (t *training) run(ctx context.Context) (share, error) {
	t.tellResumed()
	if t.Strategy == strategyAlone && len(t.Join) > 0 {
		t.log.Warn("training alone: --join is not heeded")
	}
	t.introduce()
	t.tell(report{Kind: reportStarted, Peer: string(t.peer.Self()), Addresses: t.peer.JoinAddresses(), Dashboard: t.dashboard})
	if err := t.gather(ctx); err != nil {
		return share{}, t.orNothingDone(err)
	}
	seconds, err := t.learn(ctx)
	if err != nil && !errors.Is(err, cli.ErrInterrupted) {
		return share{}, errors.Join(err, t.keeper.Rescued())
	}
	t.progress(true)
	t.keeper.End()
	t.keeper.Interrupted(ctx)
	if total, _ := t.data.Skipped(t.skipped); total > t.skipped {
		t.log.Warn("more damaged records were skipped", zap.Int("named", t.skipped), zap.Int("all", total))
	}
	// The peer serves the others until all have finished, and its model comes
	// closer to theirs meanwhile: what counts is the model after that.
	before := t.peer.Stats()
	t.leave()
	stats := t.peer.Stats()
	stats.Role, stats.Lost = before.Role, before.Lost
	t.peer.Snapshot(t.params.Vector())
	unsaved := t.keeper.Last(stats)
	if unsaved != nil {
		t.log.Error("the last checkpoint could not be saved; the ones before are kept", zap.Error(unsaved))
	}
	if err != nil && unsaved != nil {
		return share{}, &unsavedError{unsaved}
	}
	if err != nil {
		return share{}, t.orNothingDone(err)
	}
	return share{Result: t.result(stats, seconds), Initiated: stats.Exchanges.Initiated, unsaved: unsaved}, nil
}

// leave leaves the run. That something went wrong in leaving takes nothing from
// what was learned.
func (t *training) leave() {
	if err := t.peer.Close(); err != nil {
		t.log.Debug("leaving the run", zap.Error(err))
	}
	t.board.Load().Rest()
}

// gather waits for the members that --min-peers asks for.
func (t *training) gather(ctx context.Context) error {
	if t.MinPeers <= 1 || t.Strategy == strategyAlone {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, t.MinPeersWait)
	defer cancel()
	err := t.peer.WaitMembers(bounded, t.MinPeers)
	switch {
	case err == nil:
		t.joined = time.Since(t.started)
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		t.log.Warn("not all peers have come: training with those that have", zap.Error(err))
	default:
		return err
	}
	return nil
}

// learn steps until the flock has done its work, and tells for how long.
func (t *training) learn(ctx context.Context) (time.Duration, error) {
	step := t.firstGradient(ctx)
	for {
		err := t.peer.Step(ctx, step)
		switch {
		case err == nil:
			step = t.gradient
			t.standstill.step(time.Now())
			t.progress(false)
		case errors.Is(err, peer.ErrRunOver):
			return t.elapsed(), nil
		case ctx.Err() != nil:
			return t.elapsed(), cli.ErrInterrupted
		default:
			return t.elapsed(), err
		}
	}
}

// firstGradient is gradient for the first step, which begins when it may. Step
// calls it once the peer has joined, or has given up waiting for that: whoever
// sees all peers ready knows that none will be kept from its training any more.
func (t *training) firstGradient(ctx context.Context) func(x, grad tensor.Vector) (peer.Result, error) {
	return func(x, grad tensor.Vector) (peer.Result, error) {
		t.tell(report{Kind: reportReady})
		if t.begin != nil {
			select {
			case <-t.begin:
			case <-ctx.Done():
				return peer.Result{}, cli.ErrInterrupted
			}
		}
		t.first, t.begun = time.Now(), t.peer.Stats().Progress
		return t.gradient(x, grad)
	}
}

// gradient computes the gradient of the next batch.
func (t *training) gradient(x, grad tensor.Vector) (peer.Result, error) {
	if err := t.nextBatch(); err != nil {
		return peer.Result{}, err
	}
	return peer.Result{Loss: t.model.Gradient(x, &t.batch, grad), Samples: t.batch.Len()}, nil
}

func (t *training) elapsed() time.Duration {
	if t.first.IsZero() {
		return 0
	}
	return time.Since(t.first)
}

// progress reports, at once or if it is time.
func (t *training) progress(now bool) {
	if !now && time.Since(t.told) < reportEvery {
		return
	}
	t.told = time.Now()
	t.warnSkipped()
	stats := t.peer.Stats()
	t.members = max(t.members, stats.Members)
	t.warnAlone(stats.Members)
	if t.joined == 0 && stats.Joined && stats.Members > 1 {
		t.joined = time.Since(t.started)
	}
	current := statusOf(stats, t.elapsed())
	current.Begun = t.begun
	t.tell(report{Kind: reportProgress, Status: &current, others: t.others()})
}

// result evaluates the model and gathers this peer's numbers.
func (t *training) result(stats peer.Stats, took time.Duration) result {
	right, loss := t.model.Evaluate(t.params.Vector(), t.data.HeldOut)
	status, seconds := statusOf(stats, took), took.Seconds()
	r := result{
		Peers: max(t.members, 1), Strategy: t.Strategy, Codec: t.policy.Effective().Codec, Dataset: t.Dataset, Model: t.Model,
		Steps: stats.Steps, Seconds: seconds,
		TestAccuracy: accuracy{Mean: cli.Number(right), Min: cli.Number(right), Max: cli.Number(right)},
		TestLoss:     cli.Number(loss), Loss: status.Loss, ConsensusDistance: status.Distance,
		Exchanges: status.Exchanges, Refused: stats.Exchanges.Refused, Failed: stats.Exchanges.Failed,
		InDoubt: stats.Exchanges.InDoubt + stats.Exchanges.Lost, PeersLost: stats.Lost, JoinSeconds: t.joined.Seconds(),
		ConnectionsMax: stats.ConnectionsMax, BytesSent: stats.Exchanges.BytesSent,
		BitsPerParameter: cli.Number(stats.Exchanges.BitsPerParameter), ResumedStep: stats.Resumed,
		Every: stats.Exchanges.Every, LongestHold: stats.Exchanges.LongestHold.Seconds(),
		FirstExchangeSeconds: time.Duration(t.firstExchange.Load()).Seconds(),
		PeakMemory:           ownMemory(), Partners: sole(float64(t.partners.count())),
		Links: linksOf(stats), Peer: string(stats.Self), Role: stats.Role, finalResult: t.final(stats.Merged),
	}
	if seconds > 0 {
		r.SamplesPerSecond = float64(t.peer.Tallies().Samples) / seconds
	}
	return r
}
