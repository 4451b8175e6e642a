// Package arrival joins a run: it sends hellos, joins the membership, returns to the
// addresses to join when this member is alone, looks for partners of earlier lives, and has
// the flock's model copied. It also answers the hellos of others.
package arrival

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Timeout is how long the first step waits for anybody to answer before the peer
// trains alone.
const Timeout = 3 * time.Second

// timeoutLook is the time between two checks, after Timeout, whether a conversation with
// some process still goes on.
const timeoutLook = 250 * time.Millisecond

// Bounds of the attempts to join.
const (
	joinTimeout   = 10 * time.Second // for one address, or partner of an earlier life
	firstJoinWait = 100 * time.Millisecond
	maxJoinWait   = 5 * time.Second
	// joinReminder is how many failed rounds pass between two warnings.
	joinReminder = 6
	// rejoinEvery is the time between two attempts of a peer that is alone to join by its
	// addresses.
	rejoinEvery = 10 * time.Second
)

// Config is what the arrival of a member needs.
type Config struct {
	Greeter
	Join       []string
	Partners   []Partner // of earlier lives
	Membership transport.Membership
	// Operator is the operator's commands: before this member takes part, it asks the member that admitted it for
	// them.
	Operator interface {
		Ask(ctx context.Context, member transport.PeerID) error
	}
	// Loop announces this member's record, once a member has admitted it.
	Loop interface{ Joined() }
}

// Arrival is the arrival of one member. Safe for concurrent use.
type Arrival struct {
	Config
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	background sync.WaitGroup
	began      time.Time

	reached  chan struct{} // closed when a member has admitted this one, or none was asked
	reach    func()        // closes it
	speaking atomic.Int32  // conversations with processes that have answered and may admit this member
	joiner   atomic.Pointer[Joiner]

	barred context.Context // ends when the run will never admit this member
	bar    context.CancelCauseFunc
}

// New prepares an arrival. Begin begins it.
func New(config Config) *Arrival {
	a := &Arrival{Config: config, began: time.Now(), reached: make(chan struct{})}
	a.reach = sync.OnceFunc(func() { close(a.reached) })
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.barred, a.bar = context.WithCancelCause(context.Background())
	return a
}

// Begin begins to join in the background.
func (a *Arrival) Begin() {
	a.background.Go(a.join)
	a.background.Go(a.revisit)
}

// Brings registers a model to be brought up to date by each member that admits this one from now
// on; nil for none.
func (a *Arrival) Brings(n *Joiner) { a.joiner.Store(n) }

// Bringing is the phase of that model, if there is one.
func (a *Arrival) Bringing() (phase Phase, brings bool) {
	if n := a.joiner.Load(); n != nil {
		return n.Phase(), true
	}
	return Seeking, false
}

// MembersChanged tells a copy under way that there may be new members.
func (a *Arrival) MembersChanged() {
	if n := a.joiner.Load(); n != nil {
		select {
		case n.news <- struct{}{}:
		default:
		}
	}
}

// Close breaks off what is under way, and waits for it.
func (a *Arrival) Close() {
	a.cancel()
	a.background.Wait()
}

// Serve answers a peer that says hello. An error means that nothing could be read.
func (a *Arrival) Serve(stream *framed.Stream) error {
	var hello wire.Hello
	header, err := stream.Receive(&hello)
	if err != nil {
		return err
	}
	if a.ctx.Err() != nil {
		stream.Refuse(0, wire.ReasonClosing, "")
	} else if reason := a.answer(stream, header, hello); reason != 0 {
		a.Counters.Declined(reason)
	}
	return nil
}

// Reached tells whether a member has admitted this one, or none was asked.
func (a *Arrival) Reached() bool {
	select {
	case <-a.reached:
		return true
	default:
		return false
	}
}

// Placed tells whether this member sees the flock in which it is to take a role. A joiner
// that took a role earlier would be passive, like every first peer, even if the flock lacks
// actives; and so would all that join at the same time.
func (a *Arrival) Placed() bool {
	n := a.joiner.Load()
	return len(a.Join) == 0 || a.Reached() || n != nil && n.Open() || time.Since(a.began) >= Timeout
}

