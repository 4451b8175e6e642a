package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// coordination is the common part of AllReduce and ParamServer: one peer, the coordinator,
// gives out places in sums or serves the parameters. It is the named peer, or else the
// first of the members in their order: those that only serve come first, those that cannot
// be dialled last, and of each kind the one whose turn it is for this part of the model
// (collective.Members). When it dies, the member with the newest parameters takes its place.
//
// A peer that knows no coordinator asks the first member, which becomes coordinator when all
// others answer that they know none, or do not answer for half the deadline. If views are
// incomplete at the beginning, two peers may become coordinators: when they meet, the one
// with fewer updates follows the other, and takes its parameters.
//
// The answers of those who have lost their coordinator say which version of the parameters
// they have. The first member gives the place to the newest. It waits while a member says
// that it still follows the lost one: either that member will notice too, or only this
// peer has lost it, and halts.
type coordination struct {
	trainer
	role
	succession
	algorithm   collective.Algorithm
	members     collective.Members
	named       topology.PeerID // coordinates as long as it is a member, if set
	coordinator topology.PeerID // "" until it is known
	copied      bool            // copied from another, at least in part: the optimizer lacks their past gradients
	lastMessage time.Duration   // time of the coordinator's last message
	halted      bool            // there is no coordinator, and none to be expected
	ended       bool            // the coordinator has said that the run is over
	serveOnly   bool            // this peer makes no gradients
	wanted      bool            // a peer that makes some has asked who coordinates
	progress    float64         // of the run, as last reported by the trainer
	division    division
}

func (c *coordination) begin(config Config, algorithm collective.Algorithm, r role) {
	c.Flights, c.role, c.algorithm = config.flights(), r, algorithm
	c.members.Self = config.Self
	c.division = division{whole: config.GlobalBatch, each: config.Batch, speeds: map[topology.PeerID]float64{}}
}

// Traits implements collective.Machine.
func (c *coordination) Traits() collective.Traits {
	return collective.Traits{Algorithm: c.algorithm, Gradients: true, ServesOnly: c.serveOnly, Messages: true}
}

// Handle implements averaging.Machine.
func (c *coordination) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	return collective.Handle(c, now, event, actions)
}

// Decide implements collective.Machine.
func (c *coordination) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	c.Begin(now, actions)
	switch e.Kind {
	case averaging.StepDone: // one of several before a gradient, or of a trainer of models, which cannot be summed
		c.trains(e)
		c.Do(collective.Action{Action: averaging.Action{Kind: averaging.Proceed}, Batch: c.batch, Version: c.version})
	case collective.GradientReady:
		c.under(e)
	case collective.GradientLost:
		c.underway = 0
	case collective.GradientDone:
		c.gradient(e)
	case averaging.ViewChanged:
		for _, id := range c.members.See(e.Overlay.View()) {
			c.lose(id)
		}
		c.seek()
	case averaging.Proposed:
		c.Refuse(e, averaging.Unfit)
	case collective.Offered:
		c.role.offered(e)
	case averaging.Accepted:
		c.Accepted(e)
	case averaging.Refused, averaging.Finished, averaging.Failed:
		c.role.landed(e)
	case averaging.TimerFired:
		if c.Ticked(e) {
			c.checkDeadline()
			c.role.retransmit()
		}
	case averaging.PeerLost, averaging.Quarantined:
		c.lose(e.Peer)
	case collective.Received:
		c.take(e.Peer, e.Message)
	case collective.Updated:
		c.role.updated()
	case collective.Wanted:
		c.want()
	case averaging.RunOver:
		c.runOver()
	}
	c.role.due()
	c.arm()
	return c.End()
}

// lose goes on without a peer.
func (c *coordination) lose(id topology.PeerID) {
	delete(c.none, id)
	delete(c.division.speeds, id)
	c.role.lose(id)
}

// Coordinator is the member that coordinates, "" while none is known.
func (c *coordination) Coordinator() topology.PeerID { return c.coordinator }

func (c *coordination) leads() bool { return c.coordinator == c.Self }

// concerned tells whether this peer needs a coordinator.
func (c *coordination) concerned() bool {
	return !c.halted && !c.settled && (c.waiting || c.over || c.ended || c.serveOnly && c.wanted)
}

// trains notes that the trainer has begun, perhaps with the parameters with which all begin.
func (c *coordination) trains(e collective.Event) {
	if e.Initial && c.version == unknownVersion && !c.copied {
		c.version = initialVersion
	}
}

// under takes the last values of a gradient that is being computed, if they can be used.
func (c *coordination) under(e collective.Event) {
	if c.over || c.ended || c.halted {
		return
	}
	if c.underway == 0 {
		c.underway = max(c.Now, 1)
	}
	c.progress, c.samples = e.Progress, e.Samples
	c.trains(e)
	c.role.partly(e.From)
}

