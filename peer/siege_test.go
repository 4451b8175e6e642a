package peer_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// besieger is an active member that keeps a passive's place in some way, again and again.
type besieger struct {
	t         *testing.T
	ctx       context.Context
	transport *memnet.Transport
	layout    [32]byte
	cut       uint64
	sliceLen  int
	ids       map[transport.PeerID]uint64
	taken     map[transport.PeerID]int // of these, those accepted
	mu        sync.Mutex
}

// newBesieger has one join a flock, quiet for now.
func newBesieger(t *testing.T, flock *peertest.Flock, name string) *besieger {
	t.Helper()
	tr, err := flock.Network.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	enlist(t, flock.Network, tr, peertest.Run, flock.Peers[0])
	b := &besieger{t: t, transport: tr, layout: newModel().Layout().Hash(), ids: map[transport.PeerID]uint64{}, taken: map[transport.PeerID]int{}}
	b.cut, b.sliceLen = flock.Peers[0].Cut()
	stop, err := tr.Handle(transport.ProtocolExchange, peertest.Run, func(stream transport.Stream) {
		stream.SetReadDeadline(time.Now().Add(time.Minute)) // questions: it does not answer
		stream.Read(make([]byte, 1))
		time.Sleep(time.Minute)
		stream.Reset()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return b
}

// propose proposes the next exchange, answers what is asked before it, and tells whether
// it was accepted.
func (b *besieger) propose(victim transport.PeerID) (stream transport.Stream, frames *wire.Reader, exchange uint64) {
	stream, err := b.transport.Open(b.ctx, victim, transport.ProtocolExchange, peertest.Run)
	if err != nil {
		return nil, nil, 0
	}
	b.mu.Lock()
	b.ids[victim]++
	exchange = b.ids[victim]
	b.mu.Unlock()
	frame, err := wire.Pack(nil, exchange, wire.Propose{
		Opening: wire.Opening{Run: peertest.Run, Layout: b.layout, Incarnation: 1, SliceLen: uint32(b.sliceLen), Cut: b.cut, Codecs: []uint8{1}},
		Overlap: 1, Lanes: 1,
	})
	if err != nil {
		b.t.Error(err)
	}
	stream.SetReadDeadline(time.Now().Add(time.Minute))
	stream.Write(frame)
	frames = wire.NewReader(stream, wire.MaxPayload)
	for {
		header, _, err := frames.Next()
		switch {
		case err == nil && header.Type == wire.TypeAccept:
			b.mu.Lock()
			b.taken[victim]++
			b.mu.Unlock()
			return stream, frames, exchange
		case err == nil && header.Type == wire.TypeStatus:
			frame, err := wire.Pack(nil, header.Exchange, wire.Settled{})
			if err != nil {
				b.t.Error(err)
			}
			stream.Write(frame)
		default:
			stream.Reset()
			return nil, nil, 0
		}
	}
}

// show shows a model of one value.
func (b *besieger) show(stream transport.Stream, exchange uint64, value float32) {
	values := make(tensor.Vector, newModel().Layout().Len())
	for i := range values {
		values[i] = value
	}
	frame := tensor.AppendBytes(wire.AppendCodeInfo(wire.Reserve(nil), wire.CodeInfo{Bound: float32(math.Inf(1)), Codec: 1}), values)
	if err := wire.Seal(frame, wire.Header{Type: wire.TypeCode, Exchange: exchange}); err != nil {
		b.t.Error(err)
	}
	stream.Write(frame)
}

// silent says nothing more once it is accepted.
func (b *besieger) silent(victim transport.PeerID, _ int) {
	if stream, frames, _ := b.propose(victim); stream != nil {
		frames.Next()
		stream.Reset()
	}
}

// oneByte says a byte and nothing more.
func (b *besieger) oneByte(victim transport.PeerID, _ int) {
	if stream, frames, _ := b.propose(victim); stream != nil {
		stream.Write([]byte{'M'})
		frames.Next()
		stream.Reset()
	}
}

// whole is an exchange as it should be, of a model near the others'.
func (b *besieger) whole(victim transport.PeerID) {
	stream, frames, exchange := b.propose(victim)
	if stream == nil {
		return
	}
	b.show(stream, exchange, 21)
	if header, _, err := frames.Next(); err == nil && header.Type == wire.TypeDiff {
		frame := wire.Reserve(nil)
		if err := wire.Seal(frame, wire.Header{Type: wire.TypeAck, Exchange: exchange, Ack: 1}); err != nil {
			b.t.Error(err)
		}
		stream.Write(frame)
		stream.CloseWrite()
		frames.Next()
	}
	stream.Reset()
}

// everyOther is silent every other time it is accepted, and good in between.
func (b *besieger) everyOther(victim transport.PeerID, accepted int) {
	if accepted%2 == 0 {
		b.silent(victim, accepted)
	} else {
		b.whole(victim)
	}
}

// doubt leaves an exchange when it has the answer, says nothing of it for as long as that
// holds everybody up, answers, and begins anew.
func (b *besieger) doubt(victim transport.PeerID, _ int) {
	stream, frames, exchange := b.propose(victim)
	if stream != nil {
		stream.Reset()
		time.Sleep(time.Second)
		stream, frames, exchange = b.propose(victim)
	}
	if stream == nil {
		return
	}
	b.show(stream, exchange, 21)
	frames.Next()
	stream.Reset()
	time.Sleep(28 * time.Second)
}

// siege runs a flock of eight for two minutes, one under the race detector, with so many besiegers, and counts what its
// passives serve of honest members.
func siege(t *testing.T, besiegers int, attack func(b *besieger, victim transport.PeerID, accepted int)) (served uint64, flock *peertest.Flock) {
	t.Helper()
	flock = peertest.Start(t, peertest.Config{
		Peers: 8, Params: newModel, Link: memnet.Link{Delay: time.Millisecond},
		Configure: func(i int, c *peer.Config) {
			c.Training.Exchange.Pace.Every = 1
			c.Training.Optimizer = &optim.SGD{}
			c.Training.Schedule = optim.Schedule{Rate: 0.001}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []*besieger
	for i := range besiegers {
		b := newBesieger(t, flock, string(rune('A'+i))+"-besieger")
		b.ctx = ctx
		all = append(all, b)
	}
	var work sync.WaitGroup
	for _, p := range flock.Peers {
		work.Go(func() {
			for p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
				time.Sleep(100 * time.Millisecond)
				return peer.Result{Samples: 1}, nil
			}) == nil {
			}
		})
	}
	time.Sleep(10 * time.Second)
	before := initiated(flock)
	if attack != nil {
		for _, b := range all {
			for _, victim := range flock.IDs() {
				work.Go(func() {
					for ctx.Err() == nil {
						attack(b, victim, b.accepted(victim))
						time.Sleep(50 * time.Millisecond)
					}
				})
			}
		}
	}
	time.Sleep(2 * time.Minute / sparing)
	served = initiated(flock) - before
	for i, p := range flock.Peers {
		s := p.Stats()
		t.Logf("peer %d, %s: served %d, initiated %d, refused %d, declined %d, failed %d, in doubt %d", i, s.Role, s.Exchanges.Served, s.Exchanges.Initiated, s.Exchanges.Refused, s.Exchanges.Declined, s.Exchanges.Failed, s.Exchanges.InDoubt)
	}
	cancel()
	for _, b := range all {
		b.transport.Close()
	}
	work.Wait()
	return served, flock
}

// accepted is how often a victim has accepted.
func (b *besieger) accepted(victim transport.PeerID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken[victim]
}

// initiated is what the honest members have completed of what they began.
func initiated(flock *peertest.Flock) (n uint64) {
	for _, p := range flock.Peers {
		n += p.Stats().Exchanges.Initiated
	}
	return n
}

// actives is how many of the honest members begin exchanges.
func actives(flock *peertest.Flock) (n uint64) {
	for _, p := range flock.Peers {
		if p.Stats().Exchanges.Initiated > 0 {
			n++
		}
	}
	return n
}

// TestWhoKeepsAPlaceForNothingTakesLittle: whatever members do at a passive's only place
// but exchange, the others have most of it.
func TestWhoKeepsAPlaceForNothingTakesLittle(t *testing.T) {
	t.Parallel()
	quiet := map[int]uint64{} // by how many besiege
	least := uint64(80)
	if underRace {
		least = 60 // of a minute, of which the beginning of an attack is a larger share
	}
	for _, c := range []struct {
		name   string
		count  int
		attack func(b *besieger, victim transport.PeerID, accepted int)
	}{
		{"three leave exchanges in doubt", 3, (*besieger).doubt},
		{"says nothing", 1, (*besieger).silent},
		{"says a byte", 1, (*besieger).oneByte},
		{"says nothing every other time", 1, (*besieger).everyOther},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, ok := quiet[c.count]; !ok {
				synctest.Test(t, func(t *testing.T) {
					served, flock := siege(t, c.count, nil)
					quiet[c.count] = served / actives(flock)
				})
			}
			synctest.Test(t, func(t *testing.T) {
				served, flock := siege(t, c.count, c.attack)
				served /= actives(flock) // of eight three or four are, as they come
				t.Logf("%d exchanges of an active, of %d", served, quiet[c.count])
				if 100*served < least*quiet[c.count] {
					t.Errorf("%d exchanges of honest members were served, %d without it: %.0f %%, want %d", served, quiet[c.count], 100*float64(served)/float64(quiet[c.count]), least)
				}
			})
		})
		if underRace {
			break // the detector sees all that the others do in it too, at 40 s each
		}
	}
}
