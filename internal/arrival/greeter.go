package arrival

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Greeter sends and answers hellos. A connection alone does not show whether the other
// process takes part in the run; the answer to a hello does.
type Greeter struct {
	*requests.Requests
	// Build is what this program was built from, named in a refusal because of the layout; it
	// may be empty.
	Build string
	Guard *admit.Guard
	Flock *flock.Flock // this peer's state
	// Described is the description of the run. It may be nil for a caller that only asks, as Inquire does.
	Described *Described
}

// Hello asks a peer for admission to the run. A permanent refusal is a
// *transport.RefusedError.
func (g *Greeter) Hello(ctx context.Context, to transport.PeerID) (wire.Welcome, error) {
	welcome, _, err := g.hello(ctx, to, 0)
	return welcome, err
}

// Ask is Hello that also asks for the description of the run, which is returned even if the
// peer refuses because of the layout.
func (g *Greeter) Ask(ctx context.Context, to transport.PeerID) (wire.Welcome, description.Signed, error) {
	return g.hello(ctx, to, wire.FlagDescribe)
}

func (g *Greeter) hello(ctx context.Context, to transport.PeerID, flags uint32) (welcome wire.Welcome, said description.Signed, err error) {
	err = g.Converse(ctx, to, transport.ProtocolHello, func(stream *framed.Stream) error {
		if flags&wire.FlagDescribe != 0 {
			stream.Limit(wire.MaxDescriptionFrame)
		}
		hello := wire.Hello{Run: g.Run, Layout: g.Flock.Layout(), Incarnation: g.Flock.Incarnation(), Steps: g.Flock.Steps()}
		frame := hello.Append(wire.Reserve(stream.Frame))
		if err := wire.Seal(frame, wire.Header{Type: wire.TypeHello, Flags: flags}); err != nil {
			return err
		}
		if err := stream.Send(frame); err != nil {
			return fmt.Errorf("sending %v: %w", wire.TypeHello, err)
		}
		var described wire.Description
		err := g.Guard.AwaitAnswer(stream, hello, &welcome, &described)
		said = description.Signed{Text: described.Text, Signer: transport.PeerID(described.Signer), Signature: described.Signature}
		return err
	})
	if err != nil {
		err = asRefusal(to, fmt.Errorf("saying hello: %w", err))
	}
	if refused, ok := errors.AsType[*transport.RefusedError](err); ok && refused.Why == transport.ErrLayout && g.Build != "" {
		refused.Detail += "; your build is " + g.Build // as in the other's refusal
	}
	return welcome, said, err
}

// goneTimeout bounds the hello of Gone.
const goneTimeout = 2 * time.Second

// Gone tells whether a member does not answer a hello at any address, or its process no
// longer takes part in the run. To open a stream is no proof of life: a frozen process
// accepts it.
func (g *Greeter) Gone(ctx context.Context, member transport.PeerID) bool {
	soon, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	_, err := g.Hello(soon, member)
	_, answered := errors.AsType[*wire.Refusal](err)
	refused, ok := errors.AsType[*transport.RefusedError](err)
	switch {
	case ok:
		return refused.Why == transport.ErrUnknownRun
	case err == nil, answered, ctx.Err() != nil:
		return false
	}
	return true
}

// answer answers a peer that asks for admission. The reason is 0 if it is admitted.
func (g *Greeter) answer(stream *framed.Stream, header wire.Header, hello wire.Hello) (reason wire.Reason) {
	reason, detail := g.Guard.Vet(stream, hello)
	if reason == 0 && hello.Run == g.Run && g.Described.describe(stream, header) != nil {
		stream.Reset()
		return 0
	}
	if reason == 0 {
		own, none := g.Flock.Layout(), [wire.HashSize]byte{}
		if hello.Layout == none || own == none { // without a model any layout fits
			own = hello.Layout
		}
		reason, detail = wire.Differs(g.Run, own, hello.Run, hello.Layout)
	}
	if reason == wire.ReasonLayout && g.Build != "" {
		detail += "; the build here is " + g.Build
	}
	if reason != 0 {
		g.Log.Warn("refused a peer that asked to join", zap.String("peer", string(stream.Remote())),
			zap.Stringer("reason", reason), zap.String("detail", detail), zap.String("remedy", reason.Remedy()))
		stream.Refuse(0, reason, detail)
		return reason
	}
	welcome := wire.Welcome{Incarnation: g.Flock.Incarnation(), Steps: g.Flock.Age(), FlockSteps: g.Flock.Total()}
	if framed.Say(stream, 0, welcome) != nil {
		stream.Reset()
		return 0
	}
	stream.Finish()
	return 0
}

// asRefusal makes a *transport.RefusedError of a permanent error.
func asRefusal(from transport.PeerID, err error) error {
	var reason wire.Reason
	var detail string
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		reason, detail = r.Reason, r.Detail
	}
	switch {
	case reason == wire.ReasonLayout:
		err = transport.ErrLayout
	case reason == wire.ReasonAdmission || errors.Is(err, transport.ErrNotAdmitted):
		reason, err = wire.ReasonAdmission, transport.ErrNotAdmitted
	case reason == wire.ReasonVersion || errors.Is(err, wire.ErrVersion) || errors.Is(err, transport.ErrUnknownProtocol):
		reason, err = wire.ReasonVersion, transport.ErrUnknownProtocol
	case reason == wire.ReasonRun || errors.Is(err, transport.ErrUnknownRun):
		reason, err = wire.ReasonRun, transport.ErrUnknownRun
	default:
		return err
	}
	return &transport.RefusedError{Peer: from, Why: err, Detail: detail, Remedy: reason.Remedy()}
}
