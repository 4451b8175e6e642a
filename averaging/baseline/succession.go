package baseline

import (
	"cmp"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// succession is what a peer knows while it looks for a coordinator.
type succession struct {
	none          map[topology.PeerID]uint64 // members that know no coordinator, with the versions of their parameters
	othersHadOne  bool                       // of those, by their versions
	asked         time.Duration              // since when this peer has been looking, 0 if it is not
	predecessor   topology.PeerID            // the coordinator that this peer has lost, "" if it has had none
	lostAt        time.Duration
	stillFollowed time.Duration // when a member last said that it follows the lost one
}

// isFollowed tells whether a member has said of late that it follows the coordinator that this peer has lost.
func (s *succession) isFollowed(now, deadline time.Duration) bool {
	return s.stillFollowed > 0 && now-s.stillFollowed < deadline/2
}

// knowsNone notes that a member knows no coordinator, and has parameters of a version.
func (s *succession) knowsNone(id topology.PeerID, version uint64) {
	if s.none == nil {
		s.none = make(map[topology.PeerID]uint64)
	}
	s.none[id] = version
	s.othersHadOne = s.othersHadOne || version > initialVersion
}

// allKnowNone tells whether all these members have said so.
func (s *succession) allKnowNone(members *collective.Members) bool {
	for id := range members.Others {
		if _, known := s.none[id]; !known {
			return false
		}
	}
	return true
}

// newer is the member with the newest parameters, if they are newer than a version; else it is empty.
func (s *succession) newer(members *collective.Members, version uint64) (id topology.PeerID, its uint64) {
	for other := range members.Others {
		if v, known := s.none[other]; known && v > version {
			id, version = other, v
		}
	}
	return id, version
}

// Replaced is the fact that another member takes the place of a coordinator that is lost.
const Replaced = "the coordinator is lost: the member with the newest parameters takes its place"

// seek looks for the coordinator; the timer repeats it until there is one.
func (c *coordination) seek() {
	if c.coordinator != "" || !c.concerned() || !c.members.Has(c.Self) {
		return
	}
	c.asked = cmp.Or(c.asked, c.Now)
	first, waited := c.named, c.Now-c.asked
	if first == "" || c.namedIsLost() {
		first = c.members.First()
	}
	who := message(messageWho, c.role.newest(), 0)
	switch {
	case c.isFollowed(c.Now, c.Deadline) && c.Now-c.lostAt >= restFor*c.Deadline:
		c.fail() // this peer alone has lost it
	case first == c.Self && first == c.named && c.predecessor == "":
		c.lead()
	case first == c.Self && !c.isFollowed(c.Now, c.Deadline) && (c.allKnowNone(&c.members) || waited >= c.Deadline/2):
		c.choose()
	case first == c.Self:
		c.tellSome(who, func(id topology.PeerID) bool {
			_, known := c.none[id]
			return !known
		})
	case waited < c.Deadline, first == c.named && !c.members.Has(first) && waited < restFor*c.Deadline: // others may choose another by then
		c.tellSome(who, func(id topology.PeerID) bool {
			return id == first || !c.members.Has(first) // whom a successor's claim may have reached while this peer still waited for the first
		})
	case first == c.named:
		c.lost()
	default:
		c.members.Pass(first)
		c.asked = c.Now
		c.seek()
	}
}

// namedIsLost tells whether the named coordinator is none any more: this peer has lost it, or it is gone, and others have had one.
func (c *coordination) namedIsLost() bool {
	return c.predecessor != "" || c.othersHadOne && !c.members.Has(c.named)
}

// beginToSeek looks for the coordinator, if this peer does not yet. To ask at each event would answer each answer with a
// question to all.
func (c *coordination) beginToSeek() {
	if c.asked == 0 {
		c.seek()
	}
}

// choose gives the place to the member whose parameters have had the most updates, this peer among equals. Where
// nobody has made one with others, all are equal. A member that does not take the place at once is asked again, and
// passed over if it does not answer.
func (c *coordination) choose() {
	newest, version := c.newer(&c.members, max(c.role.newest(), initialVersion))
	if newest == "" {
		c.lead()
		return
	}
	delete(c.none, newest)
	c.asked = c.Now
	c.Tell(newest, collective.Message{Kind: messageLead, Round: version, View: newest.Fingerprint()})
}

// lead begins to coordinate.
func (c *coordination) lead() {
	if c.predecessor != "" {
		c.Note(Replaced, "lost: "+string(c.predecessor), c.Self)
	}
	c.coordinator, c.succession = c.Self, succession{}
	if c.version == unknownVersion {
		c.version = firstVersion
	}
	c.role.begun()
	c.tellSome(c.claim(), func(topology.PeerID) bool { return true })
}

// claim is the message that this peer coordinates.
func (c *coordination) claim() collective.Message {
	return collective.Message{Kind: messageLead, Round: c.version, View: c.Self.Fingerprint()}
}

// tellSome sends a message to selected members.
func (c *coordination) tellSome(w collective.Message, to func(topology.PeerID) bool) {
	for id := range c.members.Others {
		if to(id) {
			c.Tell(id, w)
		}
	}
}

// follow makes a member the coordinator of this peer.
func (c *coordination) follow(id topology.PeerID) {
	if c.coordinator != "" {
		c.version, c.copied = unknownVersion, true
	}
	c.Abort("")
	c.coordinator, c.succession, c.lastMessage = id, succession{}, c.Now
	c.role.followed()
	if c.concerned() {
		c.role.Report()
	}
}

// lost looks for a successor of the coordinator, or ends the wait for the model of the end. Training ends if there
// has never been a coordinator.
func (c *coordination) lost() {
	if c.settled || c.leads() {
		return
	}
	c.Abort("")
	switch {
	case c.over:
		c.proceed()
		c.depart()
	case c.coordinator == "":
		c.fail()
	default:
		c.members.Pass(c.coordinator)
		c.succession = succession{asked: c.Now, predecessor: c.coordinator, lostAt: c.Now}
		c.coordinator = ""
		c.role.followed()
		c.seek()
	}
}

// fail makes the steps of this trainer, or its serving, fail.
func (c *coordination) fail() {
	c.halted, c.waiting = true, c.waiting || c.serveOnly
	c.halt()
}

// point tells a peer who coordinates.
func (c *coordination) point(to topology.PeerID, w collective.Message) {
	switch {
	case c.settled:
		c.Tell(to, message(messageParting, 0, 0))
	case c.halted:
		c.Tell(to, message(messageNone, 0, float64(w.Kind)))
	case c.coordinator == "":
		c.Tell(to, message(messageNone, c.role.newest(), float64(w.Kind)))
	case c.leads():
		c.Tell(to, c.claim())
	default:
		c.Tell(to, collective.Message{Kind: messageLead, View: c.coordinator.Fingerprint()})
	}
}

// claimed handles a message about who coordinates.
func (c *coordination) claimed(from topology.PeerID, w collective.Message) {
	id := c.members.Find(w.View)
	delete(c.none, from)
	switch {
	case id == "" || id == c.coordinator || c.halted || c.insists(from, id, w.Round):
	case c.settled:
		c.point(from, w)
	case id == c.Self:
		if c.coordinator == "" {
			c.appointed(from, w)
		}
	case c.coordinator == "" && id == c.predecessor && from != id:
		c.stillFollowed = c.Now
	case c.leads() && from != id:
		c.Tell(id, c.claim())
	case c.coordinator == "", from == c.coordinator, c.leads() && c.yields(id, w.Round):
		c.follow(id)
	case from == id:
		c.point(from, w) // the two decide between them
	}
}

// insists tells whether this peer follows the named member only, and not one that claims the place at a version. The
// named one may itself follow another, or have died before this peer came: then the other has made updates.
func (c *coordination) insists(from, id topology.PeerID, version uint64) bool {
	there := c.members.Has(c.named) && !c.members.Passed(c.named)
	return c.named != "" && id != c.named && from != c.named && c.named != c.Self && (there || !c.namedIsLost() && version <= firstVersion)
}

// appointed handles the message that this peer coordinates: the first member gives it the place, or else this peer
// had it in a former life, and has lost the parameters.
func (c *coordination) appointed(from topology.PeerID, w collective.Message) {
	if w.Round > initialVersion && w.Round == c.role.newest() {
		c.lead()
		return
	}
	c.Tell(from, message(messageNone, c.role.newest(), float64(messageStatus)))
}

// yields tells whether another coordinator, with this version of the parameters, has the
// better claim. Two coordinators never yield to each other, since versions only grow.
func (c *coordination) yields(id topology.PeerID, version uint64) bool {
	return version > c.version || version == c.version && c.members.Before(id, c.Self)
}
