package peer

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/idle"
	"github.com/seed-97356399/murmuration/internal/tally"
	"github.com/seed-97356399/murmuration/internal/tasks"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/swim"
)

// adapters are what a peer reaches the others by: those of its configuration, or the
// default ones.
type adapters struct {
	transport  seam.Transport
	own        *p2pnet.Transport // below transport; nil if that is Config.Network.Transport
	membership seam.Membership
	guard      *admit.Guard // nil if everybody is admitted
}

// open brings them up. A relay that wants to know the peer is introduced to it, and whether
// others can dial it is told, once that is known.
func (a *adapters) open(network Network, introduce func(context.Context, seam.PeerID) error, reachable func(bool)) (err error) {
	a.transport = network.Transport
	if a.guard, err = network.guard(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if a.transport == nil {
		a.own, err = p2pnet.New(p2pnet.Config{
			Identity: network.Identity, Listen: network.Listen, Known: network.KnownPeers,
			Admit: a.guard.AdmitID, Member: a.guard.TakesPart, Introduce: introduce, Reachable: reachable,
			Relay: network.Relay, Log: network.Log,
		})
		if err != nil {
			return err
		}
		a.transport = a.own
	}
	a.transport = a.guard.Over(a.transport)
	if a.membership != nil {
		return nil
	}
	membership, err := swim.New(swim.Config{
		Transport: a.transport, Run: network.Run, Admission: a.guard.OfMembers(),
		Carrier: network.Carrier, GossipKeys: network.GossipKeys, Log: network.Log.With(zap.String("self", a.transport.Self().Short())),
	})
	if err == nil {
		a.membership = membership
	}
	return err
}

// disconnect ends the connections with a peer, if they are this peer's own.
func (a *adapters) disconnect(id seam.PeerID) {
	if a.own != nil {
		a.own.Disconnect(id)
	}
}

// maxIdleFrames bounds the streams of frames that are kept for their next use.
const maxIdleFrames = 16

// frames speaks on streams of conversations that are no exchange, and counts what goes over
// them.
type frames struct {
	idle      idle.Pool[*framed.Stream]
	run       string
	transport seam.Transport
	stall     time.Duration
	tally     *tally.Tally
	log       *zap.Logger
}

// answering handles streams by answer, whose error says that no request could be read.
func (f *frames) answering(answer func(*framed.Stream) error) seam.Handler {
	return func(stream seam.Stream) {
		s := f.idle.Take()
		s.Begin(stream, f.stall)
		defer f.done(s)
		if err := answer(s); err != nil {
			f.misread(s, err)
		}
	}
}

// converse speaks with a peer on a stream of its own, which it closes when talk has
// returned, and resets if talk or ctx has ended too soon.
func (f *frames) converse(ctx context.Context, to seam.PeerID, protocol seam.Protocol, talk func(*framed.Stream) error) error {
	stream, err := f.transport.Open(ctx, to, protocol, f.run)
	if err != nil {
		return err
	}
	s := f.idle.Take()
	defer f.done(s)
	return s.Converse(ctx, stream, f.stall, talk)
}

// misread ends a stream on which no request could be read.
func (f *frames) misread(s *framed.Stream, err error) {
	reason, theirs := wire.ReasonFor(err)
	if !theirs {
		s.Reset() // nobody is there to be told, or the peer is closing
		return
	}
	f.malformed(s.Remote(), reason, err)
	s.Refuse(0, reason, err.Error())
}

// malformed says that what somebody has sent was no request.
func (f *frames) malformed(from seam.PeerID, reason wire.Reason, err error) {
	f.tally.Declined(reason)
	f.log.Warn("refused a stream that speaks otherwise", zap.String("peer", string(from)), zap.Error(err), zap.String("remedy", reason.Remedy()))
}

// done counts what went over a stream, and takes it back; its stream is closed or
// reset by then.
func (f *frames) done(s *framed.Stream) {
	f.tally.Moved(0, s.Sent, s.Received)
	s.Stream = nil
	f.idle.Put(s)
}

// service is a protocol that others may speak.
type service struct {
	protocol seam.Protocol
	handler  seam.Handler
}

// serve registers protocols of a run, until a life ends.
func (a *adapters) serve(run string, life *tasks.Life, services []service) error {
	for _, s := range services {
		stop, err := a.transport.Handle(s.protocol, run, s.handler)
		if err != nil {
			return fmt.Errorf("serving %s: %w", s.protocol, err)
		}
		life.Ends(stop)
	}
	return nil
}
