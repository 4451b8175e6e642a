package baseline

import "github.com/seed-97356399/murmuration/averaging"

// This file is how all end with one model. Peers hear at different moments that the run is
// over, and a round may be made without those who have heard sooner. So who is done rests:
// it makes no gradients, follows the leader, and tells it so. When nobody trains any more,
// the leader gives those its parameters who have others, and parts.

// restFor is for how many deadlines a peer rests at most, the leader for one: a peer that
// does not end in time ends with what it has.
const restFor = 2

// concerned tells whether this peer needs a leader.
func (o *office) concerned() bool { return o.waiting || o.resting }

// rest begins to rest.
func (o *office) rest() {
	o.resting, o.since = true, o.now
	switch {
	case o.leader == "":
		o.seek()
	case !o.leads():
		o.duties.report()
	}
}

// rested tells whether this peer has rested for long enough.
func (o *office) rested() bool {
	most := o.config.Deadline
	if !o.leads() {
		most *= restFor
	}
	return o.resting && (o.parted || o.now-max(o.overAt, o.since) >= most)
}

// unserved goes on where nobody can lead: the trainer fails, and who rests is done.
func (o *office) unserved() {
	o.parted = o.resting
	o.halt(averaging.NoServer)
}

// depart ends this peer's part in the run.
func (o *office) depart() {
	o.resting = false
	o.abort("")
	if o.leads() {
		o.duties.deposed()
	}
	o.farewell()
	o.settle()
}
