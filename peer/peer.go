package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/donor"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/roster"
	"github.com/seed-97356399/murmuration/internal/talks"
	"github.com/seed-97356399/murmuration/internal/tally"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// Peer is one member of a run. Step, Apply and Trade belong to one trainer goroutine;
// every other method is safe for concurrent use.
type Peer struct {
	config Config
	log    *zap.Logger

	replica *replica.Replica
	flock   *flock.Flock
	trainer training
	tally   *tally.Tally
	orders  *orders.Orders
	roster  *roster.Roster // this peer's place among the members
	donor   *donor.Donor   // gives newcomers the model
	work    work           // what the flock is to do

	links *links.Links // how each partner is met
	talks *talks.Talks
	summing

	arrival *arrival.Arrival
	notices chan notice

	adapters
	frames frames // of conversations that are no exchange
	lifetime
}

// Start makes a peer, listens, and begins to join in the background; it waits
// for nobody. The context covers starting only. It reports all faults of the
// configuration at once.
func Start(ctx context.Context, config Config) (*Peer, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting a peer: %w", err)
	}
	only := config.Params == nil
	if only {
		config.Params = nothing()
	}
	p, err := assemble(config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("starting a peer of run %q: %w", config.Run, err)
	}
	p.summing.only = only
	return p, nil
}

// Self is the peer's identity.
func (p *Peer) Self() seam.PeerID { return p.transport.Self() }

// JoinAddresses are addresses, with the peer's identity, that another peer may
// give in Config.Join.
func (p *Peer) JoinAddresses() []string {
	return p.transport.JoinAddresses()
}

// Snapshot copies the parameters into dst, which must have as many values as the
// layout, as they are at one moment between two steps, and returns their version. Where
// that is still since, the version of a snapshot before, nothing is copied; 0 is never a
// version. It never stops the trainer. Safe for concurrent use.
func (p *Peer) Snapshot(dst tensor.Vector, since uint64) (version uint64, err error) {
	if len(dst) != p.replica.Len() {
		return 0, fmt.Errorf("a snapshot of %d parameters into %d values: give a vector as long as the layout", p.replica.Len(), len(dst))
	}
	// Of what changes from here on dst may have a part: it is then older than it.
	if version = p.replica.Changes() + 1; version != since {
		p.replica.Consistent(dst)
	}
	return version, nil
}

// Step takes one gradient step. It calls gradient with a snapshot x of the
// parameters and a zeroed grad to write the mean gradient into; both are valid
// until gradient returns and must not be kept. The snapshot may mix slices from
// before and after an exchange. No lock is held while the gradient is computed.
// Then it applies the optimizer's step and lets the machine decide whether to
// talk; exchanges go on in the background and Step does not wait for them.
//
// The first call waits for joining: until a member has answered, or for
// three seconds if none does, after which the peer trains alone and keeps trying.
// A peer that comes to a flock that has already trained copies the flock's
// parameters first, from several members at once. One that trained alone and
// then finds such a flock, with a model that is behind, copies it too, at its next Step; the
// step under way, if there is one, is left out then and not counted.
//
// It returns ErrRunOver when the flock has done its work, ErrClosed after Close,
// a *seam.RefusedError if the members asked to join will not have this peer,
// optim.ErrNotFinite if the gradient or the step is not finite, the gradient's norm is beyond
// 1e18, or the step is about a million times longer than the model (nothing is applied;
// the caller may go on), or the error of gradient or ctx, wrapped (nothing is applied).
// Calls from two goroutines at once are an error. For several batches in one step see
// Accumulate.
//
// With an algorithm that averages gradients (lock-step, or with a server) Step hands the
// gradient over and waits for the update made of it. If ctx ends meanwhile, the gradient
// has been handed over all the same: it counts in the update, as the next call reports,
// which waits for that before it computes another gradient. A gradient as long as the step
// above is left out of the mean, which fails the Step too, and the caller may go on.
func (p *Peer) Step(ctx context.Context, gradient func(x, grad tensor.Vector) (Result, error)) error {
	if err := p.summing.trains(); err != nil {
		return err
	}
	return p.trainer.alone(func() error { return p.trainer.step(ctx, gradient) })
}

// Apply adds delta, a step that the caller's own optimizer made, and counts it
// as one gradient step. delta must have as many values as the layout. made tells what the
// step was made of; the zero Result tells nothing. It waits
// and fails as Step does, with optim.ErrNotFinite for a delta that would leave a model
// that nobody would take: nothing of it is applied then.
func (p *Peer) Apply(ctx context.Context, delta tensor.Vector, made Result) error {
	if err := p.summing.trains(); err != nil {
		return err
	}
	return p.trainer.alone(func() error {
		return p.trainer.trade(ctx, delta, nil, Made{Steps: 1, Samples: made.Samples, Loss: made.Loss})
	})
}

