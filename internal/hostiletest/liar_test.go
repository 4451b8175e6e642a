package hostiletest_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// liar is an active member by its key that speaks to the peers of a flock frame by frame, as no peer would.
type liar struct {
	t          *testing.T
	ctx        context.Context // ends with the test, or before
	peers      []*peer.Peer    // of the flock that it has joined
	at         *memnet.Transport
	membership transport.Membership
	opening    wire.Opening // of a proposal to which nobody objects
}

// join has a liar enter a flock, by memberlist where the flock has that. It says nothing yet.
func join(t *testing.T, ctx context.Context, flock *peertest.Flock, name string, memberlist bool) *liar {
	t.Helper()
	at, err := flock.Network.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	held, err := replica.New(newModel(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{t: t, ctx: ctx, peers: slices.Clone(flock.Peers), at: at, opening: wire.Opening{
		Run: peertest.Run, Layout: newModel().Layout().Hash(), Incarnation: 1, SliceLen: replica.DefaultSliceLen, Cut: held.Cut(), Codecs: []uint8{1},
	}}
	if memberlist {
		l.membership, err = swim.New(swim.Config{Transport: at, Run: peertest.Run})
	} else {
		l.membership, err = flock.Network.Membership(at, peertest.Run)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		at.Close()
		l.membership.Close()
	})
	first := flock.Peers[0]
	if _, err = at.Connect(ctx, first.JoinAddresses()[0]); err == nil {
		err = l.membership.Join(ctx, first.Self())
	}
	if err != nil {
		t.Fatal(err)
	}
	l.announce(1)
	return l
}

// announce says in which life the liar is. What it is refused it does not mind.
func (l *liar) announce(life uint64) {
	_ = l.membership.Announce(transport.Record{
		Peer: l.at.Self(), Run: peertest.Run, Incarnation: life, Role: uint8(topology.Active), Steps: 200, Addresses: l.at.Addresses(),
	})
}

// serve answers what peers begin with the liar.
func (l *liar) serve(protocol transport.Protocol, handler transport.Handler) {
	l.t.Helper()
	if _, err := l.at.Handle(protocol, peertest.Run, handler); err != nil {
		l.t.Fatal(err)
	}
}

// open opens a stream to a victim that ends after so long; nil if it cannot.
func (l *liar) open(victim transport.PeerID, protocol transport.Protocol, lasts time.Duration) (stream transport.Stream, done func()) {
	ctx, cancel := context.WithTimeout(l.ctx, lasts)
	stream, err := l.at.Open(ctx, victim, protocol, peertest.Run)
	if err != nil {
		cancel()
		return nil, nil
	}
	stop := context.AfterFunc(ctx, stream.Reset)
	return stream, func() { stop(); cancel(); stream.Reset() }
}

func (l *liar) pack(exchange uint64, m wire.Message) []byte {
	frame, err := wire.Pack(nil, exchange, m)
	if err != nil {
		l.t.Error(err)
	}
	return frame
}

// say seals a frame and sends it: who is not heard does not mind.
func (l *liar) say(stream transport.Stream, frame []byte, header wire.Header) {
	if err := wire.Seal(frame, header); err != nil {
		l.t.Error(err)
	}
	stream.Write(frame)
}

// propose proposes an exchange, answers what it is asked before that begins, and tells whether it is accepted.
func (l *liar) propose(stream transport.Stream, frames *wire.Reader, exchange uint64) bool {
	stream.Write(l.pack(exchange, wire.Propose{Opening: l.opening, Overlap: 1, Lanes: 1}))
	for {
		switch header, _, err := frames.Next(); {
		case err == nil && header.Type == wire.TypeAccept:
			return true
		case err == nil && header.Type == wire.TypeStatus:
			stream.Write(l.pack(header.Exchange, wire.Settled{}))
		default:
			return false
		}
	}
}

// show shows a victim its own model, moved in a direction.
func (l *liar) show(stream transport.Stream, exchange uint64, victim int, direction tensor.Vector) {
	shown := make(tensor.Vector, newModel().Layout().Len())
	l.peers[victim].Snapshot(shown, 0)
	tensor.Add(shown, direction)
	frame := wire.AppendCodeInfo(wire.Reserve(nil), wire.CodeInfo{Bound: float32(math.Inf(1)), Codec: 1})
	l.say(stream, tensor.AppendBytes(frame, shown), wire.Header{Type: wire.TypeCode, Exchange: exchange})
}

// exchange has an exchange as it should be, but for what is shown.
func (l *liar) exchange(stream transport.Stream, frames *wire.Reader, exchange uint64, victim int, direction tensor.Vector) {
	l.show(stream, exchange, victim, direction)
	if header, _, err := frames.Next(); err == nil && header.Type == wire.TypeDiff {
		l.say(stream, wire.Reserve(nil), wire.Header{Type: wire.TypeAck, Exchange: exchange, Ack: 1})
		stream.CloseWrite()
		frames.Next() // until the victim has applied it
	}
}
