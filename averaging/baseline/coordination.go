package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// coordination is how the peers of AllReduce and of ParamServer keep together: one of them,
// the coordinator, gives places in the ring or serves the parameters. It is the first
// member of the view, those that cannot be dialled last, or the named one, and stays that
// for the whole run. When it dies the run halts.
//
// A peer that knows no coordinator asks; the first in the order takes that on when all the
// others say that they know none, or say nothing for half the deadline. A reign names the
// updates that one coordinator has made: parameters of the same round of one reign are the
// same. Where views are not complete in the beginning two may take it on: when they meet,
// the one with fewer workers gives way, then the one with fewer rounds, then the later in
// the order, and takes the other's parameters.
type coordination struct {
	trainer
	role role
	electorate
	coordinator topology.PeerID // "" until it is known
	round       uint64          // of the parameters
	reign       uint64          // of the parameters, 0 while none has updated them
	current     uint64          // the coordinator's reign, as it says
	asked       time.Duration   // since when this peer looks for one, 0 if it does not
	heard       time.Duration   // when the coordinator spoke last
	halted      bool            // it is lost
	ended       bool            // it has said that the run is over
	initial     bool            // the parameters are those with which all begin
	mixed       bool            // they are a copy, or part of one
	progress    float64         // of the run, as the trainer said last
	saying      int             // farewells still to be said
}

// role is what differs.
type role interface {
	// workers is how many work with this coordinator.
	workers() int
	// begun begins to coordinate, deposed ends it.
	begun()
	deposed()
	// followed begins to follow a coordinator.
	followed()
	// report tells it where this peer is.
	report()
}

func (c *coordination) leads() bool { return c.coordinator == c.Self }

// concerned tells whether this peer needs a coordinator.
func (c *coordination) concerned() bool {
	return !c.halted && !c.settled && (c.waiting || c.over || c.ended)
}

// gradient takes a gradient up. It reports false if there is no use for it.
func (c *coordination) gradient(e collective.Event) bool {
	c.waiting, c.since, c.progress = true, c.Now, e.Progress
	c.initial = e.Initial && c.round == 0 && !c.mixed
	c.heard = max(c.heard, c.Now)
	c.speed.done(c.Now, e.Samples)
	switch {
	case c.over, c.ended:
		c.proceed()
	case c.halted:
		c.halt()
	default:
		return true
	}
	return false
}

// adopt takes the members of a view.
func (c *coordination) adopt(view *topology.View) {
	c.order = collective.MembersOf(view)
	if c.coordinator != "" && !c.leads() && !c.order.Has(c.coordinator) {
		c.lost()
	}
	c.seek()
}

// seek looks for the coordinator; it is repeated until there is one.
func (c *coordination) seek() {
	if c.coordinator != "" || !c.concerned() || !c.order.Has(c.Self) {
		return
	}
	if c.asked == 0 {
		c.asked = c.Now
	}
	waited := c.Now - c.asked
	switch first := c.first(); {
	case first == c.named && first != c.Self:
		if c.order.Has(first) {
			c.follow(first)
		} else if waited >= c.Deadline {
			c.lost()
		}
	case first != c.Self && waited >= c.Deadline:
		c.pass(first)
		c.asked = c.Now
		c.seek()
	case first != c.Self:
		c.Tell(first, word(wordWho, c.round, c.reign, 0))
	case first == c.named || c.allKnowNone() || waited >= c.Deadline/2:
		c.lead()
	default:
		for id := range c.others {
			if !slices.Contains(c.none, id) {
				c.Tell(id, word(wordWho, c.round, c.reign, 0))
			}
		}
	}
}

// lead begins to coordinate.
func (c *coordination) lead() {
	const spread = 0x9e3779b97f4a7c15 // odd, and far from what marks differ by
	c.coordinator, c.asked = c.Self, 0
	c.current = (collective.Mark(c.Self)*1_000_003 + uint64(c.Now)*spread) | 1
	c.reign = c.current
	c.role.begun()
	for id := range c.others {
		c.Tell(id, c.claim())
	}
}

// claim says that this peer coordinates.
func (c *coordination) claim() collective.Word {
	return word(wordLead, c.round, c.current, collective.Pack(uint64(c.role.workers()), collective.Mark(c.Self), leadBits))
}

// follow takes a coordinator.
func (c *coordination) follow(id topology.PeerID) {
	if c.leads() {
		c.role.deposed()
	}
	c.coordinator, c.asked, c.heard, c.current = id, 0, c.Now, 0
	c.role.followed()
	if c.concerned() {
		c.role.report()
	}
}

// lost ends training, or the wait for the model of the end.
func (c *coordination) lost() {
	if c.settled || c.leads() {
		return
	}
	c.Abort("")
	if c.over {
		c.proceed()
		c.depart()
		return
	}
	c.halted = true
	c.halt()
}

// end is told by the coordinator that the run is over: no gradient is of use any more.
func (c *coordination) end(parts bool) {
	if c.over && parts {
		c.lost()
		return
	}
	c.ended = true
	c.proceed()
}

// depart ends this peer's part in the run.
func (c *coordination) depart() {
	c.Abort("")
	c.settle()
	c.saying = farewells
	c.farewell()
}

// farewell tells those who may wait for this peer that the run is over here, now and a
// few times more.
func (c *coordination) farewell() {
	switch {
	case c.saying == 0:
		return
	case c.leads():
		for id := range c.others {
			c.Tell(id, word(wordParting, c.round, c.current, 0))
		}
	default:
		c.Tell(c.coordinator, word(wordParting, c.round, c.reign, 0))
	}
	c.saying--
}

