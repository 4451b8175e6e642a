package control

import (
	"context"
	"fmt"
	"slices"
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
	Peer  string `json:"peer"`
	Do    string `json:"do"`
	Site  string `json:"site,omitempty"`
	Since uint64 `json:"since"`
}

// deeds are what can be done with members, by action.
func deeds() map[string]control.Deed {
	return map[string]control.Deed{actDrain: control.Drain, actAdmit: control.Admit, actExpel: control.Expel, actSite: control.Move}
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
	if args[0] == actSite {
		c.Changes = []control.Change{{Peer: transport.PeerID(args[1]), Do: control.Move, Site: args[2]}}
		return c
	}
	for _, id := range args[1:] {
		c.Changes = append(c.Changes, control.Change{Peer: transport.PeerID(id), Do: deeds()[args[0]]})
	}
	return c
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
	return nil
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
