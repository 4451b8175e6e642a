package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Admission says who may take part in a run. The zero value takes everybody who can
// reach a peer and knows the run's name; a peer with a list and a key asks for both.
// It holds for every protocol of the run, and for membership too unless
// Network.Membership replaces the default one, which then has to see to it itself.
type Admission struct {
	// Allow is a file of the ids of the peers that may take part, one a line; what
	// follows a # is a comment. It is read again when it changes: who is added may
	// join from then on, who is taken off is disconnected and no member any more. A
	// change with a fault is logged and ignored. Empty admits every id.
	Allow string
	// Key is a secret that all peers of the run share, seam.MinRunKey to seam.MaxRunKey
	// bytes, best random ones. It is never sent: a peer proves that it knows it. Nil
	// asks for none.
	Key []byte
}

func (a Admission) validate() error {
	if n := len(a.Key); a.Key != nil && (n < seam.MinRunKey || n > seam.MaxRunKey) {
		return fmt.Errorf("Network.Admission.Key has %d bytes: want %d to %d", n, seam.MinRunKey, seam.MaxRunKey)
	}
	return nil
}

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
	// Description is what the member says that the run is, and Signer who signed that; it
	// is empty if the member does not tell. It is there even where another layout is refused.
	Description description.Description
	Signer      seam.PeerID
	// Signed is the description as it was signed, to be passed on (Checkpoint.Description).
	Signed description.Signed
	// Awaits is what a process answers that waits for the run itself (Admission.Await); 0 if
	// it does not.
	Awaits uint64
}

// Inquire reaches a process at a join address and asks, as a peer that joins with this
// admission does, whether it would be let into a run with a model of this layout hash.
// It joins nothing, and nobody hears of it. A refusal is a *seam.RefusedError; what was
// found out by then is in the Inquiry all the same.
func (a Admission) Inquire(ctx context.Context, transport seam.Transport, address, run string, layout [32]byte) (found Inquiry, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("inquiring at %s: %w", address, err)
		}
	}()
	if err := wire.CheckRun(run); err != nil {
		return found, err
	}
	guard, err := a.guard(transport, run)
	if err != nil {
		return found, err
	}
	transport = guard.Over(transport)
	asker := arrival.Greeter{
		Run: run, Layout: layout, Guard: guard, Flock: flock.New(transport.Self()), Incarnation: func() uint64 { return 0 },
		Converse: func(ctx context.Context, to seam.PeerID, protocol seam.Protocol, talk func(*framed.Stream) error) error {
			stream, err := transport.Open(ctx, to, protocol, run)
			if err != nil {
				return err
			}
			return new(framed.Stream).Converse(ctx, stream, DefaultStall, talk)
		},
	}
	if found.Peer, err = transport.Connect(ctx, address); err != nil {
		return found, err
	}
	for range inquiries {
		began := time.Now()
		welcome, said, err := asker.Ask(ctx, found.Peer)
		if waits, ok := errors.AsType[*wire.Refusal](err); ok {
			found.Awaits = waits.Awaits
		}
		if _, refused := errors.AsType[*seam.RefusedError](err); err != nil && !refused {
			return found, err
		}
		if said.Known() {
			var faulty error
			if found.Description, faulty = said.Open(transport, run); faulty != nil {
				return found, faulty
			}
			found.Signer, found.Signed = said.Signer, said
		}
		if took := time.Since(began); found.RoundTrip == 0 || took < found.RoundTrip {
			found.RoundTrip = took
		}
		if err != nil {
			return found, err
		}
		found.FlockSteps = welcome.FlockSteps
	}
	return found, nil
}

// maxGreeted is how many hellos Await answers at once.
const maxGreeted = 64

// Await answers at a transport those that say hello or inquire, for a process that waits itself
// for somebody who says what the run is: they are told a number other than 0, which says how it
// waits (Inquiry.Awaits), and are to ask again. Stop ends it.
func (a Admission) Await(transport seam.Transport, run string, says func() uint64) (stop func(), err error) {
	guard, err := a.guard(transport, run)
	if err != nil {
		return nil, err
	}
	places := make(chan struct{}, maxGreeted)
	return guard.Over(transport).Handle(seam.ProtocolHello, run, func(stream seam.Stream) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			stream.Reset()
			return
		}
		var s framed.Stream
		var hello wire.Hello
		s.Begin(stream, DefaultStall)
		if _, err := s.Hear(&hello); err != nil {
			stream.Reset()
		} else if reason, detail := guard.Vet(&s, hello); reason != 0 {
			s.Refuse(0, reason, detail)
		} else {
			s.Refuse(says(), wire.ReasonNewcomer, "waiting for somebody who says what the run is")
		}
	})
}

// guard admits at a transport.
func (a Admission) guard(transport seam.Transport, run string) (*admit.Guard, error) {
	return Config{Run: run, Network: Network{Admission: a, Transport: transport}, Log: zap.NewNop()}.guard()
}
