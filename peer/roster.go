package peer

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// refresh takes the membership as it is now: the flock's progress, the view, this
// peer's role in it, and whether everybody has finished.
func (l *loop) refresh() {
	members := l.peer.guard.members(l.withSuspects(l.peer.membership.Members()))
	news := l.peer.flock.observe(l.withSelf(members), l.record.Peer, time.Now())
	for _, id := range news.lost {
		l.log.Warn("a member is gone without leaving; its neighbours go on with the others", zap.String("peer", string(id)))
	}
	for _, id := range news.twins {
		l.log.Warn("a member begins one life after another: it is restarted again and again, or two processes have its key. All of them count as one peer; give each process a key of its own",
			zap.String("peer", string(id)))
	}
	l.adopt(members)
	l.mismatches.look(l.algorithm, members, l.log)
	wake(l.peer.arrival.news)
	l.remember(time.Now(), members)
	l.progress()
	if l.settled && !l.flown && len(l.peer.flock.working()) == 0 {
		l.flown = true
		close(l.peer.flown)
	}
}

// withSelf replaces this peer's record, which lags behind, by what it knows.
func (l *loop) withSelf(members []seam.Record) []seam.Record {
	self := l.record
	self.Steps = l.peer.counters.steps.Load()
	for i := range members {
		if members[i].Peer == self.Peer {
			members[i] = self
			return members
		}
	}
	return append(members, self)
}

// placed tells whether this peer sees the flock that it is to take a role in. A
// newcomer that took one before would be passive like every first peer, whatever
// the flock is short of, and so would each that comes with it.
func (l *loop) placed() bool {
	p := l.peer
	return len(p.config.Join) == 0 || p.arrival.has() || p.arrival.open() || time.Since(p.started) >= JoinPatience
}

// adopt makes a view of the members, takes the role it gives this peer, and tells
// the machine if links may differ.
func (l *loop) adopt(members []seam.Record) {
	if l.role == topology.Undecided && !l.placed() {
		return
	}
	view, err := topology.NewView(l.membersOf(members))
	if err != nil {
		l.log.Warn("ignoring a membership view", zap.Error(err))
		return
	}
	self, _ := view.Lookup(topology.PeerID(l.record.Peer))
	if self.Role != l.role {
		l.role = self.Role
		l.peer.counters.role.Store(uint32(self.Role))
		l.log.Info("role", zap.Stringer("role", self.Role), zap.Int("members", view.Len()))
		l.publish()
	}
	if view.Digest() == l.digest {
		return
	}
	l.digest = view.Digest()
	l.peer.counters.view.Store(view.Digest())
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		l.log.Warn("no links between the members: this peer trains alone until that changes", zap.Error(err))
		if overlay, err = solitude(self); err != nil {
			return
		}
	}
	overlay = l.anchors.hold(overlay, self.ID)
	l.events = append(l.events, notice{event: averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay}})
}

// solitude is the overlay of a peer that has nobody to talk to.
func solitude(self topology.Member) (*topology.Overlay, error) {
	view, err := topology.NewView([]topology.Member{self})
	if err != nil {
		return nil, err
	}
	return topology.NewOverlay(view)
}

func (l *loop) membersOf(records []seam.Record) []topology.Member {
	here := false
	members := make([]topology.Member, 0, len(records)+1)
	for _, r := range records {
		role, unreachable := topology.Role(r.Role), r.Flags&flagUnreachable != 0
		if r.Peer == l.record.Peer {
			here, role, unreachable = true, l.role, l.peer.reach.unreachable.Load()
		}
		if !role.Valid() {
			role = topology.Undecided
		}
		members = append(members, topology.Member{ID: topology.PeerID(r.Peer), Role: role, Unreachable: unreachable})
	}
	if !here {
		members = append(members, topology.Member{ID: topology.PeerID(l.record.Peer), Role: l.role, Unreachable: l.peer.reach.unreachable.Load()})
	}
	return members
}

// progress announces what has changed since the last announcement, and tells the
// machine when the flock has done its work.
func (l *loop) progress() {
	p := l.peer
	p.watchConnections()
	l.changePace()
	if paced, ok := l.machine.(interface{ Every() int }); ok {
		p.counters.every.Store(int64(paced.Every()))
	}
	if p.arrival.open() && p.finished() && p.conclude() {
		l.events = append(l.events, notice{event: averaging.Event{Kind: averaging.RunOver}})
	}
	l.publish()
}