// Trade is for an optimizer of the caller's own that works on a copy of the parameters, x, for
// several steps at once. base is what x was when it was last handed out: by Trade, or by
// Snapshot before the first. Trade adds x − base as made.Steps steps, and then overwrites
// both x and base with the parameters as they are: what was added is in the sum of the
// peers' models exactly once, and what exchanges moved meanwhile stays. Both must have as many
// values as the layout, and be the caller's alone while Trade runs; should x be written
// to all the same, the values of one moment or another are added, never NaN, and what comes later
// is lost or part of the next Trade. It allocates nothing.
//
// It waits and fails as Step does: with optim.ErrNotFinite if x holds NaN or infinite values, or
// is farther from base than others would believe. x, base and the model are then as they
// were. Where the flock's model has taken the place of this one, x − base is left out
// and not counted, as a step under way is, and both are overwritten with the new model.
// Steps are told to the algorithm one by one, so that one that wants to exchange every few
// steps does so as often, between two calls.
func (p *Peer) Trade(ctx context.Context, x, base tensor.Vector, made Made) error {
	if err := p.summing.trains(); err != nil {
		return err
	}
	if base == nil {
		base = tensor.Vector{} // no base at all is what Apply has
	}
	return p.trainer.alone(func() error { return p.trainer.trade(ctx, x, base, made) })
}

// Batch is how many samples the next gradient should be of, so that all peers take
// equally long for theirs: as the algorithm divides the flock's work by the peers'
// speeds, or own if it does not. The numbers are to be told in Result.Samples. It
// changes from step to step. Safe for concurrent use.
func (p *Peer) Batch(own int) int {
	if wish := p.trainer.batch.Load(); wish > 0 {
		return int(wish)
	}
	return own
}

// Save copies all that a checkpoint keeps into s, whose vectors it uses again if they
// have the right length. The parameters and the optimizer's state are those of one moment
// between two steps. A step that comes just then waits while the optimizer's vectors are
// copied, for no longer than the optimizer takes to make it.
func (p *Peer) Save(s *Saved) {
	// What was done is read first: the parameters may be a step ahead of it, never
	// behind.
	s.Checkpoint = done(p.flock, p.roster.Incarnation(), p.orders.All())
	s.Checkpoint.Description = p.arrival.Described.Held()
	if len(s.Params) != p.replica.Len() {
		s.Params = make(tensor.Vector, p.replica.Len())
	}
	p.trainer.Save(s.Params, &s.Optimizer)
}

// Digests are the latest digests of the members, this peer's own included, in the
// order of their ids. A member that has gone is left out.
func (p *Peer) Digests() []control.Digest { return p.orders.Digests() }

// Control tells what became of control messages here.
func (p *Peer) Control() control.Stats { return p.orders.Stats() }

// WaitMembers waits until the run has at least n members, this one included. It
// fails as Step does if the members asked to join will not have this peer.
func (p *Peer) WaitMembers(ctx context.Context, n int) error {
	const look = 10 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		present, _ := p.flock.Members()
		if present >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d members, %d are here: %w", n, present, ctx.Err())
		case <-p.closing:
			return ErrClosed
		case <-p.arrival.Barred():
			return p.arrival.Fault()
		case <-ticker.C:
		}
	}
}

// Close leaves the run: if the run is over here, it first serves the others until
// it is over for all, within Config.Work.Grace; then it lets the exchanges in
// flight finish, within Config.Exchange.Stall, asks partners that answer what became of
// the slices in doubt of earlier ones, within Config.Work.Grace, tells the others, and
// waits for every goroutine of the peer. It does not wait for a gradient that is being
// computed: a Step or Apply that comes to its end later changes nothing and returns
// ErrClosed, so the parameters stay as they are when Close returns. It is idempotent.
func (p *Peer) Close() error {
	if !p.leaving.CompareAndSwap(false, true) {
		<-p.closed // no lock is held for as long as that takes: virtual time stands still before one
		return p.fault
	}
	defer close(p.closed)
	if p.flock.IsOver() {
		p.linger()
	}
	close(p.closing)
	p.fault = p.dismantle()
	p.tellMerged()
	p.untold()
	return p.fault
}

