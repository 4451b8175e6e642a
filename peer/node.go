package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/loglimit"
	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/presence"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/sumnet"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Node is a member of a run: it knows the other members, sums with them, obeys the operator and
// answers requests from outside. It has a model, and takes part in exchanges, only while it has a
// Trainer. Safe for concurrent use.
type Node struct {
	network Network
	log     *zap.Logger

	flock    *flock.Flock
	counters *counters.Counters
	orders   *orders.Orders
	presence *presence.Presence // this member's place among the others
	arrival  *arrival.Arrival
	sums     summing
	figures  *figures
	inbox    *inbox // of the loop
	loop     *loop
	tenant   atomic.Pointer[tenant] // nil if there is none
	requests *requests.Requests     // conversations other than exchanges

	net        adapters
	serving    chan struct{} // closed when this member and others can open streams to each other
	logOmitted func()        // logs the counts of lines that were left out
	life       *tasks.Life
}

// tenant is the trainer of a node, as the node sees it.
type tenant interface {
	serve() error       // registers its protocols
	report(*stats.Peer) // fills in its figures
	end(leave func())   // closes it, for a node that leaves with it; the node announces that in leave
}

// Join makes a member of a run, listens, and begins to join in the background; it does not
// wait for other members. The context covers the start only. Join reports all faults of the
// configuration at once.
func Join(ctx context.Context, network Network) (*Node, error) {
	if err := errors.Join(network.faults()...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("joining run %q: %w", network.Run, err)
	}
	n, err := newNode(network.withDefaults())
	if err == nil {
		err = n.begin(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("joining run %q: %w", network.Run, err)
	}
	return n, nil
}

// newNode makes a member that has not begun yet.
func newNode(network Network) (_ *Node, err error) {
	log, logOmitted := loglimit.Limit(network.Log)
	network.Log = log
	n := &Node{
		network: network, log: log, logOmitted: logOmitted, life: tasks.NewLife(), serving: make(chan struct{}),
		net: adapters{membership: network.Membership}, counters: counters.New(),
	}
	n.inbox = newInbox(n.life.Running)
	defer func() {
		if err != nil {
			_ = n.dismantle()
		}
	}()
	if err = n.net.open(network, n.introduce, n.foundReachable); err != nil {
		return nil, err
	}
	n.log = n.log.With(zap.String("self", n.Self().Short()))
	if name := network.Control.Name; name != "" {
		n.log = n.log.With(zap.String("name", name))
	}
	n.requests = requests.New(network.Run, n.net.transport, network.fixed.stall, n.counters, n.log)
	n.flock = flock.New(n.Self())
	n.flock.SetIdle(true)
	n.flock.SetReachable(network.Reach != Unreachable)
	n.flock.SetPlace(network.place())
	if n.net.guard != nil {
		n.flock.Trust()
	}
	described, err := arrival.NewDescribed(n.net.transport, network.described())
	if err != nil {
		return nil, err
	}
	network.Control.Changed = n.net.obeying(network.Control.Changed, n.life)
	n.orders = orders.New(network.Control, n.requests, n.flock, described)
	memory := arrival.Recall(network.KnownPeers, network.partners(), n.log)
	n.arrival = arrival.New(arrival.Config{
		Greeter: arrival.Greeter{Requests: n.requests, Guard: n.net.guard, Flock: n.flock, Described: described, Build: control.Version()},
		Join:    network.Join, Partners: memory.Past, Membership: n.net.membership, Operator: n.orders, Loop: n.inbox,
	})
	n.presence = presence.New(presence.Config{
		Run: network.Run, Transport: n.net.transport, Membership: n.net.membership, Flock: n.flock, Guard: n.net.guard,
		Arrival: n.arrival, Life: n.life, Past: memory.IDs(), Log: n.log,
	})
	n.sums = summing{with: network.Sums, arrival: n.arrival, net: sumnet.New(n.requests, n.flock)}
	n.sums.net.Begin()
	n.figures = &figures{
		name: network.Control.Name, build: control.Version(), net: &n.net, flock: n.flock, counters: n.counters, orders: n.orders,
		presence: n.presence, arrival: n.arrival, life: n.life, tenant: &n.tenant,
	}
	n.loop = &loop{
		inbox: n.inbox, net: &n.net, arrival: n.arrival, presence: n.presence, memory: memory, sums: n.sums.net,
		orders: n.orders, counters: n.counters, life: n.life, log: n.log,
	}
	return n, nil
}

// begin starts a node, with a trainer or without.
func (n *Node) begin(with tenant) (err error) {
	defer func() {
		if err == nil {
			return
		}
		if with != nil {
			n.life.End() // there is no loop yet that would release the tenant
			with.end(nil)
		}
		_ = n.dismantle()
	}()
	if err = n.presence.Announce(time.Now()); err != nil {
		return err
	}
	n.orders.Begin()
	n.life.Background.Go(func() { n.orders.Run(n.life.Running, n.figures) }) // it leaves the topic
	if err = n.serve(); err == nil && with != nil {
		err = with.serve()
	}
	if err != nil {
		return err
	}
	close(n.serving)
	n.life.Background.Go(n.loop.run)
	n.arrival.Begin()
	n.life.Background.Go(func() { n.net.guard.Watch(n.life.Running, n.showOut) })
	return nil
}

// serve registers the protocols that others may speak to any member.
func (n *Node) serve() error {
	members := func(s *framed.Stream) error {
		n.orders.Tell(s, n.Members())
		return nil
	}
	return n.net.serve(n.network.Run, n.life, []service{
		{transport.ProtocolHello, n.requests.Answering(n.arrival.Serve)}, // first to begin and last to end: it gives the reasons of refusals
		{transport.ProtocolControl, n.requests.Answering(n.orders.Serve)},
		{transport.ProtocolMembers, n.requests.Answering(members)},
		{transport.ProtocolSum, n.sums.net.Serve},
	})
}

// Self is the member's identity.
func (n *Node) Self() transport.PeerID { return n.net.transport.Self() }

// JoinAddresses are addresses, with the member's identity, that another may give in Network.Join.
func (n *Node) JoinAddresses() []string { return n.net.transport.JoinAddresses() }

// Description is the description of the run, as signed by the peer that began it, for Checkpoint.Describing.
func (n *Node) Description() description.Signed { return n.arrival.Described.Held() }

// Describe replaces the description of the run, once its members have found out more about it together. As with
// Gather, all call it with the same name, which is the name of a sum. The peer that signed the old description
// signs the new one, or else the first that takes part; all members send it to peers that join, and compare it
// with theirs. Describe returns how many took part. It fails with a *description.MismatchError if this member's
// description differs in a way that would harm models or work.
func (n *Node) Describe(ctx context.Context, name string, fields []description.Field) (peers int, err error) {
	d := description.Description{Run: n.network.Run, Fields: fields}
	own, err := description.Sign(n.net.transport, d)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(own)
	if err != nil {
		return 0, fmt.Errorf("describing run %q: %w", d.Run, err)
	}
	all, err := n.Gather(ctx, name, text)
	if err != nil {
		return 0, err
	}
	said := make([]description.Signed, len(all))
	for i, text := range all {
		if err := json.Unmarshal(text, &said[i]); err != nil {
			return 0, fmt.Errorf("%w: %w", description.ErrInvalid, err)
		}
	}
	return len(all), n.arrival.Described.Renew(d, said)
}

// Stats returns what the node knows now about itself and the run.
func (n *Node) Stats() stats.Peer { return n.figures.stats() }

// Counters counts how exchanges have ended since the start, by cause. It costs more than Stats: call it now and then
// only.
func (n *Node) Counters() stats.Counters { return n.figures.counts() }

// Members are the members of the run, this one included, in the order of their ids, with what each reports of itself.
func (n *Node) Members() []control.Member { return n.figures.members() }

// Raise says which alarms stand here now: all members are told with digests, and show them. See stats.Alarms and
// stats.SetOf.
func (n *Node) Raise(alarms stats.AlarmSet) { n.figures.alarms.Store(uint32(alarms)) }

// State is what the peer is doing; control.Closed once Close has returned.
func (n *Node) State() control.State { return n.figures.state() }

// WaitMembers waits until the run has at least so many members, this one included. It fails
// as Step does if the members that it asks refuse to let it join.
func (n *Node) WaitMembers(ctx context.Context, least int) error {
	return n.await(ctx, n.life, least, "members", func() int {
		present, _ := n.flock.Members()
		return present
	})
}

// await waits until there are at least so many of something, for who has a life.
func (n *Node) await(ctx context.Context, life *tasks.Life, least int, what string, count func() int) error {
	const look = 10 * time.Millisecond
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		present := count()
		switch {
		case life.IsClosing():
			return ErrClosed
		case present >= least:
			return n.arrival.Fault() // nil but for one that is barred, and counts itself
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d %s, %d are here: %w", least, what, present, ctx.Err())
		case <-n.arrival.Barred():
			return n.arrival.Fault()
		case <-ticker.C:
		}
	}
}