// brings tells whether the trainer has a gradient, or computes one of which it has told a part, for no longer than the
// deadline.
func (c *coordination) brings() bool {
	return c.waiting || c.underway > 0 && c.Now-c.underway < c.Deadline
}

// gradient takes a gradient, if it can be used.
func (c *coordination) gradient(e collective.Event) {
	c.waiting, c.since, c.lastMessage, c.progress = true, c.Now, c.Now, e.Progress
	c.trains(e)
	c.speed.done(c.Now, e.Samples)
	c.samples, c.division.speeds[c.Self] = e.Samples, c.speed.value
	if c.division.divides() {
		c.Tell(c.coordinator, message(messageSpeed, 0, c.speed.value))
	}
	switch {
	case c.over && !c.role.placed(), c.ended:
		c.proceed()
	case c.halted:
		c.halt()
	default:
		c.role.ready()
		c.seek()
	}
	c.underway = 0
}

// depart ends this peer's part in the run, and informs the peers that may wait for it.
func (c *coordination) depart() {
	c.Abort("")
	c.settle()
	c.part()
}

func (c *coordination) part() {
	if c.leads() {
		c.farewell(slices.Collect(c.members.Others)...)
	} else {
		c.farewell(c.coordinator)
	}
}

// take handles a message. A peer that is not in the view yet is only told who coordinates.
func (c *coordination) take(from topology.PeerID, w collective.Message) {
	if !c.members.Has(from) {
		if w.Kind == messageWho || w.Kind == messageStatus && !c.leads() {
			c.point(from, w)
		}
		return
	}
	c.members.Spoke(from, c.Now)
	if from == c.coordinator {
		c.lastMessage = c.Now
	}
	switch w.Kind {
	case messageWho:
		c.knowsNone(from, w.Round)
		c.want()
		c.point(from, w)
	case messageNone:
		if from == c.coordinator && w.Value == float64(messageStatus) { // it has died and restarted
			c.lost()
			break
		}
		if c.knowsNone(from, w.Round); c.members.First() == c.Self && c.allKnowNone(&c.members) {
			c.seek()
		}
	case messageLead:
		c.claimed(from, w)
	case messageBatch:
		if from == c.coordinator && w.Value >= 1 && w.Value <= MaxBatch {
			c.batch = int(w.Value)
		}
	case messageSpeed:
		c.division.speeds[from] = w.Value
	case messageParting, messageEnd:
		switch {
		case from != c.coordinator:
			c.lose(from)
		case c.over && w.Kind == messageParting:
			c.lost()
		default: // gradients are no longer used
			c.ended = true
			c.proceed()
		}
	case messageStatus:
		if !c.leads() || c.halted || c.settled {
			c.point(from, w)
			break
		}
		fallthrough
	default:
		c.role.receive(from, w)
	}
}

// want has a peer that only serves look for the one that serves, because somebody asks: by now its view is likely to be
// complete.
func (c *coordination) want() {
	if c.serveOnly && !c.wanted {
		c.wanted = true
		c.seek()
	}
}

// divide sends the workers their parts of the flock's batch.
func (c *coordination) divide(workers []topology.PeerID) {
	for i, share := range c.division.shares(workers) {
		if workers[i] == c.Self {
			c.batch = share
		}
		c.Tell(workers[i], message(messageBatch, 0, float64(share)))
	}
}

// sendParameters sends this peer's parameters to another, rounded unless exact is set.
func (c *coordination) sendParameters(to topology.PeerID, round uint64, exact bool) {
	t := collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Parts: 1, Round: round}
	c.Send(to, t, exact)
}

// restFor is how many deadlines a worker waits for the final model at most.
const restFor = 2

// checkDeadline retransmits while this peer waits, and gives up after the deadline.
func (c *coordination) checkDeadline() {
	c.part()
	switch {
	case c.over && !c.settled && c.Now-c.overAt >= restFor*c.Deadline:
		c.lost()
	case c.coordinator == "":
		c.seek()
	case c.leads() || !c.concerned():
	case c.Now-c.lastMessage >= c.Deadline:
		c.lost()
	default:
		c.role.Report()
	}
}

// arm sets the timer while a peer waits: a shorter one while this peer looks for a
// coordinator, since at the beginning of a run the first messages may reach nobody.
func (c *coordination) arm() {
	after := c.Slice()
	if c.coordinator == "" {
		after = max(after/4, time.Millisecond)
	}
	c.Arm(c.concerned() || c.underway > 0 || c.leads() && !c.settled || len(c.Out) > 0 || c.saying > 0, after)
}

// runOver notes that the run is over.
func (c *coordination) runOver() {
	c.over, c.overAt = true, c.Now
	switch {
	case c.halted:
		c.depart()
	case !c.waiting:
		c.role.Report()
	}
}
