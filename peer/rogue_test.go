package peer_test

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

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

func TestHostRefusesWhatIsNoProposal(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes func(r *rogue) []byte
		want  wire.Reason
	}{
		{"noise", func(*rogue) []byte { return make([]byte, 100) }, wire.ReasonProtocol},
		{"a newer version", func(r *rogue) []byte { f := r.propose(nil); f[2]++; return f }, wire.ReasonVersion},
		{"a flipped bit", func(r *rogue) []byte { f := r.propose(nil); f[40] ^= 1; return f }, wire.ReasonProtocol},
		{"a slice with no proposal", func(r *rogue) []byte { return r.code(1) }, wire.ReasonProtocol},
		{"another layout", func(r *rogue) []byte { return r.propose(func(p *wire.Propose) { p.Layout[0]++ }) }, wire.ReasonLayout},
		{"other slices", func(r *rogue) []byte { return r.propose(func(p *wire.Propose) { p.SliceLen = 64 }) }, wire.ReasonLayout},
		{"another run", func(r *rogue) []byte { return r.propose(func(p *wire.Propose) { p.Run = "letters" }) }, wire.ReasonRun},
		{"unknown codecs", func(r *rogue) []byte { return r.propose(func(p *wire.Propose) { p.Codecs = []uint8{250, 251} }) }, wire.ReasonCodec},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRogue(t)
				stream, frames := r.open()
				if _, err := stream.Write(c.bytes(r)); err != nil {
					t.Fatal(err)
				}
				header, payload, err := frames.Next()
				var refuse wire.Refuse
				if err != nil || header.Type != wire.TypeRefuse || refuse.Decode(payload) != nil || refuse.Reason != c.want {
					t.Errorf("the host answers %v %v (%v), want %v", header.Type, refuse, err, c.want)
				}
				stream.Close()
				synctest.Wait()
				warned := r.logged.FilterField(zap.String("peer", string(r.transport.Self())))
				if warned.Len() == 0 || r.host.Stats().Exchanges.Declined != 1 {
					t.Errorf("logged %v, declined %d", r.logged.All(), r.host.Stats().Exchanges.Declined)
				}
			})
		})
	}
}

func TestHostSurvivesAPartnerThatBreaksTheRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes func(r *rogue) []byte
		stays bool // the rogue says nothing more and keeps the stream
	}{
		{"a slice of NaN", func(r *rogue) []byte { return r.code(float32(math.NaN())) }, false},
		{"a slice of infinities", func(r *rogue) []byte { return r.code(float32(math.Inf(-1))) }, false},
		{"a slice farther away than any model", func(r *rogue) []byte { return r.code(1e12) }, false},
		{"a proposal once more", func(r *rogue) []byte { return r.propose(nil) }, false},
		{"half a frame, then silence", func(r *rogue) []byte { return r.code(1)[:1000] }, true},
		{"silence", func(*rogue) []byte { return nil }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRogue(t)
				before, after := make(tensor.Vector, 2050), make(tensor.Vector, 2050)
				r.host.Snapshot(before, 0)
				stream, frames := r.open()
				if _, err := stream.Write(r.propose(nil)); err != nil {
					t.Fatal(err)
				}
				if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeAccept {
					t.Fatalf("the host answers %v, %v", header.Type, err)
				}
				if _, err := stream.Write(c.bytes(r)); err != nil {
					t.Fatal(err)
				}
				if c.stays {
					time.Sleep(peer.Stall + time.Second)
				} else if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeRefuse {
					t.Errorf("the host answers %v, %v; want a refusal", header.Type, err)
				}
				stream.CloseWrite()
				synctest.Wait()
				if failed := r.host.Stats().Exchanges.Failed; failed != 1 {
					t.Errorf("%d exchanges failed, want 1", failed)
				}
				r.host.Snapshot(after, 0)
				for i := range after {
					if after[i] != before[i] {
						t.Fatalf("value %d changed from %g to %g", i, before[i], after[i])
					}
				}
				want := wire.TypeAccept
				if !c.stays { // it is kept away
					want = wire.TypeRefuse
					if s := r.host.Stats(); s.Quarantined != 1 || s.Exchanges.Quarantines != 1 {
						t.Errorf("%d peers in quarantine, %d times", s.Quarantined, s.Exchanges.Quarantines)
					}
				}
				again, frames := r.open()
				again.Write(r.propose(nil))
				if header, _, err := frames.Next(); err != nil || header.Type != want {
					t.Errorf("the host answers the next proposal with %v, %v; want %v", header.Type, err, want)
				}
				again.Reset()
				stream.Reset()
			})
		})
	}
}

func TestBoundsOfRunNamesAgree(t *testing.T) {
	if transport.MaxRunName != wire.MaxRunName {
		t.Errorf("a run's name may have %d bytes in records and %d in frames", transport.MaxRunName, wire.MaxRunName)
	}
}

// TestAJoinerToldOfAnotherVersionSaysSo: whichever side notices that the versions
// differ, the joiner's Step names it.
func TestAJoinerToldOfAnotherVersionSaysSo(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer wire.Message
		newer  bool
	}{
		{"the host refuses", wire.Refuse{Reason: wire.ReasonVersion}, false},
		{"the host answers in a newer version", wire.Welcome{Incarnation: 1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{})
				host, err := network.Transport("host")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { host.Close() })
				stop, err := host.Handle(transport.ProtocolHello, "digits", func(stream transport.Stream) {
					defer stream.Close()
					wire.NewReader(stream, 0).Next()
					frame, err := wire.Pack(nil, 0, c.answer)
					if err != nil {
						t.Error(err)
					}
					if c.newer {
						frame[2]++
					}
					stream.Write(frame)
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(stop)
				guest := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:host"}, Network: inMemory(t, network, "guest", "digits")})
				if err := step(t, guest, idle); !errors.Is(err, transport.ErrUnknownProtocol) {
					t.Errorf("the guest's step: %v, want %v", err, transport.ErrUnknownProtocol)
				}
			})
		})
	}
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