// Bar ends an arrival that the run will never admit.
func (a *Arrival) Bar(why error) { a.bar(fmt.Errorf("joining run %q: %w", a.Run, why)) }

// Barred is closed by Bar; Fault says then why.
func (a *Arrival) Barred() <-chan struct{} { return a.barred.Done() }

// Fault is why the run will not admit this peer, once Barred is closed.
func (a *Arrival) Fault() error { return context.Cause(a.barred) }

// Wait waits for joining, at most Timeout if nobody answers. If a process has answered, Wait lasts
// as long as that conversation. After Close the error is transport.ErrClosed.
func (a *Arrival) Wait(ctx context.Context) error {
	return a.wait(ctx, a.ctx, a.barred, func() <-chan struct{} { return a.reached }, func() (goes bool) { return true })
}

// wait waits for an entrance until life ends. After Timeout it asks, each timeoutLook in which no conversation goes
// on, whether this member goes on alone.
func (a *Arrival) wait(ctx, life, barred context.Context, entrance func() <-chan struct{}, alone func() (goes bool)) error {
	timeout := time.NewTimer(Timeout)
	defer timeout.Stop()
	for {
		select {
		case <-entrance():
			return nil
		case <-barred.Done():
			return context.Cause(barred)
		case <-life.Done():
			return transport.ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("joining run %q: %w", a.Run, ctx.Err())
		case <-timeout.C:
			if a.speaking.Load() == 0 && alone() {
				return nil
			}
			timeout.Reset(timeoutLook)
		}
	}
}

// join connects to the addresses to join, repeatedly until each has answered, and later
// whenever this peer is alone.
func (a *Arrival) join() {
	if len(a.Join) == 0 {
		a.first()
		return
	}
	pending := slices.Clone(a.Join)
	wait, since := firstJoinWait, refusals{}
	for round := 0; ; round++ {
		var refused error
		pending, refused = a.tryEach(pending, round, since)
		if len(pending) == 0 {
			switch {
			case a.Reached(), a.barred.Err() != nil:
			case refused != nil: // all that answered
				a.Bar(refused)
			default: // all were this peer's own
				a.first()
			}
			a.rejoin()
			return
		}
		if refused != nil {
			wait = min(wait, perhapsWait)
		}
		select {
		case <-a.ctx.Done():
			return
		case <-time.After(wait):
			wait = min(2*wait, maxJoinWait)
		}
	}
}

// first lets a peer train that has no address to join, except perhaps its own.
func (a *Arrival) first() {
	a.reach()
	if n := a.joiner.Load(); n != nil {
		n.advance(Seeking, Here)
	}
}

// rejoin returns to the addresses to join whenever this peer sees nobody, unless the run is
// over for it. If a run with other settings has been started there, this peer is barred.
// The membership itself returns to known members; an address may by then belong to a
// process with another identity.
func (a *Arrival) rejoin() {
	ticker := time.NewTicker(rejoinEvery)
	defer ticker.Stop()
	since := refusals{}
	for round := 1; ; round++ {
		select {
		case <-a.ctx.Done():
			return
		case <-a.Barred():
			return
		case <-ticker.C:
		}
		if present, _ := a.Flock.Members(); present > 1 || a.Flock.IsOver() {
			continue // a peer whose run is over needs no others
		}
		retry, refused := a.tryEach(a.Join, round, since)
		if present, _ := a.Flock.Members(); present <= 1 && errors.As(refused, new(*description.MismatchError)) {
			a.Bar(refused)
			return
		}
		if len(retry) < len(a.Join) {
			a.Log.Info("alone: went back to the addresses to join", zap.Int("answered", len(a.Join)-len(retry)))
		}
	}
}

