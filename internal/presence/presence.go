// Package presence is this peer's place among the members: its record, its role in its view
// of them, the members that gossip calls dead but that are still being probed, and the
// partners of its own choice.
package presence

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// Config is what a presence needs.
type Config struct {
	Run        string
	Transport  transport.Transport
	Membership transport.Membership
	Flock      *flock.Flock
	Past       []transport.PeerID // partners of earlier lives
	Guard      *admit.Guard       // tells who takes part
	Arrival    Arrival
	Life       Life
	Log        *zap.Logger
}

// Arrival is this peer's arrival in its run.
type Arrival interface {
	// Reached tells whether a member has admitted this peer.
	Reached() bool
	// Placed tells whether this peer sees the flock in which it is to take a role.
	Placed() bool
	// Gone tells whether a member does not answer, which can take seconds.
	Gone(context.Context, transport.PeerID) bool
	// MeetDuplicate reports that another process with this peer's key runs at an address, and whether
	// this one came later.
	MeetDuplicate(address string, proof error, later bool)
}

// Life starts goroutines of this peer, which end with its context; it starts none while the peer is closing.
type Life interface {
	Spawn(work func(context.Context)) bool
}

// Presence is this peer's place among the members. Role, View, Received and Compare are safe for
// concurrent use; everything else belongs to one goroutine.
type Presence struct {
	config      Config
	record      record
	algorithm   collective.Algorithm // by which this peer trains
	servesOnly  bool                 // parameters, and does not train
	shape       topology.Shape       // of the overlay
	role        atomic.Uint32
	view        atomic.Uint64 // its digest
	suspects    suspects
	anchors     anchors
	mismatches  mismatches
	comparisons comparisons
	duplicates  duplicates
}

// New makes a presence that knows no member yet.
func New(config Config) *Presence {
	addresses := config.Transport.Addresses()
	r := &Presence{config: config, anchors: newAnchors(config.Transport, config.Past), suspects: newSuspects()}
	r.record.said = transport.Record{
		Peer: config.Transport.Self(), Run: config.Run, Addresses: addresses[:min(len(addresses), transport.MaxAddresses)],
	}
	config.Flock.SetIncarnation(1) // as far as is known
	r.record.said = r.current()
	return r
}

// Role is this peer's place in the overlay.
func (r *Presence) Role() topology.Role { return topology.Role(r.role.Load()) }

// View is the digest of the members that this peer sees.
func (r *Presence) View() uint64 { return r.view.Load() }

// Train announces that this peer trains from now on with an algorithm, or only serves its parameters, over links
// of a shape, in an incarnation after the given one.
func (r *Presence) Train(algorithm collective.Algorithm, servesOnly bool, shape topology.Shape, after uint64) {
	r.algorithm, r.servesOnly, r.shape = algorithm%collective.MaxAlgorithm, servesOnly, shape
	f := r.config.Flock
	f.SetIncarnation(max(f.Incarnation(), after+1))
	f.SetIdle(servesOnly)
	if !r.record.at.IsZero() { // it has been a member before
		r.record.repeats = repeatTimes
	}
}

// Rest announces that this peer no longer trains and has no role.
func (r *Presence) Rest() {
	r.algorithm, r.servesOnly = collective.Unnamed, false
	r.config.Flock.SetIdle(true)
	r.role.Store(uint32(topology.Undecided))
	r.view.Store(0)
}

// Refresh reads the current membership. It returns the members that take part, and the
// overlay of their view if links may have changed.
func (r *Presence) Refresh(now time.Time) (members []transport.Record, overlay *topology.Overlay, err error) {
	members = r.config.Guard.Members(r.withSuspects(r.config.Membership.Members(), now))
	news := r.config.Flock.Observe(members, now)
	for _, id := range news.Lost {
		r.config.Log.Warn("a member is gone without leaving; its neighbours go on with the others", zap.String("peer", string(id)))
	}
	for _, id := range news.Duplicates {
		r.config.Log.Warn("a member begins one life after another: it is restarted again and again, or two processes have its key. All of them count as one peer; give each process a key of its own",
			zap.String("peer", string(id)))
	}
	if !r.config.Flock.Idle() {
		r.mismatches.look(r.algorithm, members, r.config.Log)
	}
	overlay, err = r.adopt(members, now)
	return members, overlay, err
}