// publish announces the record if it says anything new, its steps now and then.
func (l *loop) publish() {
	p := l.peer
	was := l.record
	l.record.Incarnation = p.incarnation.Load()
	l.record.Steps = p.counters.steps.Load()
	l.record.Head = p.counters.head.Load()
	l.record.Role = uint8(l.role)
	l.record.Flags = p.resumedFlag() | algorithmFlag(l.algorithm) | p.reach.flag()
	if l.continued {
		l.record.Flags |= flagResumed
	}
	if l.settled {
		l.record.Flags |= flagOver
	}
	urgent := was.Incarnation != l.record.Incarnation || was.Head != l.record.Head ||
		was.Role != l.record.Role || was.Flags != l.record.Flags
	if !urgent && (was.Steps == l.record.Steps || time.Since(l.announced) < p.announceGap()) {
		l.record = was
		return
	}
	if err := l.announce(); err != nil {
		l.log.Debug("announcing this peer's progress; the next announcement replaces it", zap.Error(err))
		l.record = was // so that the next has something new to say
	}
}

// announceShare is the number of members that announce their steps as often as
// announceEvery says. More share as many announcements: each of them goes to all.
const announceShare = 16

// announceGap is the least time between two announcements of nothing but steps. News of
// others, which come with their steps, are no reason for one of one's own: it would be
// theirs, and so on.
func (p *Peer) announceGap() time.Duration {
	present, _ := p.flock.members()
	return p.announceEvery * time.Duration(present) / announceShare
}

// announce signs and spreads the record as it is, as a new incarnation if the
// network knows this one from an earlier life.
func (l *loop) announce() error {
	l.announced = time.Now()
	l.record.Incarnation = l.peer.incarnation.Load()
	err := l.peer.membership.Announce(l.record)
	var old *seam.OldIncarnationError
	if !errors.As(err, &old) {
		l.told = l.told || err == nil && l.peer.arrival.has()
		return err
	}
	if old.Highest >= seam.MaxIncarnation {
		l.peer.bar(ErrIdentity)
		return ErrIdentity
	}
	l.log.Info("taking a new incarnation", zap.Uint64("after", old.Highest))
	l.outlived(time.Now())
	l.record.Incarnation = old.Highest + 1
	l.peer.incarnation.Store(l.record.Incarnation)
	return l.peer.membership.Announce(l.record)
}

// outlived is called when this life needs another incarnation. If members have heard of it
// under the one before, its steps count as those of both; and an earlier life does not
// answer to it again and again, as another process with this key does.
func (l *loop) outlived(now time.Time) {
	if !l.told {
		return
	}
	l.continued = true
	l.record.Flags |= flagResumed
	if l.peer.flock.outlived(now) {
		l.log.Warn("another process has this peer's key, and each outlives the other: the two count as one peer, and others reach only one of them. Stop one, or give it a key and a checkpoint folder of its own")
	}
}

// advertised are the addresses for this peer's record.
func (p *Peer) advertised() []string {
	addresses := p.transport.Addresses()
	return addresses[:min(len(addresses), seam.MaxAddresses)]
}

// finished tells whether the flock has done its work.
func (p *Peer) finished() bool {
	if p.control.stopped() {
		return true
	}
	target := p.target()
	return target > 0 && p.flock.total(p.counters.steps.Load()) >= target
}

// conclude notes that the run is over. It reports true to the first to find that,
// who must tell the machine.
func (p *Peer) conclude() bool {
	if !p.noMoreSteps() {
		return false
	}
	close(p.over)
	p.control.release()
	steps := p.counters.steps.Load()
	p.log.Info("the run is over", zap.Bool("stopped_by_operator", p.control.stopped()),
		zap.Uint64("own_steps", steps), zap.Uint64("flock_steps", p.flock.total(steps)))
	return true
}

// target is the number of steps that the flock is to take, 0 if there is no end.
func (p *Peer) target() uint64 {
	work := p.control.at(p.flock.total(p.counters.steps.Load())).work
	return work.target(uint64(p.flock.participants.Load()))
}

// target is the number of steps that is the work of so many peers, 0 if there is no end.
func (w Work) target(participants uint64) uint64 {
	each := w.StepsPerPeer * participants
	switch {
	case w.Steps == 0:
		return each
	case each == 0:
		return w.Steps
	}
	return min(w.Steps, each)
}

// watchConnections keeps the most connections seen.
func (p *Peer) watchConnections() {
	now := int64(p.transport.Connections())
	for {
		most := p.connectionsPeak.Load()
		if now <= most || p.connectionsPeak.CompareAndSwap(most, now) {
			return
		}
	}
}