// tryEach asks all addresses at once, so that a silent one delays no other. It returns
// those to be asked again, and a refusal if there was one. A temporary refusal becomes
// final when it has lasted for a time.
func (a *Arrival) tryEach(addresses []string, round int, since refusals) (retry []string, refused error) {
	faults := make([]error, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() { faults[i] = a.contact(address) })
	}
	asked.Wait()
	for i, address := range addresses {
		err := faults[i]
		refuses, final := since.judge(address, err)
		if refuses {
			refused = err
		}
		switch {
		case err == nil:
			continue
		case final:
			a.Log.Error("cannot take part in the run of the peer to join", zap.String("address", address), zap.Error(err))
			continue
		case !refuses && round%joinReminder == 0 && !a.Reached() && a.ctx.Err() == nil:
			a.Log.Warn("cannot join yet; trying further. Check that a peer of this run listens there",
				zap.String("address", address), zap.Error(err))
		}
		retry = append(retry, address)
	}
	return retry, refused
}

// contact joins by one address.
func (a *Arrival) contact(address string) error {
	ctx, cancel := context.WithTimeout(a.ctx, joinTimeout)
	defer cancel()
	id, err := a.Transport.Connect(ctx, address)
	if errors.Is(err, transport.ErrDuplicate) {
		// A process that takes part already stays; the other learns of it in the handshake.
		n := a.joiner.Load()
		a.MeetDuplicate(address, err, !a.Reached() || n != nil && (!n.Open() || n.alone.Load()))
		return nil
	}
	if errors.Is(err, transport.ErrSelf) || err == nil && id == a.Transport.Self() {
		return nil // all peers may be given one list of addresses
	}
	if err != nil {
		return err
	}
	a.speaking.Add(1)
	defer a.speaking.Add(-1)
	return a.enter(ctx, id)
}

// MeetDuplicate ends the arrival of a peer whose key another process uses, if this process is
// the later one.
func (a *Arrival) MeetDuplicate(address string, proof error, later bool) {
	a.Log.Error("another process has this peer's key, as on a cloned machine: the later one stops. Give each process a key and a checkpoint folder of its own",
		zap.String("address", address), zap.Bool("this_is_the_later", later), zap.Error(proof))
	if later {
		a.Bar(proof)
	}
}

// enter joins by a member, and has the flock's model copied if necessary.
func (a *Arrival) enter(ctx context.Context, id transport.PeerID) error {
	welcome, said, err := a.Ask(ctx, id)
	if differs := a.Described.meet(id, said, a.Log); differs != nil {
		return differs // which says more than a refusal
	}
	if err != nil {
		return err
	}
	n := a.joiner.Load()
	var from Phase
	held := false
	if n != nil && welcome.FlockSteps > 0 {
		from, held = n.hold() // now, so that there is no exchange with an old model
	}
	if err := a.Membership.Join(ctx, id); err != nil {
		if held {
			n.advance(Copying, from)
		}
		return fmt.Errorf("joining the membership through %s: %w", id, err)
	}
	a.reach()
	if err := a.Operator.Ask(ctx, id); err != nil {
		a.Log.Warn("could not ask what the operator has said; trying others later", zap.String("peer", string(id)), zap.Error(err))
	}
	a.Loop.Joined()
	a.Log.Info("joined", zap.String("through", string(id)), zap.Uint64("flock_steps", welcome.FlockSteps))
	if n != nil {
		n.arrived(id, welcome, from, held)
	}
	return nil
}

// revisit looks for those partners of earlier lives that the joined members do not know.
func (a *Arrival) revisit() {
	if len(a.Partners) == 0 {
		return
	}
	select {
	case <-time.After(Timeout): // do not wait for the others' members
	case <-a.ctx.Done():
		return
	}
	for _, old := range a.Partners {
		if a.ctx.Err() != nil {
			return
		}
		if a.Flock.Here(old.ID) || old.ID == a.Transport.Self() {
			continue
		}
		if err := a.visit(old); err != nil {
			a.Log.Debug("a partner of an earlier run does not answer", zap.String("peer", string(old.ID)), zap.Error(err))
		}
	}
}

// visit joins by a partner of an earlier life.
func (a *Arrival) visit(old Partner) error {
	ctx, cancel := context.WithTimeout(a.ctx, joinTimeout)
	defer cancel()
	a.Transport.Learn(old.ID, old.Addresses)
	if err := a.enter(ctx, old.ID); err != nil {
		return err
	}
	a.Log.Info("found a partner of an earlier run", zap.String("peer", string(old.ID)))
	return nil
}
