package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// office is a peer that leads or follows a leader: what AllReduce and ParamServer have
// in common beside core.
type office struct {
	core
	seat
	duties    duties
	round     uint64 // of the parameters, in their lineage
	parent    uint64 // the lineage that this leader's own continues
	forked    uint64 // the round at which it does
	since     time.Duration
	overAt    time.Duration
	claims    uint64
	batch     int
	progress  float64         // of the run, as the trainer said last
	initial   bool            // the parameters are those with which all begin
	mixed     bool            // some of the parameters are another's
	parting   topology.PeerID // the leader when the run was over
	toAll     bool            // this peer was that
	farewells int             // still to be said
	resting   bool            // the run is over here, and the model of the end is to come
	parted    bool            // the leader has said that nothing is to come any more
}

// farewells is how often a peer says that the run is over for it.
const farewells = 3

// duties are what differs.
type duties interface {
	// followers is how many follow this leader.
	followers() uint64
	// enthroned begins to lead, deposed ends it.
	enthroned()
	deposed()
	// followed begins to follow a leader.
	followed()
	// report tells the leader where this peer is.
	report()
}

func (o *office) standing() standing {
	return standing{leader: o.self, followers: o.duties.followers(), round: o.round}
}

// seek looks for a leader; it is repeated until there is one.
func (o *office) seek() {
	if o.leader != "" || !o.concerned() || !o.member(o.self) {
		return
	}
	if !o.asking {
		o.asking, o.asked = true, o.now
	}
	first := o.first()
	switch {
	case first != o.self:
		if o.now-o.asked >= o.config.Deadline {
			o.abandon(first)
			return
		}
		o.tell(first, word(wordWho, o.round, o.lineage, 0))
	case o.lineage != 0 || o.alone() || o.now-o.asked >= o.config.Deadline/2 || o.named == o.self:
		o.enthrone()
	default:
		for id := range o.others {
			if !slices.Contains(o.none, id) {
				o.tell(id, word(wordWho, o.round, o.lineage, 0))
			}
		}
	}
}

// abandon goes on without a peer that was to lead; with nobody else it fails.
func (o *office) abandon(first topology.PeerID) {
	o.asked = o.now
	if o.named != "" {
		o.unserved()
		return
	}
	o.pass(first)
	o.seek()
}

// enthrone claims the seat.
func (o *office) enthrone() {
	o.leader, o.asking = o.self, false
	o.claims++
	o.parent, o.forked = o.lineage, o.round
	o.lineage = o.next(o.claims, o.now)
	o.duties.enthroned()
	o.proclaim()
}

// proclaim tells those who do not follow who leads.
func (o *office) proclaim() {
	for id := range o.others {
		o.tell(id, o.standing().word(o.lineage))
	}
}

// follow takes a leader.
func (o *office) follow(leader topology.PeerID) {
	if o.leads() {
		o.duties.deposed()
	}
	o.leader, o.asking, o.heard = leader, false, o.now
	o.duties.followed()
	if o.concerned() {
		o.duties.report()
	}
}

// orphaned goes on without the leader.
func (o *office) orphaned() {
	o.pass(o.leader)
	o.leader, o.asking = "", false
	if o.concerned() {
		o.seek()
	}
}

// pointed tells a peer who leads.
func (o *office) pointed(to topology.PeerID) {
	switch {
	case o.settled:
		o.tell(to, word(wordParting, o.round, o.lineage, 0))
	case o.leader == "":
		o.tell(to, word(wordNone, o.round, o.lineage, 0))
	case o.leads():
		o.tell(to, o.standing().word(o.lineage))
	default:
		o.tell(to, standing{leader: o.leader, round: o.round}.word(o.lineage))
	}
}

// heeds tells whether a word is to be believed, which that of a member is. Who asks before
// the view has it is told who leads; a leader says nothing to one whose place it does not
// know, which would wait for it in vain.
func (o *office) heeds(from topology.PeerID, w averaging.Word) bool {
	if o.member(from) {
		return true
	}
	if w.Kind == wordWho || w.Kind == wordStatus && !o.leads() {
		o.pointed(from)
	}
	return false
}

// elected handles the words that are about who leads. It reports false for others.
func (o *office) elected(from topology.PeerID, w averaging.Word) bool {
	switch w.Kind {
	case wordWho:
		before := o.leader
		o.without(from, w)
		if o.leader == before {
			o.pointed(from)
		}
	case wordNone:
		if from == o.leader {
			o.pointed(from) // it has forgotten, or said so before it knew
		}
		o.without(from, w)
	case wordLead:
		o.claimed(from, w)
	case wordBatch:
		if from == o.leader && w.Value >= 1 && w.Value <= MaxBatch {
			o.batch = int(w.Value)
		}
	case wordHeard:
	default:
		return false
	}
	return true
}

