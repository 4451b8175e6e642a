package peer

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// A connection says nothing of whether the other process wants to take part: the
// answer to a hello does.

// hello asks a peer to be let into the run. A refusal that will not change is a
// *RefusedError.
func (p *Peer) hello(ctx context.Context, to seam.PeerID) (wire.Welcome, error) {
	var welcome wire.Welcome
	stream, err := p.transport.Open(ctx, to, seam.ProtocolHello, p.config.Run)
	if err != nil {
		return welcome, asRefusal(to, fmt.Errorf("saying hello: %w", err))
	}
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := p.talk(stream)
	defer p.end(t)
	hello := wire.Hello{
		Run: p.config.Run, Layout: p.layout, Incarnation: p.incarnation.Load(), Steps: p.counters.steps.Load(),
	}
	if err = say(t, 0, hello); err == nil {
		err = p.guard.welcomed(t, hello, &welcome)
	}
	if err != nil {
		stream.Reset()
		return welcome, asRefusal(to, err)
	}
	stream.Close()
	return welcome, nil
}

// introduce says hello to a relay that refuses this peer, which it does to all that have
// not shown it that they take part. The transport may ask for it before the peer is there.
func (p *Peer) introduce(ctx context.Context, relay seam.PeerID) error {
	select {
	case <-p.serving:
	case <-ctx.Done():
		return fmt.Errorf("introducing this peer to a relay: %w", ctx.Err())
	}
	_, err := p.hello(ctx, relay)
	return err
}

// asRefusal makes a *RefusedError of an error that will not go away by itself.
func asRefusal(from seam.PeerID, err error) error {
	var r *refusal
	switch {
	case errors.As(err, &r) && r.Reason.Permanent():
		return &RefusedError{Peer: from, Detail: r.Detail, reason: r.Reason, perhaps: r.Reason == wire.ReasonAdmission}
	case errors.Is(err, seam.ErrNotAdmitted):
		return &RefusedError{Peer: from, reason: wire.ReasonAdmission, perhaps: true}
	case errors.Is(err, wire.ErrVersion):
		return &RefusedError{Peer: from, reason: wire.ReasonVersion}
	case errors.Is(err, seam.ErrUnknownRun):
		return &RefusedError{Peer: from, reason: wire.ReasonRun, perhaps: true}
	case errors.Is(err, seam.ErrUnknownProtocol):
		return &RefusedError{Peer: from, reason: wire.ReasonVersion, perhaps: true}
	}
	return err
}

// serveHello answers a peer that asks to be let in.
func (p *Peer) serveHello(stream seam.Stream) {
	t := p.talk(stream)
	defer p.end(t)
	var hello wire.Hello
	if _, err := t.hear(&hello); err != nil {
		p.malformed(t, stream, err)
		return
	}
	reason, detail := p.guard.vet(t, hello)
	if reason == 0 {
		reason, detail = p.admissible(hello.Run, hello.Layout)
	}
	if reason != 0 {
		p.counters.declined.Add(1)
		p.log.Warn("refused a peer that asked to join", zap.String("peer", string(stream.Remote())),
			zap.Stringer("reason", reason), zap.String("detail", detail), zap.String("remedy", reason.Remedy()))
		t.refuse(0, reason, detail)
		return
	}
	select {
	case <-p.closing:
		t.refuse(0, wire.ReasonClosing, "")
		return
	default:
	}
	steps := p.counters.steps.Load()
	welcome := wire.Welcome{
		Incarnation: p.incarnation.Load(), Steps: steps + p.counters.head.Load(), FlockSteps: p.flock.total(steps),
	}
	if say(t, 0, welcome) != nil {
		stream.Reset()
		return
	}
	t.finish()
}

// admissible finds what keeps a peer with another configuration out. The reason is
// 0 if nothing does.
func (p *Peer) admissible(run string, layout [32]byte) (reason wire.Reason, detail string) {
	switch {
	case run != p.config.Run:
		return wire.ReasonRun, fmt.Sprintf("this is run %q", p.config.Run)
	case layout != p.layout:
		theirs := [4]byte(layout[:]) // not a part of layout, which would be allocated in each call
		return wire.ReasonLayout, fmt.Sprintf("the layout here is %x, yours is %x", p.layout[:4], theirs)
	}
	return 0, ""
}