// point tells a peer who coordinates, which takes this one for that if it has told its
// status.
func (c *coordination) point(to topology.PeerID, w collective.Word) {
	denied := 0.0
	if w.Kind == wordStatus {
		denied = 1
	}
	switch {
	case c.settled:
		c.Tell(to, word(wordParting, c.round, c.reign, 0))
	case c.coordinator == "" || c.halted:
		c.Tell(to, word(wordNone, c.round, c.reign, denied))
	case c.leads():
		c.Tell(to, c.claim())
	default:
		c.Tell(to, word(wordLead, c.round, 0, collective.Pack(0, collective.Mark(c.coordinator), leadBits)))
	}
}

// hear takes the words that are about who coordinates. It reports false for others. A
// stranger, who asks before the view has it, is told who does and believed nothing.
func (c *coordination) hear(from topology.PeerID, w collective.Word) bool {
	if !c.order.Has(from) {
		if w.Kind == wordWho || w.Kind == wordStatus && !c.leads() {
			c.point(from, w)
		}
		return true
	}
	c.silent = slices.DeleteFunc(c.silent, func(id topology.PeerID) bool { return id == from })
	if from == c.coordinator {
		c.heard = c.Now
		if w.Kind == wordLead || w.Kind == wordHeard {
			c.current = w.View
		}
	}
	switch w.Kind {
	case wordWho:
		c.knowsNone(from)
		c.point(from, w)
	case wordNone:
		if from == c.coordinator && from != c.named && w.Value > 0 { // it has died and begun anew
			c.lost()
			break
		}
		if c.knowsNone(from); c.order.Has(c.Self) && c.first() == c.Self && c.allKnowNone() {
			c.seek()
		}
	case wordLead:
		c.claimed(from, w)
	case wordBatch:
		if from == c.coordinator && w.Value >= 1 && w.Value <= MaxBatch {
			c.batch = int(w.Value)
		}
	case wordHeard:
		return false
	case wordParting, wordEnd:
		if from != c.coordinator {
			return false
		}
		c.end(w.Kind == wordParting)
	default:
		return false
	}
	return true
}

// claimed handles the word of who coordinates.
func (c *coordination) claimed(from topology.PeerID, w collective.Word) {
	workers, mark := collective.Unpack(w.Value, leadBits)
	id := c.order.Find(mark)
	c.none = slices.DeleteFunc(c.none, func(x topology.PeerID) bool { return x == from })
	switch {
	case id == "" || c.halted || c.named != "" && id != c.named || id == c.coordinator:
	case c.settled:
		c.point(from, w)
	case id == c.Self && (c.coordinator == "" || from == c.coordinator):
		if c.leads() {
			break
		}
		c.coordinator = ""
		c.lead()
	case id == c.Self:
		c.point(from, w)
	case c.leads() && from != id:
		c.Tell(id, c.claim())
	case c.leads() && c.yields(id, int(workers), w.Round), c.coordinator == "", from == c.coordinator:
		c.follow(id)
	case from == id:
		c.point(from, w) // the two settle it between them
	}
}

// yields tells whether another coordinator, with so many workers at a round, has the better
// claim.
func (c *coordination) yields(id topology.PeerID, workers int, round uint64) bool {
	switch own := c.role.workers(); {
	case own != workers:
		return workers > own
	case c.round != round:
		return round > c.round
	}
	return slices.Index(c.order, id) < slices.Index(c.order, c.Self)
}

// invite tells those who do not work with this coordinator that it is one.
func (c *coordination) invite(works func(topology.PeerID) bool) {
	for id := range c.others {
		if !works(id) {
			c.Tell(id, c.claim())
		}
	}
}

// interval is how long a waiting peer waits before it speaks again: less while it looks
// for a coordinator, as at the beginning of a run, when the first words may meet nobody.
func (c *coordination) interval() time.Duration {
	if c.coordinator == "" {
		return max(c.Slice()/4, time.Millisecond)
	}
	return c.Slice()
}

// restFor is for how many deadlines a worker waits for the model of the end at most.
const restFor = 2

// patient speaks again where this peer waits, and gives up after the deadline.
func (c *coordination) patient() {
	c.farewell()
	late := c.over && c.Now-max(c.overAt, c.since) >= c.Deadline
	switch {
	case late && c.waiting:
		c.Abort("")
		c.proceed()
	case c.over && !c.settled && c.Now-c.overAt >= restFor*c.Deadline:
		c.lost()
	case c.coordinator == "":
		c.seek()
	case c.leads() || !c.concerned():
	case c.Now-max(c.heard, c.since) >= c.Deadline:
		c.lost()
	default:
		c.role.report()
	}
}

// arm sets the timer while somebody waits.
func (c *coordination) arm() {
	c.Arm(c.concerned() || c.leads() && !c.settled || len(c.Out) > 0 || c.saying > 0, c.interval())
}

// runOver notes that the run is.
func (c *coordination) runOver() {
	c.over, c.overAt = true, c.Now
	switch {
	case c.halted:
		c.depart()
	case c.coordinator != "" && !c.leads() && !c.waiting:
		c.role.report()
	}
}

// handle does what the machines have in common with an event. It reports false if there is
// more to do.
func (c *coordination) handle(e collective.Event) bool {
	switch e.Kind {
	case averaging.StepDone: // of a trainer of models: it is nothing that can be summed
		c.Ask(averaging.Proceed)
	case averaging.Proposed:
		c.Refuse(e, averaging.Unfit)
	case averaging.RunOver:
		c.runOver()
	default:
		return false
	}
	return true
}