// without notes that a peer knows no leader. One that has taken part leads rather than
// one that has not.
func (o *office) without(id topology.PeerID, w averaging.Word) {
	news := w.View == 0 && !slices.Contains(o.none, id)
	switch {
	case w.View != 0 && o.lineage == 0 && o.leader == "" && o.named == "":
		o.tell(id, standing{leader: id, round: w.Round}.word(w.View))
		o.follow(id)
		return
	case news:
		o.none = append(o.none, id)
	}
	// Whoever says the same again is asked again with the next tick, and not at once, or
	// two who look for a leader would ask each other as fast as words travel.
	if o.asking && (o.alone() || o.lineage != 0) && (news || o.first() == o.self) {
		o.seek()
	}
}

// claimed handles the word of who leads.
func (o *office) claimed(from topology.PeerID, w averaging.Word) {
	if o.settled {
		o.pointed(from)
		return
	}
	claim := o.claim(w)
	o.none = slices.DeleteFunc(o.none, func(x topology.PeerID) bool { return x == from })
	if claim.leader == "" || o.named != "" && claim.leader != o.named {
		return
	}
	switch {
	case claim.leader == o.self:
		o.called(from)
	case o.leads():
		o.contested(from, claim)
	case claim.leader == o.leader:
	case o.leader == "", from == o.leader:
		if from != claim.leader && slices.Contains(o.passed, claim.leader) {
			o.tell(claim.leader, word(wordWho, o.round, o.lineage, 0)) // it may live after all
			return
		}
		o.follow(claim.leader)
	case from == claim.leader:
		o.pointed(from) // the two leaders settle it between them
		if o.resting {
			o.duties.report() // and this peer hears of it
		}
	}
}

// called is told that it leads itself.
func (o *office) called(from topology.PeerID) {
	switch {
	case o.leads():
	case o.leader == "" || o.leader == from:
		if o.settled {
			o.pointed(from)
			return
		}
		o.enthrone()
	default:
		o.pointed(from)
	}
}

// contested settles who leads with another who says that it does.
func (o *office) contested(from topology.PeerID, claim standing) {
	switch {
	case from != claim.leader:
		o.tell(claim.leader, o.standing().word(o.lineage))
	case o.beats(claim, o.standing()):
		o.follow(claim.leader)
	default:
		o.pointed(from)
	}
}

// begun notes that the trainer waits from now on.
func (o *office) begun(e averaging.Event) {
	o.waiting, o.since, o.progress = true, o.now, e.Progress
	o.initial = e.Initial && !o.mixed
	o.heard = max(o.heard, o.now)
	o.speed.done(o.now, e.Samples)
}

// farewell tells the others that the run is over here, now and a few times more, lest
// somebody waits for this peer.
func (o *office) farewell() {
	o.farewells, o.parting, o.toAll = farewells, o.leader, o.leads()
	o.leader, o.asking = "", false
	o.sayFarewell()
}

func (o *office) sayFarewell() {
	if o.farewells == 0 {
		return
	}
	o.farewells--
	if !o.toAll {
		o.tell(o.parting, word(wordParting, o.round, o.lineage, 0))
		return
	}
	for id := range o.others {
		o.tell(id, word(wordParting, o.round, o.lineage, 0))
	}
}

// interval is how long a waiting peer waits before it speaks again: less while it looks
// for a leader, as at the beginning of a run, when the first words may meet nobody.
func (o *office) interval() time.Duration {
	if o.leader == "" {
		return max(o.config.slice()/4, minSlice)
	}
	return o.config.slice()
}

// Batch is how many samples the next gradient should be of; 0 is as many as the trainer
// likes.
func (o *office) Batch() int { return o.batch }

// patience looks after a peer that waits: it speaks again, or goes on without those
// that are silent. It reports false if there is nothing to say to a leader.
func (o *office) patience() bool {
	o.sayFarewell()
	switch {
	case o.over && o.waiting && o.now-o.overAt >= o.config.Deadline:
		o.giveUp()
	case o.leader == "":
		o.seek()
	case o.leads() || !o.concerned():
	case o.now-max(o.heard, o.since) >= o.config.Deadline:
		o.forsake()
	default:
		return true
	}
	return false
}

// giveUp lets the trainer end, whatever the others do.
func (o *office) giveUp() {
	o.abort("")
	o.proceed()
}

// forsake gives a leader up that says nothing.
func (o *office) forsake() {
	if o.named != "" {
		o.abort("")
		o.unserved()
		return
	}
	o.orphaned()
}
