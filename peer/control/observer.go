package control

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Observer asks a run from outside how its members get on. It trains nothing and is no
// member: nobody exchanges with it, waits for it, or counts it.
type Observer struct {
	// Transport has any key; where peers have a list, its id must be on it.
	Transport transport.Transport
	// Run is the name of the run.
	Run string
	// RunKey is the run's, if it has one.
	RunKey []byte
}

// Members are those of the run as a member sees them, itself included, in the order of
// their ids. It fails with transport.ErrUnknownProtocol where the member's release does not tell.
func (o Observer) Members(ctx context.Context, member transport.PeerID) ([]Member, error) {
	over, err := guarded(o.Transport, o.Run, o.RunKey)
	if err != nil {
		return nil, fmt.Errorf("looking at run %q: %w", o.Run, err)
	}
	answers, err := orderlog.Members().Ask(ctx, over, o.Run, member, nil, stall)
	if err != nil {
		return nil, withRemedy(err)
	}
	seen := make([]Member, len(answers))
	for i, m := range answers {
		if seen[i], err = memberOf(m, time.Now()); err != nil {
			return nil, fmt.Errorf("%s tells of %q: %w", member, seen[i].ID, err)
		}
	}
	names := make(map[uint64]transport.PeerID, len(seen))
	for _, m := range seen {
		names[m.ID.Fingerprint()] = m.ID
	}
	for i := range seen {
		seen[i].Harm = seen[i].Harm.named(names)
	}
	return seen, nil
}