// Sum adds up, element by element, the vectors of all members that call it with the same name. Each gets the same
// bytes, and the number of members that took part. Sum works with or without training, and does not disturb it.
//
// All members that take part call the same sums. Each name, of 1 to 64 bytes of text, is used once
// in a run. All vectors have the same length, at most MaxSum, and hold finite numbers. Sum reads
// the vector until it returns, and does not change it. The first sum waits for all members of this
// flock, each later one for those that took part in the one before; never longer than Sums.Timeout.
//
// Each member sends, on average, twice the size of its vector, whatever the number of members, and at most three
// times. It needs the memory of three vectors, and of one and a half more where one partner is much slower than the
// others. The vector of a member that dies is left out, or has been added before: all that are left have the same
// sum. After an error this peer has no sum, though its vector may count at the others. A sum always ends. A member
// that holds it up is left out after three attempts, each of at most a minute, some seconds, and the time of its
// bytes at 64 KiB/s. A coordinator that does not end the sum is given up after 11 minutes, 3 for each member, and
// three times the time of the bytes (docs/design/034). Safe for concurrent use.
//
// With masks (Sums.Masked) nobody sees less than the sum of three members and of Sums.AtLeast; with fewer the sum is
// ErrTooFew, as where two die while it ends (docs/design/043). Of n members with numbers below 2^e, each brings multiples
// of 2^-k, in a vector of up to 65,536 with k = 123-2⌈log₂ n⌉-e, for twice the bytes, in a longer one with
// k = 62-⌈log₂ n⌉-e: the sum is at most n/2 of these off, and rounded twice; of integers up to 2^52 it is exact. With k below
// 24 or 0 it is ErrImprecise: numbers that are nothing alike go into sums of their own.
// One beyond all float64 is ErrNotFinite. Who coordinates hears e of each, all hear the largest. Without masks, and in
// Max and Gather, a partner sees half of a member's numbers, or all if it is alone with it. A hostile member can bring
// any numbers: sum in runs that admit only members you trust.
func (n *Node) Sum(ctx context.Context, name string, vector []float64) (sum []float64, peers int, err error) {
	return n.sums.add(ctx, name, vector, mask.Exponent(vector...))
}

