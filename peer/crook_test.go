package peer_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// crook is a member by its key that does, all at once, whatever a member can do wrong:
// it pushes models back to back with the same number of exchange, holds the places of
// exchanges and of joiners, says that others are dead, lives a new life each moment,
// and answers whoever comes to it with pushes, silence and absurd numbers.
type crook struct {
	t          *testing.T
	ctx        context.Context
	transport  *memnet.Transport
	membership transport.Membership
	flock      *peertest.Flock
	victims    []transport.PeerID
	layout     [32]byte
	cut        uint64
	direction  tensor.Vector // of the push, of norm 1
	pause      time.Duration // between two attempts at one victim, if the first has failed
	work       sync.WaitGroup
}

const (
	crookHolds = 10 * time.Second      // how long it keeps a place, unless it is thrown out
	crookLife  = 50 * time.Millisecond // how long it lives
	crookPush  = 10                    // how far away it shows its model, in norms of 1
)

// startCrook has a crook join a flock and begin. It ends with the test.
func startCrook(t *testing.T, flock *peertest.Flock, number int, pause time.Duration) *crook {
	t.Helper()
	tr, err := flock.Network.Transport(fmt.Sprint("crook-", number))
	if err != nil {
		t.Fatal(err)
	}
	membership, err := swim.New(swim.Config{Transport: tr, Run: peertest.Run})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := replica.New(newLesson(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &crook{
		t: t, ctx: ctx, transport: tr, membership: membership, flock: flock, victims: flock.IDs(), pause: pause,
		layout: newLesson().Layout().Hash(), cut: r.Cut(), direction: make(tensor.Vector, newLesson().Layout().Len()),
	}
	random := rand.New(rand.NewPCG(77, 0)) // crooks push together
	for i := range c.direction {
		c.direction[i] = float32(random.NormFloat64())
	}
	tensor.Scale(c.direction, float32(1/tensor.Norm2(c.direction)))
	for protocol, handler := range map[transport.Protocol]transport.Handler{
		transport.ProtocolExchange: c.serve, transport.ProtocolHello: c.welcome, transport.ProtocolState: c.hold,
	} {
		if _, err := tr.Handle(protocol, peertest.Run, handler); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tr.Connect(ctx, flock.Peers[0].JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
	if err := membership.Join(ctx, c.victims[0]); err != nil {
		t.Fatal(err)
	}
	c.announce(1)
	for i := range c.victims {
		c.loop(func() time.Duration { return c.push(i) })
		c.loop(func() time.Duration { return c.keepSilent(i) })
		c.loop(func() time.Duration { return c.copySlowly(i) })
	}
	life := uint64(1)
	c.loop(func() time.Duration { life++; c.announce(life); return crookLife })
	c.loop(func() time.Duration {
		c.declareDead(random.IntN(len(c.victims)), random.IntN(len(c.victims)))
		return 100 * time.Millisecond
	})
	t.Cleanup(func() {
		cancel()
		tr.Close()
		c.work.Wait()
		membership.Close()
	})
	return c
}

// loop does something again and again, with the pauses that it asks for.
func (c *crook) loop(do func() time.Duration) {
	c.work.Go(func() {
		for c.ctx.Err() == nil {
			select {
			case <-time.After(max(do(), time.Millisecond)):
			case <-c.ctx.Done():
			}
		}
	})
}

func (c *crook) announce(life uint64) {
	// What it is refused it does not mind.
	_ = c.membership.Announce(transport.Record{
		Peer: c.transport.Self(), Run: peertest.Run, Incarnation: life, Role: uint8(topology.Active), Steps: 200, Addresses: c.transport.Addresses(),
	})
}

// open opens a stream to a victim that ends after so long.
func (c *crook) open(victim int, protocol transport.Protocol, lasts time.Duration) (stream transport.Stream, done func()) {
	ctx, cancel := context.WithTimeout(c.ctx, lasts)
	stream, err := c.transport.Open(ctx, c.victims[victim], protocol, peertest.Run)
	if err != nil {
		cancel()
		return nil, nil
	}
	stop := context.AfterFunc(ctx, stream.Reset)
	return stream, func() { stop(); cancel(); stream.Reset() }
}

// propose proposes an exchange, always of the same number, and tells whether it is
// accepted.
func (c *crook) propose(stream transport.Stream, frames *wire.Reader) bool {
	frame, err := wire.Pack(nil, 1, wire.Propose{
		Opening: wire.Opening{Run: peertest.Run, Layout: c.layout, Incarnation: 1, SliceLen: replica.DefaultSliceLen, Cut: c.cut, Codecs: []uint8{1}},
		Overlap: 1, Lanes: 1,
	})
	if err != nil {
		c.t.Error(err)
		return false
	}
	if _, err = stream.Write(frame); err != nil {
		return false
	}
	header, _, err := frames.Next()
	return err == nil && header.Type == wire.TypeAccept
}

// push shows a victim a model far away and takes its answer.
func (c *crook) push(victim int) time.Duration {
	stream, done := c.open(victim, transport.ProtocolExchange, crookHolds)
	if stream == nil {
		return c.pause
	}
	defer done()
	frames := wire.NewReader(stream, wire.MaxPayload)
	if !c.propose(stream, frames) {
		return c.pause
	}
	shown := make(tensor.Vector, len(c.direction))
	c.flock.Peers[victim].Snapshot(shown, 0)
	tensor.Axpy(shown, crookPush, c.direction)
	frame := wire.AppendCodeInfo(wire.Reserve(nil), wire.CodeInfo{Bound: float32(math.Inf(1)), Codec: 1})
	frame = tensor.AppendBytes(frame, shown)
	c.write(stream, frame, wire.Header{Type: wire.TypeCode, Exchange: 1})
	if header, _, err := frames.Next(); err == nil && header.Type == wire.TypeDiff {
		c.write(stream, wire.Reserve(nil), wire.Header{Type: wire.TypeAck, Exchange: 1, Ack: 1})
		stream.CloseWrite()
		frames.Next() // until the victim has applied it
	}
	return 0
}

// write seals a frame and sends it.
func (c *crook) write(stream transport.Stream, frame []byte, header wire.Header) {
	if err := wire.Seal(frame, header); err != nil {
		c.t.Error(err)
	}
	stream.Write(frame)
}

// keepSilent proposes and says nothing more.
func (c *crook) keepSilent(victim int) time.Duration {
	stream, done := c.open(victim, transport.ProtocolExchange, crookHolds)
	if stream == nil {
		return c.pause
	}
	defer done()
	frames := wire.NewReader(stream, wire.MaxPayload)
	if c.propose(stream, frames) {
		frames.Next()
	}
	return c.pause
}

// copySlowly asks for a copy of the model and reads none of it.
func (c *crook) copySlowly(victim int) time.Duration {
	stream, done := c.open(victim, transport.ProtocolState, crookHolds)
	if stream == nil {
		return c.pause
	}
	defer done()
	frame, err := wire.Pack(nil, 0, wire.StateRequest{Run: peertest.Run, Layout: c.layout})
	if err != nil {
		c.t.Error(err)
	}
	stream.Write(frame)
	frames := wire.NewReader(stream, wire.MaxPayload)
	if header, _, err := frames.Next(); err == nil && header.Type == wire.TypeManifest {
		frames.Next() // which comes when the state server gives up
	}
	return c.pause
}

// declareDead tells one member, in memberlist's own words, that another is dead, in a
// life that it cannot outlive.
func (c *crook) declareDead(whom, victim int) {
	stream, done := c.open(victim, transport.ProtocolSwim, time.Second)
	if stream == nil {
		return
	}
	defer done()
	const packets, dead = 1, 5
	lie := binary.BigEndian.AppendUint32([]byte{dead, 0x83, 0xab, 'I', 'n', 'c', 'a', 'r', 'n', 'a', 't', 'i', 'o', 'n', 0xce}, math.MaxUint32)
	for _, text := range []string{"Node", string(c.victims[whom]), "From", string(c.transport.Self())} {
		lie = append(binary.BigEndian.AppendUint16(append(lie, 0xda), uint16(len(text))), text...)
	}
	stream.Write(append(binary.BigEndian.AppendUint16([]byte{packets}, uint16(len(lie))), lie...))
	time.Sleep(10 * time.Millisecond) // so that it arrives before the stream is reset
}

// serve accepts whatever exchange is proposed, and answers with the longest push that
// the proposer's bound lets through, with silence, or with what has no sense.
func (c *crook) serve(stream transport.Stream) {
	defer stream.Reset()
	stream.SetReadDeadline(time.Now().Add(crookHolds))
	frames := wire.NewReader(stream, wire.MaxPayload)
	header, _, err := frames.Next()
	if err != nil || header.Type != wire.TypePropose {
		return
	}
	frame, err := wire.Pack(nil, header.Exchange, wire.Accept{Codecs: []uint8{1}, Window: 1, Overlap: 1, Lanes: 1, Steps: 1 << 60, Incarnation: math.MaxUint64})
	if err != nil {
		c.t.Error(err)
	}
	stream.Write(frame)
	header, payload, err := frames.Next()
	if err != nil || header.Type != wire.TypeCode || header.Exchange%3 == 0 {
		io.Copy(io.Discard, stream)
		return
	}
	info, _, err := wire.SplitCode(payload)
	if err != nil {
		return
	}
	push := append(tensor.Vector(nil), c.direction...)
	tensor.Scale(push, -info.Bound/2)
	frame = wire.AppendDiffInfo(wire.Reserve(nil), wire.DiffInfo{SquaredDistance: math.MaxFloat32})
	c.write(stream, tensor.AppendBytes(frame, push), wire.Header{Type: wire.TypeDiff, Exchange: header.Exchange, Slice: header.Slice})
	io.Copy(io.Discard, stream)
}

// welcome tells whoever says hello that it has lived for ever.
func (c *crook) welcome(stream transport.Stream) {
	defer stream.Close()
	if _, _, err := wire.NewReader(stream, wire.MaxHandshake).Next(); err != nil {
		return
	}
	frame, err := wire.Pack(nil, 0, wire.Welcome{Incarnation: math.MaxUint64, Steps: 1 << 60, FlockSteps: 1 << 60, KnownIncarnation: math.MaxUint64 - 1})
	if err != nil {
		c.t.Error(err)
	}
	stream.Write(frame)
}

// hold gives a joiner nothing.
func (c *crook) hold(stream transport.Stream) {
	defer stream.Reset()
	stream.SetReadDeadline(time.Now().Add(crookHolds))
	io.Copy(io.Discard, stream)
}
