package control

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/status"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// standingChange is what counts of a member.
type standingChange struct {
	Peer   string  `json:"peer"`
	Do     string  `json:"do"`
	Site   string  `json:"site,omitempty"`
	Weight float64 `json:"weight,omitempty"`
	Since  uint64  `json:"since"`
}

// deeds are what can be done with members, by action.
func deeds() map[string]control.Deed {
	return map[string]control.Deed{actDrain: control.Drain, actAdmit: control.Admit, actExpel: control.Expel, actSite: control.Move, actRole: control.Rest, actWeight: control.Weigh}
}

// role is what a member may be asked to do from now on.
type role struct{ trains, holds bool }

func roles() map[string]role {
	return map[string]role{"train": {trains: true}, "hold": {holds: true}, "both": {true, true}, "none": {}}
}

// ofOne tells whether an action is about one member, which is looked for.
func ofOne(action string) bool {
	return slices.Contains([]string{actDrain, actSite, actRole, actWeight}, action)
}

func aboutMembers(action string) bool { return deeds()[action] != 0 }

// wantMembers checks the members that an action is about.
func wantMembers(args []string) error {
	action, of := args[0], args[1:]
	switch {
	case !aboutMembers(action):
		return nil
	case action == actDrain:
		if len(of) != 1 {
			return cli.Usagef("control drain takes one member: its id, the end of that, or its name, not %q", of)
		}
		return nil
	case action == actSite:
		if len(of) != 2 {
			return cli.Usagef("control site takes a member (its id, the end of that, or its name) and the name of a site, which may be empty, not %q", of)
		}
		if err := (transport.Place{Site: of[1]}).Validate(); err != nil {
			return cli.Usagef("control site: %w", err)
		}
		return nil
	case action == actRole:
		if len(of) != 2 || !slices.Contains(slices.Collect(maps.Keys(roles())), of[1]) {
			return cli.Usagef("control role takes a member (its id, the end of that, or its name) and train, hold, both or none, not %q", of)
		}
		return nil
	case action == actWeight:
		if len(of) != 2 || !(weightOf(of[1]) >= control.LeastWeight && weightOf(of[1]) <= control.MostWeight) {
			return cli.Usagef("control weight takes a member (its id, the end of that, or its name) and a number from %v to %v, not %q", control.LeastWeight, control.MostWeight, of)
		}
		return nil
	case len(of) == 0:
		return cli.Usagef("control %s takes ids of peers, as keygen prints them", action)
	}
	for _, id := range of {
		if err := p2pnet.CheckPeer(transport.PeerID(id)); err != nil {
			return cli.Usagef("control %s: %w: give the id of a peer, as keygen prints it", action, err)
		}
	}
	return nil
}

// ofMembers is the command about these members.
func (s *controlSettings) ofMembers(args []string) control.Command {
	c := control.Command{Kind: control.SetMembers, Why: s.Reason}
	switch one := (control.Change{Peer: transport.PeerID(args[1]), Do: deeds()[args[0]]}); args[0] {
	case actSite:
		one.Site = args[2]
		c.Changes = []control.Change{one}
		return c
	case actRole, actWeight:
		if one.Weight = weightOf(args[2]); args[0] == actRole {
			one.Weight, s.role = 0, args[2]
		}
		if roles()[s.role].trains {
			one.Do = control.Train
		}
		c.Kind, c.Changes = control.SetDuties, []control.Change{one}
		return c
	}
	for _, id := range args[1:] {
		c.Changes = append(c.Changes, control.Change{Peer: transport.PeerID(id), Do: deeds()[args[0]]})
	}
	return c
}

// weightOf is a number of text, NaN if it is none.
func weightOf(text string) float64 {
	weight, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return weight
}

// members asks the run who takes part.
func (s *controlSettings) members(ctx context.Context, log *zap.Logger) ([]control.Member, error) {
	return status.Members(ctx, settings.Settings{Network: settings.Network{
		Join: s.Join, Run: s.Run, Key: s.OperatorKey, RunKey: s.RunKey, Invitation: settings.Invitation{Secret: s.secret},
	}}, log)
}

