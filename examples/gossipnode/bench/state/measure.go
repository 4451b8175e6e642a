package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// stateRun is the run in which newcomers copy; no exchange disturbs them.
const (
	stateRun        = "bench-state"
	stateEvery      = 1 << 20
	stateRefChunk   = tensor.ValueSize * measure.DefaultSlice
	stateRefRequest = "once"
)

// stateBench is a measurement under way.
type stateBench struct {
	settings stateSettings
	log      *zap.Logger
	donors   []*peer.Peer
	// ask and give are the two ends of the reference.
	ask, give *p2pnet.Transport

	copies, joins, references []float64 // seconds, a round each
	used                      int
	again                     uint64
	slices                    int
}

// Measure measures copies of the model, in turn with moving the same bytes.
func (s stateSettings) Measure(std cli.Streams) (_ stateResult, err error) {
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	b := &stateBench{settings: s, log: measure.NewLog(std), used: s.donors}
	defer func() { err = errors.Join(err, b.close()) }()
	fmt.Fprintf(std.Err, "Starting %s with %s parameters.\n", cli.Plural(uint64(s.donors), "donor"), measure.Thousands(uint64(s.parameters)))
	if err := b.prepare(ctx); err != nil {
		return stateResult{}, err
	}
	fmt.Fprintln(std.Err, measure.Turns)
	for round := range s.rounds + 1 {
		if err := b.round(ctx, round == 0); err != nil {
			return stateResult{}, err
		}
	}
	ratios := measure.Quotients(b.copies, b.references)
	return stateResult{
		Parameters: s.parameters, Donors: s.donors, Rounds: s.rounds, Slices: b.slices,
		Seconds: measure.Median(b.copies), JoinSeconds: measure.Median(b.joins), RawLibp2pSeconds: measure.Median(b.references),
		RatioToRawLibp2p: measure.Median(ratios), RatioWorst: slices.Max(ratios), DonorsUsed: b.used, Again: b.again,
		GOMAXPROCS: runtime.GOMAXPROCS(0), CPU: host.Processor(),
	}, nil
}

// prepare starts the donors, lets each take a step, and the reference.
func (b *stateBench) prepare(ctx context.Context) (err error) {
	var join []string
	for i := range b.settings.donors {
		donor, err := b.start(ctx, join, uint64(i))
		if err != nil {
			return err
		}
		b.donors = append(b.donors, donor)
		join = b.donors[0].JoinAddresses()[:1]
		if err := stateStep(ctx, donor); err != nil {
			return err
		}
	}
	for _, d := range b.donors {
		if err := d.WaitMembers(ctx, b.settings.donors); err != nil {
			return err
		}
	}
	for _, t := range []**p2pnet.Transport{&b.ask, &b.give} {
		if *t, err = p2pnet.New(p2pnet.Config{Listen: []string{measure.Loopback}, Log: b.log}); err != nil {
			return err
		}
	}
	bytes := make([]byte, stateRefChunk)
	_, err = b.give.Handle(measure.ReferenceProtocol, measure.ReferenceRun, func(s seam.Stream) {
		defer s.Close()
		if _, err := io.ReadFull(s, make([]byte, len(stateRefRequest))); err != nil {
			s.Reset()
			return
		}
		for left := b.bytes(); left > 0; left -= len(bytes) {
			if _, err := s.Write(bytes[:min(left, len(bytes))]); err != nil {
				s.Reset()
				return
			}
		}
	})
	if err == nil {
		_, err = b.ask.Connect(ctx, b.give.JoinAddresses()[0])
	}
	return err
}

// bytes is the size of the model.
func (b *stateBench) bytes() int { return tensor.ValueSize * b.settings.parameters }

// start starts a peer.
func (b *stateBench) start(ctx context.Context, join []string, number uint64) (*peer.Peer, error) {
	params, err := measure.Params(b.settings.parameters, b.settings.seed, number)
	if err != nil {
		return nil, err
	}
	return peer.Start(ctx, peer.Config{
		Run: stateRun, Params: params, Join: join, Log: b.log, Optimizer: &optim.SGD{},
		Network:  peer.Network{Listen: []string{measure.Loopback}},
		Schedule: optim.Schedule{Rate: measure.LearningRate, Shape: optim.Constant},
		Exchange: peer.Exchange{Pace: averaging.Pace{Every: stateEvery}, SliceLen: b.settings.slice, Seed: b.settings.seed},
	})
}

// stateStep takes a step that changes nothing.
func stateStep(ctx context.Context, p *peer.Peer) error {
	return p.Step(ctx, func(_, _ tensor.Vector) (peer.Result, error) { return peer.Result{}, nil })
}

// round moves the bytes, lets a newcomer copy the model, and moves the bytes again:
// the mean of the two stands for the machine as it was meanwhile.
func (b *stateBench) round(ctx context.Context, warmUp bool) error {
	runtime.GC() // neither should pay for the round before
	before, err := b.reference(ctx)
	if err != nil {
		return err
	}
	runtime.GC()
	began := time.Now()
	newcomer, err := b.start(ctx, b.donors[0].JoinAddresses()[:1], maxDonors)
	if err != nil {
		return err
	}
	err = stateStep(ctx, newcomer)
	joined := time.Since(began)
	stats := newcomer.Stats().State
	if err = errors.Join(err, newcomer.Close()); err != nil {
		return err
	}
	if stats.Donors == 0 {
		return fmt.Errorf("the newcomer got no copy: %+v", stats)
	}
	runtime.GC()
	after, err := b.reference(ctx)
	if err == nil && !warmUp {
		b.references = append(b.references, (before+after)/2)
		b.copies = append(b.copies, stats.Took.Seconds())
		b.joins = append(b.joins, joined.Seconds())
		b.used, b.slices = min(b.used, stats.Donors), stats.Slices
		b.again += stats.Again
	}
	return err
}

// reference moves the model's bytes once and returns the seconds that it took, the
// opening of the stream included.
func (b *stateBench) reference(ctx context.Context) (float64, error) {
	began := time.Now()
	stream, err := b.ask.Open(ctx, b.give.Self(), measure.ReferenceProtocol, measure.ReferenceRun)
	if err != nil {
		return 0, fmt.Errorf("opening a stream for the reference: %w", err)
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Reset)()
	if err := stream.SetReadDeadline(time.Now().Add(measure.Patience)); err != nil {
		return 0, fmt.Errorf("bounding the time of the reference: %w", err)
	}
	_, err = io.WriteString(stream, stateRefRequest)
	room := make([]byte, stateRefChunk)
	for left := b.bytes(); left > 0 && err == nil; left -= len(room) {
		_, err = io.ReadFull(stream, room[:min(left, len(room))])
	}
	if err != nil {
		return 0, fmt.Errorf("moving the bytes of the reference: %w", err)
	}
	return time.Since(began).Seconds(), nil
}

// close closes what was started.
func (b *stateBench) close() error {
	var faults []error
	for _, d := range b.donors {
		faults = append(faults, d.Close())
	}
	for _, t := range []*p2pnet.Transport{b.ask, b.give} {
		if t != nil {
			faults = append(faults, t.Close())
		}
	}
	return errors.Join(faults...)
}
