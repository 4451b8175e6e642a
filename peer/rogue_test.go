package peer_test

import (
	"math"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// rogue speaks to a peer frame by frame, as no peer would.
type rogue struct {
	t         *testing.T
	transport *memnet.Transport
	host      *peer.Peer
	logged    *observer.ObservedLogs
	exchange  uint64 // of the last proposal
}

// newRogue starts a passive host and a rogue beside it. It must be called in a
// bubble.
func newRogue(t *testing.T) *rogue { return newRogueWith(t, peer.Exchange{}) }

// newRogueWith is newRogue with a host that exchanges in a certain way.
func newRogueWith(t *testing.T, exchange peer.Exchange) *rogue {
	t.Helper()
	return newRogueOn(t, memnet.New(memnet.Config{}), exchange)
}

// newRogueOn is newRogueWith on a network.
func newRogueOn(t *testing.T, network *memnet.Network, exchange peer.Exchange) *rogue {
	t.Helper()
	return newRogueAt(t, network, inMemory(t, network, "host", "digits"), exchange)
}

// newRogueAt is newRogueOn with a host whose place on the network is given.
func newRogueAt(t *testing.T, network *memnet.Network, place peer.Network, exchange peer.Exchange) *rogue {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	place.Log = zap.New(core)
	host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: place, Training: peer.Training{Exchange: exchange}})
	tr, err := network.Transport("rogue")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	if err := step(t, host, idle); err != nil { // it has arrived
		t.Fatal(err)
	}
	synctest.Wait()
	if host.Stats().Role != "passive" {
		t.Fatalf("the host is %s", host.Stats().Role)
	}
	enlist(t, network, tr, "digits", host)
	return &rogue{t: t, transport: tr, host: host, logged: logged}
}

// enlist makes a transport that of an active member of a host's run: who is none is not
// listened to.
func enlist(t *testing.T, network *memnet.Network, tr *memnet.Transport, run string, host *peer.Peer) {
	t.Helper()
	membership, err := network.Membership(tr, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { membership.Close() })
	if _, err = tr.Connect(t.Context(), host.JoinAddresses()[0]); err == nil {
		err = membership.Announce(transport.Record{Peer: tr.Self(), Run: run, Incarnation: 1, Role: uint8(topology.Active)})
	}
	if err == nil {
		err = membership.Join(t.Context(), host.Self())
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (r *rogue) open() (transport.Stream, *wire.Reader) {
	r.t.Helper()
	if _, err := r.transport.Connect(r.t.Context(), "mem:host"); err != nil {
		r.t.Fatal(err)
	}
	stream, err := r.transport.Open(r.t.Context(), r.host.Self(), transport.ProtocolExchange, "digits")
	if err != nil {
		r.t.Fatal(err)
	}
	return stream, wire.NewReader(stream, 0)
}

func (r *rogue) propose(change func(*wire.Propose)) []byte {
	r.t.Helper()
	proposal := wire.Propose{Opening: wire.Opening{Run: "digits", Layout: newModel().Layout().Hash(), Incarnation: 1, SliceLen: 32 << 10, Codecs: []uint8{1}}, Overlap: 1, Lanes: 1}
	if change != nil {
		change(&proposal)
	}
	proposal.Cut = cutOf(r.t, int(proposal.SliceLen))
	r.exchange++
	frame, err := wire.Pack(nil, r.exchange, proposal)
	if err != nil {
		r.t.Fatal(err)
	}
	return frame
}

// code is the frame of the only slice, all of one value.
func (r *rogue) code(value float32) []byte {
	r.t.Helper()
	values := make(tensor.Vector, 2050)
	for i := range values {
		values[i] = value
	}
	frame := wire.AppendCodeInfo(wire.Reserve(nil), wire.CodeInfo{Bound: float32(math.Inf(1)), Codec: 1})
	frame = tensor.AppendBytes(frame, values)
	if err := wire.Seal(frame, wire.Header{Type: wire.TypeCode, Exchange: r.exchange}); err != nil {
		r.t.Fatal(err)
	}
	return frame
}

// cutOf is the digest of how a peer cuts the model.
func cutOf(t testing.TB, sliceLen int) uint64 {
	t.Helper()
	r, err := replica.New(newModel(), replica.Options{SliceLen: min(sliceLen, replica.MaxSliceLen)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Cut()
}
