package control

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/standing"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// Observer asks a run from outside how its members get on. It trains nothing and is no
// member: nobody exchanges with it, waits for it, or counts it.
type Observer struct {
	// Transport has any key; where peers have a list, its id must be on it.
	Transport seam.Transport
	// Run is the name of the run.
	Run string
	// RunKey is the run's, if it has one.
	RunKey []byte
}

// Member is what is known of a member of a run: from the record that it signed and the digests that it tells,
// or, to an Observer, from what another member says of it, which is for people to look at.
type Member struct {
	ID   seam.PeerID
	Role topology.Role
	// Addresses are where it can be reached, as its record says; nil of the peer itself, and to an Observer.
	Addresses []string
	// State is what its latest digest says; without digests it is told from the record,
	// in which a member that is paused or copying looks as if it trained.
	State State
	Steps uint64
	// Unreachable tells that others cannot dial it, Leaving that it is about to go.
	Unreachable, Leaving bool
	// Digest is what the member has told last, to an Observer without partners. Its Heard is zero if it has
	// told nothing: it keeps to itself, or has only come. Times are by this process's clock.
	Digest Digest
}

// Members are those of the run as a member sees them, itself included, in the order of
// their ids. It fails with seam.ErrUnknownProtocol where the member's release does not tell.
func (o Observer) Members(ctx context.Context, member seam.PeerID) ([]Member, error) {
	over, err := guarded(o.Transport, o.Run, o.RunKey)
	if err != nil {
		return nil, fmt.Errorf("looking at run %q: %w", o.Run, err)
	}
	told, err := standing.AskMembers(ctx, over, o.Run, member, stall)
	if err != nil {
		return nil, withRemedy(err)
	}
	seen := make([]Member, len(told))
	for i, m := range told {
		if seen[i], err = memberOf(m, time.Now()); err != nil {
			return nil, fmt.Errorf("%s tells of %s: %w", member, m.ID, err)
		}
	}
	return seen, nil
}

// Told is what is told at a moment of a member whose partners nobody outside knows by name.
func (s Member) Told(now time.Time) wire.Member {
	m := wire.Member{
		ID: string(s.ID), Role: s.Role.String(), State: uint8(s.State), Steps: s.Steps, Name: s.Digest.Name, Version: s.Digest.Version,
		Heard: since(s.Digest.Heard, now), Exchanged: since(s.Digest.Exchanged, now),
	}
	if s.Unreachable {
		m.Flags |= wire.MemberUnreachable
	}
	if s.Leaving {
		m.Flags |= wire.MemberLeaving
	}
	if !s.Digest.Heard.IsZero() {
		m.Digest = s.Digest.Body()
	}
	return m
}

// memberOf reads what is told of a member.
func memberOf(m wire.Member, now time.Time) (s Member, err error) {
	s = Member{
		ID: seam.PeerID(m.ID), Role: roles[m.Role], State: State(m.State), Steps: m.Steps,
		Unreachable: m.Flags&wire.MemberUnreachable != 0, Leaving: m.Flags&wire.MemberLeaving != 0,
		Digest: Digest{Loss: math.NaN()},
	}
	if len(m.Digest) > 0 {
		s.Digest, err = DigestOf(s.ID, m.Digest, before(now, m.Heard))
	}
	s.Digest.Peer, s.Digest.Name, s.Digest.Version, s.Digest.Exchanged = s.ID, Printable(m.Name), Printable(m.Version), before(now, m.Exchanged)
	s.Digest.Partners = nil // who they are is known inside
	return s, err
}

// roles are those that are told of, by their words.
var roles = map[string]topology.Role{topology.Active.String(): topology.Active, topology.Passive.String(): topology.Passive}

// since is the milliseconds since a moment, before the time they are counted from.
func since(then, now time.Time) uint64 {
	if then.IsZero() {
		return wire.Never
	}
	return uint64(max(now.Sub(then).Milliseconds(), 0))
}

// longest bounds what is believed of a time that has passed.
const longest = 100 * 365 * 24 * time.Hour

// before is the moment so many milliseconds ago, the opposite of since.
func before(now time.Time, ago uint64) time.Time {
	if ago == wire.Never {
		return time.Time{}
	}
	return now.Add(-time.Duration(min(ago, uint64(longest.Milliseconds()))) * time.Millisecond)
}
