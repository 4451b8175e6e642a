package exchange

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// steppedPeer is a peer whose trainer steps on request.
type steppedPeer struct {
	peer    *peer.Peer
	machine impatient
	back    bool // the next step goes away from zero

	mu      sync.Mutex
	ended   int // number of exchanges
	last    exchangeEnd
	fault   error
	changed chan struct{} // has a token when ended or fault has changed
}

// exchangeEnd describes the end of an exchange.
type exchangeEnd struct {
	peer.Exchanged
	at  time.Time
	cpu float64 // processor seconds that this process had used
}

// startPeer starts a peer of a run with its own model. The peer that joins initiates exchanges; the other one serves.
func startPeer(ctx context.Context, tr transport.Transport, s exchangeSettings, codec string, join []string, log *zap.Logger) (*steppedPeer, error) {
	const rate = 1e-3 // models differ a little, as in a real run
	layout, err := tensor.NewLayout(tensor.Spec{Name: "model", Shape: []int{s.parameters}})
	if err != nil {
		return nil, fmt.Errorf("laying out the model: %w", err)
	}
	params := tensor.NewParams(layout)
	measure.Fill(params.Vector(), s.seed, 0)
	b := &steppedPeer{changed: make(chan struct{}, 1)}
	reach := peer.Reachable
	if len(join) > 0 {
		reach = peer.Unreachable // makes this peer the initiator
	}
	config := peer.Config{
		Run: "bench-" + codec, Params: params, Join: join,
		Network: peer.Network{Log: log, Transport: tr, Reach: reach},
		Training: peer.Training{
			Optimizer: &optim.SGD{Momentum: optim.DefaultMomentum},
			Schedule:  optim.Schedule{Rate: rate, Shape: optim.Constant},
			Exchange: peer.Exchange{
				Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: codec}, SliceLen: s.slice, Lanes: s.lanes,
				Machine: b.machine.build,
			},
			Hooks: peer.Hooks{Exchanged: b.exchanged},
		},
	}
	if b.peer, err = peer.Start(ctx, config); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *steppedPeer) exchanged(x peer.Exchanged) {
	if x.Err != nil {
		b.failed(x.Err)
	}
	if x.Inbound || x.Err != nil {
		return
	}
	end := exchangeEnd{Exchanged: x, at: time.Now(), cpu: host.ProcessorSeconds()}
	b.mu.Lock()
	b.ended++
	b.last = end
	b.mu.Unlock()
	b.signal()
}

func (b *steppedPeer) failed(err error) {
	b.mu.Lock()
	if b.fault == nil {
		b.fault = fmt.Errorf("an exchange broke off: %w", err)
	}
	b.mu.Unlock()
	b.signal()
}

func (b *steppedPeer) signal() {
	select {
	case b.changed <- struct{}{}:
	default: // changed has a token already
	}
}

// look returns the number of ended exchanges and how the last one ended.
func (b *steppedPeer) look() (ended int, last exchangeEnd, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended, b.last, b.fault
}

// ready waits until both peers are present and this one is to initiate.
func (b *steppedPeer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	if err := b.peer.WaitMembers(ctx, 2); err != nil {
		return fmt.Errorf("waiting for the other process: %w", err)
	}
	return poll(ctx, "waiting for a role", func() bool { return b.peer.Stats().Role == "active" })
}

// step takes one step towards a model of zeros, or in every other call away from it: values that only shrink would
// become denormal numbers, which are slow.
func (b *steppedPeer) step(ctx context.Context) error {
	direction := float32(1)
	if b.back {
		direction = -1
	}
	b.back = !b.back
	return b.peer.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
		tensor.Axpy(grad, direction, x)
		return peer.Result{Samples: 1}, nil
	})
}

// exchange takes a step and waits for times uninterrupted exchanges. It returns the beginning of the first one and
// the end of the last one.
func (b *steppedPeer) exchange(ctx context.Context, times int) (beginning, exchangeEnd, error) {
	if err := b.settle(ctx); err != nil {
		return beginning{}, exchangeEnd{}, err
	}
	before, _, _ := b.look()
	b.machine.arm(times - 1)
	if err := b.step(ctx); err != nil {
		return beginning{}, exchangeEnd{}, err
	}
	for {
		// The timeout starts anew with each exchange.
		ended, last, err := b.look()
		if err != nil {
			return beginning{}, last, err
		}
		if ended >= before+times {
			return *b.machine.start.Load(), last, nil
		}
		if err := b.await(ctx); err != nil {
			return beginning{}, last, err
		}
	}
}

// await waits until an exchange has ended.
func (b *steppedPeer) await(ctx context.Context) error {
	timer := time.NewTimer(peerTimeout)
	defer timer.Stop()
	select {
	case <-b.changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("no exchange within %s", peerTimeout)
	}
}

// settle waits until no exchange is running.
func (b *steppedPeer) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	return poll(ctx, "waiting for the last exchange", func() bool { return !b.machine.flying.Load() })
}

// poll waits until a condition holds.
func poll(ctx context.Context, doing string, holds func() bool) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
		}
	}
	return nil
}