// adopt makes a view of the members and takes over this peer's role in it.
func (r *Presence) adopt(members []transport.Record, now time.Time) (*topology.Overlay, error) {
	if r.config.Flock.Idle() && !r.servesOnly || r.Role() == topology.Undecided && !r.config.Arrival.Placed() {
		return nil, nil
	}
	view, err := r.shape.View(r.membersOf(members))
	if err != nil {
		r.config.Log.Warn("ignoring a membership view", zap.Error(err))
		return nil, nil
	}
	self, _ := view.Lookup(r.config.Transport.Self())
	if self.Role != r.Role() {
		r.role.Store(uint32(self.Role))
		r.config.Log.Info("role", zap.Stringer("role", self.Role), zap.Int("members", view.Len()))
		err = r.Publish(now, 0) // its role has changed
	}
	if r.view.Swap(view.Digest()) == view.Digest() {
		return nil, err
	}
	overlay, alone := topology.NewOverlay(view)
	if alone != nil {
		r.config.Log.Warn("no links between the members: this peer trains alone until that changes", zap.Error(alone))
		view, _ = topology.NewView([]topology.Member{self}) // a member of a view, and one alone: neither fails
		overlay, _ = topology.NewOverlay(view)
	}
	return r.anchors.hold(overlay, self.ID), err
}

// membersOf are the members of records, this peer as it is now among them.
func (r *Presence) membersOf(records []transport.Record) []topology.Member {
	members := []topology.Member{{ID: r.config.Transport.Self(), Role: r.Role(), Unreachable: r.config.Flock.Unreachable(), ServesOnly: r.servesOnly, Place: r.config.Flock.Place()}}
	for _, m := range records {
		if m.Peer == members[0].ID || !r.config.Flock.Alike(m) && !flock.ServesOnly(m) {
			continue
		}
		role := topology.Role(m.Role)
		if !role.Valid() {
			role = topology.Undecided
		}
		members = append(members, topology.Member{ID: m.Peer, Role: role, Unreachable: m.Flags&flock.Unreachable != 0, ServesOnly: flock.ServesOnly(m), Place: m.Place})
	}
	return members
}

// Publish announces this peer's record if it has changed; new steps alone are announced now and then, the oftener the nearer
// the flock is to target, its steps at the end of the run, which is 0 if there is no end.
func (r *Presence) Publish(now time.Time, target uint64) error {
	due := func(after time.Duration, more uint64) bool { return r.config.Flock.NewsDue(after, more, target) }
	if !r.record.news(r.current(), due, now) {
		return nil
	}
	err := r.Announce(now)
	if err != nil {
		r.config.Log.Debug("announcing this peer's progress; the next announcement replaces it", zap.Error(err))
	}
	if errors.Is(err, ErrIdentity) {
		return err
	}
	return nil // other errors of an announcement are temporary
}

// current is what the record should say now.
func (r *Presence) current() transport.Record {
	f, now := r.config.Flock, r.record.said
	now.Incarnation, now.Steps, now.Head, now.Role, now.Rows = f.Incarnation(), f.Steps(), f.Head(), uint8(r.Role()), f.Rows()
	now.Place, now.Stage = f.Place(), f.Stage()
	now.Flags &= flock.Leaving
	switch {
	case r.servesOnly:
		now.Flags |= flock.Serving
	case f.Idle():
		now.Flags |= flock.Idle
	default:
		now.Flags |= uint8(r.algorithm) << flock.AlgorithmShift
	}
	if f.Resumed() > 0 || r.record.continued {
		now.Flags |= flock.Resumed
	}
	if f.Unreachable() {
		now.Flags |= flock.Unreachable
	}
	if f.Settled() {
		now.Flags |= flock.Over
	}
	return now
}