// Max is the largest value, element by element, of what all members bring: see Sum. For the
// smallest, negate the numbers, call Max, and negate the result; one vector may hold both.
func (n *Node) Max(ctx context.Context, name string, vector []float64) (largest []float64, peers int, err error) {
	return n.sums.vector(ctx, sums.Call{Name: name, Op: sums.Max, Vector: vector})
}

// Gather gives every member the blocks that all members bring, in the same order: see Sum. A block has
// at most 64 MiB, all together 512 MiB. Each member sends, on average, as much as all but one bring; a
// member that brings most of the bytes sends up to log n times that. Gather is for data that cannot be
// added, such as sketches and lists of names: every member merges the same blocks in the same order.
// The contents are not checked; the reader must.
func (n *Node) Gather(ctx context.Context, name string, data []byte) (all [][]byte, err error) {
	if len(data) > sums.MaxGather {
		return nil, fmt.Errorf("gathering %q: %d bytes, at most %d", name, len(data), sums.MaxGather)
	}
	done, err := n.sums.do(ctx, sums.Call{Name: name, Op: sums.Gather, Data: data})
	return done.Blocks, err
}

// Close leaves the run, after Trainer.Close if there is a trainer: it announces the departure,
// and waits for every goroutine of the node. It is idempotent.
func (n *Node) Close() error {
	if !n.life.Leave() { // holds no lock meanwhile: virtual time stands still while a goroutine waits for a lock
		return n.life.Fault
	}
	defer close(n.life.Closed)
	leave := func() {
		close(n.life.Closing)
		n.arrival.Close()
	}
	if t := n.tenant.Load(); t != nil {
		(*t).end(leave)
	} else {
		leave()
	}
	n.life.Fault = n.dismantle()
	n.logOmitted()
	return n.life.Fault
}

// dismantle ends everything that newNode and begin have started.
func (n *Node) dismantle() error {
	if n.arrival != nil {
		n.arrival.Close()
	}
	_, _, rest := n.network.fixed.patience(n.orders.Drained(), 0)
	timer := time.AfterFunc(rest, n.life.BreakOff) // for what is on its way
	defer timer.Stop()
	if n.sums.net != nil {
		n.sums.net.Close()
	}
	n.life.Stop(1)
	n.life.End()
	var faults []error
	if n.net.membership != nil {
		faults = append(faults, n.net.membership.Close())
	}
	n.life.Stop(0)
	if n.net.own != nil {
		faults = append(faults, n.net.transport.Close())
	}
	return errors.Join(faults...)
}

// showOut disconnects members that were removed from the list, and has the loop refresh the membership.
func (n *Node) showOut(removed []transport.PeerID) {
	for _, id := range removed {
		n.net.disconnect(id)
	}
	n.inbox.Corrected()
}

// introduce sends a hello to a relay that refuses this member. A relay refuses all that have not proved that they
// take part. The transport may call introduce before the member has begun.
func (n *Node) introduce(ctx context.Context, relay transport.PeerID) error {
	select {
	case <-n.serving:
	case <-ctx.Done():
		return fmt.Errorf("introducing this peer to a relay: %w", ctx.Err())
	}
	_, err := n.arrival.Hello(ctx, relay)
	return err
}

// foundReachable notes whether others can dial this member, unless the configuration says so.
func (n *Node) foundReachable(reachable bool) {
	select {
	case <-n.serving: // the transport may find out before that
	case <-n.life.Running.Done():
		return
	}
	if n.network.Reach != FindReach || !n.flock.SetReachable(reachable) {
		return
	}
	if reachable {
		n.log.Info("others can dial this peer after all")
	} else {
		n.log.Info("others cannot dial this peer: it is active from now on, and begins its exchanges itself",
			zap.Bool("has_relay", len(n.network.Relay.Via) > 0))
	}
	n.inbox.Corrected()
}
