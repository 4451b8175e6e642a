package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// inquiries is how often Inquire says hello: the quickest answer tells the round
// trip, since the first may find both ends busy with the connection.
const inquiries = 3

// Inquiry is what a member says to one that asks whether it could join.
type Inquiry struct {
	// Peer is who answers at the address.
	Peer seam.PeerID
	// RoundTrip is the time from a hello to its answer, the quickest of a few.
	RoundTrip time.Duration
	// FlockSteps is the member's estimate of all members' steps together.
	FlockSteps uint64
}

// Inquire reaches a process at a join address and asks, as a peer that joins does,
// whether it would be let into a run with a model of this layout hash. It joins
// nothing, and nobody hears of it. A refusal is a *RefusedError; what was found out
// by then is in the Inquiry all the same.
func Inquire(ctx context.Context, transport seam.Transport, address, run string, layout [32]byte) (Inquiry, error) {
	return Admission{}.Inquire(ctx, transport, address, run, layout)
}

// Inquire inquires as one that has this admission: it knows the run's key, if there is
// one, and asks nobody who is not on its list.
func (a Admission) Inquire(ctx context.Context, transport seam.Transport, address, run string, layout [32]byte) (Inquiry, error) {
	var found Inquiry
	if err := wire.CheckRun(run); err != nil {
		return found, fmt.Errorf("inquiring at %s: %w", address, err)
	}
	asker := &Peer{layout: layout, talks: newTalks()}
	asker.config = Config{Run: run, Network: Network{Admission: a, Transport: transport}}.withDefaults()
	var err error
	if asker.guard, err = newGuard(asker.config); err != nil {
		return found, fmt.Errorf("inquiring at %s: %w", address, err)
	}
	asker.transport = asker.guard.over(transport)
	id, err := asker.transport.Connect(ctx, address)
	if err != nil {
		return found, fmt.Errorf("inquiring at %s: %w", address, err)
	}
	found.Peer = id
	for range inquiries {
		began := time.Now()
		welcome, err := asker.hello(ctx, id)
		var refused *RefusedError
		if err != nil && !errors.As(err, &refused) {
			return found, fmt.Errorf("inquiring at %s: %w", address, err)
		}
		if took := time.Since(began); found.RoundTrip == 0 || took < found.RoundTrip {
			found.RoundTrip = took
		}
		if err != nil {
			return found, fmt.Errorf("inquiring at %s: %w", address, err)
		}
		found.FlockSteps = welcome.FlockSteps
	}
	return found, nil
}