// Announce signs and spreads the current record, as a new incarnation if the network knows this one from an
// earlier life. The first record of a life says from which steps it goes on; otherwise others would add these
// steps to those they know. Once another, earlier process with this peer's key is known, Announce does nothing.
func (r *Presence) Announce(now time.Time) (err error) {
	if r.duplicates.gone.Load() {
		return nil
	}
	was := r.record.said
	defer func() {
		if err != nil {
			r.record.said = was // so that the next call announces again
		}
	}()
	r.record.said = r.current()
	reached := r.config.Arrival.Reached()
	if reached && !r.record.announced {
		r.lookForDuplicate(now)
	}
	old, err := r.record.announce(r.config.Membership, r.config.Flock, reached, now)
	if old == 0 || err != nil {
		return err
	}
	if r.record.continued {
		r.lookForDuplicate(now)
	}
	r.config.Log.Info("taking a new incarnation", zap.Uint64("after", old))
	if r.record.continued && r.config.Flock.Superseded(now) {
		r.config.Log.Warn("another process has this peer's key, and each outlives the other: the two count as one peer, and others reach only one of them. Stop one, or give it a key and a checkpoint folder of its own")
	}
	return r.config.Membership.Announce(r.record.said)
}

// Leave announces the departure.
func (r *Presence) Leave(now time.Time) {
	r.record.said.Flags |= flock.Leaving
	if err := r.Announce(now); err != nil {
		r.config.Log.Debug("announcing that this peer leaves", zap.Error(err))
	}
}

// Proved notes a partner of a successful exchange. news is true if it changes what Good
// returns.
func (r *Presence) Proved(id transport.PeerID) (news bool) {
	return r.anchors.proved(id, r.config.Flock.Here)
}

// Good are partners of successful exchanges, in this life or an earlier one.
func (r *Presence) Good() []transport.PeerID { return r.anchors.good }

// Received takes the record that a partner has sent, with the digest of its view. news is
// true if the record is new; call Refresh then. If it was known, the two views differ, and
// the two memberships are compared. An error means that the record is not the partner's.
func (r *Presence) Received(partner transport.PeerID, view uint64, signed []byte) (news bool, err error) {
	news, err = r.config.Membership.Received(partner, signed)
	if err == nil && !news && view != r.View() {
		r.Compare(partner)
	}
	return news, err
}

// Compare begins a comparison of memberships with another member, unless one began
// a moment ago.
func (r *Presence) Compare(partner transport.PeerID) {
	if !r.comparisons.begin(partner, time.Now()) {
		return
	}
	r.config.Life.Spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, compareTimeout)
		defer cancel()
		if err := r.config.Membership.Compare(ctx, partner); err != nil {
			r.config.Log.Debug("comparing memberships with a member that sees other roles", zap.String("peer", string(partner)), zap.Error(err))
		}
	})
}

// withSuspects adds missing members to those that gossip knows, until probes have decided.
// Members that announced their departure are not added.
func (r *Presence) withSuspects(members []transport.Record, now time.Time) []transport.Record {
	missing := r.config.Flock.Missing(members)
	for i, m := range missing {
		if last, known := r.config.Membership.Last(m.Peer); known && last.Incarnation == m.Incarnation {
			r.config.Flock.Receive(last)
			missing[i] = last
		}
	}
	return append(members, r.suspects.among(missing, now, r.question)...)
}

// question probes a suspect. It returns false if the peer is closing.
func (r *Presence) question(member transport.PeerID) bool {
	return r.config.Life.Spawn(func(ctx context.Context) {
		select {
		case r.suspects.found <- Finding{member, r.config.Arrival.Gone(ctx, member)}:
		case <-ctx.Done():
		}
	})
}

// Findings are the results of probes, for Found.
func (r *Presence) Findings() <-chan Finding { return r.suspects.found }

// Found takes the result of a probe. lost is true if the member is lost now: break off an
// exchange with it at once, and call Refresh.
func (r *Presence) Found(f Finding, now time.Time) (lost bool) {
	asked := r.suspects.answered(f, now)
	if asked && !f.Gone {
		r.config.Log.Info("a member that gossip calls dead answers; it stays", zap.String("peer", string(f.Member)))
	}
	return asked && f.Gone
}

// Due tells whether Refresh may have a new result although the membership has not changed.
func (r *Presence) Due(now time.Time) bool {
	return r.Role() == topology.Undecided || r.suspects.due(now)
}
