package hostiletest_test

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

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// crook is a liar that does, all at once, whatever a member can do wrong: it pushes models back to back with
// the same number of exchange, holds the places of exchanges and of joiners, says that others are dead, lives
// a new life each moment, and answers whoever comes to it with pushes, silence and absurd numbers.
type crook struct {
	*liar
	direction tensor.Vector // of the push
	pause     time.Duration // between two attempts at one victim, if the first has failed
	work      sync.WaitGroup
}

const (
	crookHolds = 10 * time.Second      // how long it keeps a place, unless it is thrown out
	crookLife  = 50 * time.Millisecond // how long it lives
	crookPush  = 10                    // how far away it shows its model
)

// startCrook has a crook join a flock and begin. It ends with the test.
func startCrook(t *testing.T, flock *peertest.Flock, number int, pause time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &crook{liar: join(t, ctx, flock, fmt.Sprint("crook-", number), true), direction: make(tensor.Vector, newModel().Layout().Len()), pause: pause}
	random := rand.New(rand.NewPCG(77, 0)) // crooks push together
	for i := range c.direction {
		c.direction[i] = float32(random.NormFloat64())
	}
	tensor.Scale(c.direction, float32(crookPush/tensor.Norm2(c.direction)))
	c.serve(transport.ProtocolExchange, c.answer)
	c.serve(transport.ProtocolHello, c.welcome)
	c.serve(transport.ProtocolState, func(stream transport.Stream) { c.holdUp(stream) })
	victims := flock.IDs()
	for i := range victims {
		c.loop(func() time.Duration { return c.push(i) })
		c.loop(func() time.Duration { return c.keepSilent(victims[i]) })
		c.loop(func() time.Duration { return c.copySlowly(victims[i]) })
	}
	life := uint64(1)
	c.loop(func() time.Duration { life++; c.announce(life); return crookLife })
	c.loop(func() time.Duration {
		c.declareDead(victims[random.IntN(len(victims))], victims[random.IntN(len(victims))])
		return 100 * time.Millisecond
	})
	t.Cleanup(func() {
		cancel()
		c.at.Close()
		c.work.Wait()
	})
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

// push shows a victim a model far away and takes its answer.
func (c *crook) push(victim int) time.Duration {
	stream, done := c.open(c.peers[victim].Self(), transport.ProtocolExchange, crookHolds)
	if stream == nil {
		return c.pause
	}
	defer done()
	frames := wire.NewReader(stream, wire.MaxPayload)
	if !c.propose(stream, frames, 1) {
		return c.pause
	}
	c.exchange(stream, frames, 1, victim, c.direction)
	return 0
}

// keepSilent proposes and says nothing more.
func (c *crook) keepSilent(victim transport.PeerID) time.Duration {
	if stream, done := c.open(victim, transport.ProtocolExchange, crookHolds); stream != nil {
		defer done()
		if frames := wire.NewReader(stream, wire.MaxPayload); c.propose(stream, frames, 1) {
			frames.Next()
		}
	}
	return c.pause
}

// copySlowly asks for a copy of the model and reads none of it.
func (c *crook) copySlowly(victim transport.PeerID) time.Duration {
	if stream, done := c.open(victim, transport.ProtocolState, crookHolds); stream != nil {
		defer done()
		stream.Write(c.pack(0, wire.StateRequest{Run: peertest.Run, Layout: c.opening.Layout}))
		frames := wire.NewReader(stream, wire.MaxPayload)
		if header, _, err := frames.Next(); err == nil && header.Type == wire.TypeManifest {
			frames.Next() // which comes when the state server gives up
		}
	}
	return c.pause
}

// declareDead tells one member, in memberlist's own words, that another is dead, in a life that it cannot
// outlive.
func (c *crook) declareDead(whom, victim transport.PeerID) {
	stream, done := c.open(victim, transport.ProtocolSwim, time.Second)
	if stream == nil {
		return
	}
	defer done()
	const packets, dead = 1, 5
	lie := binary.BigEndian.AppendUint32([]byte{dead, 0x83, 0xab, 'I', 'n', 'c', 'a', 'r', 'n', 'a', 't', 'i', 'o', 'n', 0xce}, math.MaxUint32)
	for _, text := range []string{"Node", string(whom), "From", string(c.at.Self())} {
		lie = append(binary.BigEndian.AppendUint16(append(lie, 0xda), uint16(len(text))), text...)
	}
	stream.Write(append(binary.BigEndian.AppendUint16([]byte{packets}, uint16(len(lie))), lie...))
	time.Sleep(10 * time.Millisecond) // so that it arrives before the stream is reset
}

// answer accepts whatever exchange is proposed, and answers with the longest push that the proposer's bound
// lets through, or with silence.
func (c *crook) answer(stream transport.Stream) {
	defer c.holdUp(stream)
	frames := wire.NewReader(stream, wire.MaxPayload)
	stream.SetReadDeadline(time.Now().Add(crookHolds))
	header, _, err := frames.Next()
	if err != nil || header.Type != wire.TypePropose {
		return
	}
	stream.Write(c.pack(header.Exchange, wire.Accept{Codecs: []uint8{1}, Window: 1, Overlap: 1, Lanes: 1, Steps: 1 << 60, Incarnation: math.MaxUint64}))
	header, payload, err := frames.Next()
	if err != nil || header.Type != wire.TypeCode || header.Exchange%3 == 0 {
		return
	}
	info, _, err := wire.SplitCode(payload)
	if err != nil {
		return
	}
	push := append(tensor.Vector(nil), c.direction...)
	tensor.Scale(push, -info.Bound/2/crookPush)
	frame := wire.AppendDiffInfo(wire.Reserve(nil), wire.DiffInfo{SquaredDistance: math.MaxFloat32})
	c.say(stream, tensor.AppendBytes(frame, push), wire.Header{Type: wire.TypeDiff, Exchange: header.Exchange, Slice: header.Slice})
}

// welcome tells whoever says hello that it has lived for ever.
func (c *crook) welcome(stream transport.Stream) {
	defer stream.Close()
	if _, _, err := wire.NewReader(stream, wire.MaxHandshake).Next(); err == nil {
		stream.Write(c.pack(0, wire.Welcome{Incarnation: math.MaxUint64, Steps: 1 << 60, FlockSteps: 1 << 60, KnownIncarnation: math.MaxUint64 - 1}))
	}
}

// holdUp gives whoever waits nothing.
func (c *crook) holdUp(stream transport.Stream) {
	defer stream.Reset()
	stream.SetReadDeadline(time.Now().Add(crookHolds))
	io.Copy(io.Discard, stream)
}