// linger serves the others until the run is over for all.
func (p *Peer) linger() {
	const look = time.Second // between two looks for members that have died at work
	grace := time.NewTimer(p.config.Work.Grace)
	defer grace.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-p.flock.Flown():
			return
		case <-ticker.C:
			working := p.flock.Working()
			if p.merging() || len(working) == 0 || slices.ContainsFunc(working, func(id seam.PeerID) bool { return !p.arrival.Gone(p.exchanges, id) }) {
				continue
			}
			return
		case <-grace.C:
			p.log.Info("leaving although some members are still at work", zap.Duration("grace", p.config.Work.Grace))
			return
		}
	}
}

// dismantle ends everything that assemble has begun, as far as it came.
func (p *Peer) dismantle() error {
	if p.arrival != nil {
		p.arrival.Close()
	}
	timer := time.AfterFunc(p.config.Exchange.Stall, func() {
		p.breakExchanges()
		if p.talks != nil {
			p.talks.BreakOff()
		}
	})
	if len(p.handlers) > 0 { // else nobody could begin an exchange
		p.talks.Wait()
		timer.Stop()
		p.talks.RepairAll(p.config.Work.Grace)
	}
	timer.Reset(p.config.Exchange.Stall) // for what else is on its way
	defer timer.Stop()
	if p.talks != nil {
		p.talks.EndWords(p.config.Exchange.Stall)
	}
	if p.sums != nil {
		p.sums.Close()
	}
	for len(p.handlers) > 1 {
		last := len(p.handlers) - 1
		p.handlers[last]()
		p.handlers = p.handlers[:last]
	}
	p.transfers.End()
	p.stop()
	p.background.Wait()
	if p.trainer.Trainer != nil {
		p.trainer.Close() // an update that was under way has been made
	}
	var faults []error
	if p.membership != nil {
		faults = append(faults, p.membership.Close())
	}
	for _, stop := range p.handlers {
		stop()
	}
	if p.own != nil {
		faults = append(faults, p.transport.Close())
	}
	return errors.Join(faults...)
}

// merging tells that the final merge is still to come (docs/design/022): from the end of
// the run on no step is applied, and once the parameters are pooled nothing but the merge
// changes them.
func (p *Peer) merging() bool { return p.trainer.pools && !p.flock.Settled() }

// tellMerged says, of a peer that has left, if there was to be a merge and is none.
func (p *Peer) tellMerged() {
	if p.flock.IsOver() && p.merging() {
		p.log.Warn("the final merge has not come about within the time to leave: this peer keeps its own model. If links are slow or members busy, allow more time",
			zap.Duration("grace", p.config.Work.Grace))
	}
}

// notify reports an event to the loop, waiting for room if need be. It reports
// false if the peer has stopped.
func (p *Peer) notify(n notice) bool {
	select {
	case p.notices <- n:
		return true
	case <-p.running.Done():
		return false
	}
}

// showOut disconnects peers that have been taken off the list, and has the loop take the
// members anew.
func (p *Peer) showOut(removed []seam.PeerID) {
	for _, id := range removed {
		p.disconnect(id)
	}
	p.notify(notice{corrected: true})
}

// joined asks a member that has let this peer in what the operator has said, and shows
// the members what this peer says of itself.
func (p *Peer) joined(ctx context.Context, through seam.PeerID) {
	if err := p.orders.Ask(ctx, through); err != nil {
		p.log.Warn("could not ask what the operator has said; trying others later", zap.String("peer", string(through)), zap.Error(err))
	}
	p.notify(notice{joined: true})
}

// introduce says hello to a relay that refuses this peer, which it does to all that have
// not shown it that they take part. The transport may ask for it before the peer is there.
func (p *Peer) introduce(ctx context.Context, relay seam.PeerID) error {
	select {
	case <-p.serving:
	case <-ctx.Done():
		return fmt.Errorf("introducing this peer to a relay: %w", ctx.Err())
	}
	_, err := p.arrival.Hello(ctx, relay)
	return err
}

// foundReachable takes what the transport has found out, unless the peer was told.
func (p *Peer) foundReachable(reachable bool) {
	select {
	case <-p.serving: // the transport may be faster
	case <-p.running.Done():
		return
	}
	if told := p.config.Network.Reach; told.Unreachable || told.Reachable || !p.roster.SetReachable(reachable) {
		return
	}
	if reachable {
		p.log.Info("others can dial this peer after all")
	} else {
		p.log.Info("others cannot dial this peer: it is active from now on, and begins its exchanges itself",
			zap.Bool("has_relay", len(p.config.Network.Reach.Relay.Via) > 0))
	}
	p.notify(notice{corrected: true})
}