// shortest is the least length of the end of an id that stands for it: status prints eight.
const shortest = 6

// find replaces what the operator calls a member by its id.
func (s *controlSettings) find(ctx context.Context, of *control.Change, log *zap.Logger) error {
	seen, err := s.members(ctx, log)
	if err != nil {
		return err
	}
	called := calledSo(seen, string(of.Peer))
	if len(called) != 1 {
		return fmt.Errorf("%s of run %s called %q: give the id of one, as gossipnode status --json prints it", cli.Plural(uint64(len(called)), "member"), s.Run, of.Peer)
	}
	of.Peer = called[0].ID
	return s.suits(*of, called[0], seen)
}

// suits fails if a change can have no effect on a member.
func (s *controlSettings) suits(n control.Change, of control.Member, seen []control.Member) error {
	holds := func(m control.Member) bool { return m.Rows > 0 && m.ID != of.ID }
	switch {
	case n.Do == control.Weigh && !slices.ContainsFunc(seen, holds):
		return fmt.Errorf("no member of run %s holds rows for %s: a weight is its share of the rows that others hold (run --hold) and give to those that train on them (run --train-only)", s.Run, of.ID)
	case s.role == "" || roles()[s.role].holds == (of.Rows > 0):
		return nil
	case of.Rows > 0:
		return fmt.Errorf("%s holds rows for others, as it was started to, and goes on: want the role hold or both, not %s; to end it, drain the member", of.ID, s.role)
	}
	return fmt.Errorf("%s holds no rows for others: want the role train or none, not %s; to have it hold them, drain it and start it with run --hold or --hold-and-train", of.ID, s.role)
}

// calledSo are the members of this id, or else of this name or end of an id: no name hides another's id.
func calledSo(seen []control.Member, by string) (called []control.Member) {
	for _, m := range seen {
		if string(m.ID) == by {
			return []control.Member{m}
		}
		if m.Name == by || len(by) >= shortest && strings.HasSuffix(string(m.ID), by) {
			called = append(called, m)
		}
	}
	return called
}

// lookEvery is the time between two looks for a member that is to leave.
const lookEvery = 200 * time.Millisecond

// await waits until a member has done what it was told, where that is seen.
func (s *controlSettings) await(ctx context.Context, told transport.PeerID, commands []control.Command, log *zap.Logger) error {
	if len(commands) == 0 || len(commands[0].Changes) == 0 {
		return nil
	}
	switch n := commands[0].Changes[0]; n.Do {
	case control.Drain:
		return s.awaitGone(ctx, told, n.Peer, log)
	case control.Train, control.Rest:
		return s.awaitRole(ctx, n, log)
	}
	return nil
}

// awaitRole waits until a member trains, or does not.
func (s *controlSettings) awaitRole(ctx context.Context, n control.Change, log *zap.Logger) error {
	for {
		seen, err := s.members(ctx, log)
		does := func(m control.Member) bool {
			return m.ID == n.Peer && (m.State != control.Idle) == (n.Do == control.Train)
		}
		if err == nil && slices.ContainsFunc(seen, does) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has been asked for the role %s, and has it not after %s: its log says why, or it is of an older release", n.Peer, s.role, s.Timeout)
		case <-time.After(lookEvery):
		}
	}
}

// awaitGone waits until a member has left. If it is the one that was told, and no other is known here, it has gone when
// it no longer answers.
func (s *controlSettings) awaitGone(ctx context.Context, told, leaves transport.PeerID, log *zap.Logger) error {
	for {
		seen, err := s.members(ctx, log)
		if ctx.Err() != nil {
			return fmt.Errorf("%s has been asked to leave, and is still there after %s: a gradient under way is finished first", leaves, s.Timeout)
		}
		here := slices.ContainsFunc(seen, func(m control.Member) bool { return m.ID == leaves })
		if err == nil && !here || err != nil && told == leaves {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}
