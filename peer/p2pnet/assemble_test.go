package p2pnet

import (
	"errors"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestProtocolsOfAHost: a host serves what libp2p.New has it serve under the same settings,
// and nothing else.
func TestProtocolsOfAHost(t *testing.T) {
	always := []protocol.ID{identify.ID, identify.IDPush, proto.ProtoIDv2Stop}
	for _, c := range []struct {
		relay Relay
		more  []protocol.ID
	}{
		{Relay{}, nil},
		{Relay{Serve: true}, []protocol.ID{autonat.AutoNATProto, proto.ProtoIDv2Hop}},
		{Relay{Punch: true}, nil}, // not before it knows a public address
	} {
		config := loopback()
		config.Relay = c.relay
		want := slices.Sorted(slices.Values(slices.Concat(always, c.more)))
		if got := slices.Sorted(slices.Values(start(t, config).host.Mux().Protocols())); !slices.Equal(got, want) {
			t.Errorf("%+v serves %v, want %v", c.relay, got, want)
		}
	}
}

// TestHolesArePunchedFromWhereOthersSeeUs: the address at which another sees this process
// is what holes are punched with, by a process that is to do that.
func TestHolesArePunchedFromWhereOthersSeeUs(t *testing.T) {
	t.Parallel()
	punches := func(at *Transport) bool { return slices.Contains(at.host.Mux().Protocols(), holepunch.Protocol) }
	for _, punch := range []bool{true, false} {
		config := loopback()
		config.Relay.Punch = punch
		at := start(t, config)
		emitter, err := at.host.EventBus().Emitter(new(event.EvtPeerIdentificationCompleted))
		if err != nil {
			t.Fatal(err)
		}
		defer emitter.Close()
		by := seen{linked{remote: "/ip4/9.9.9.9/tcp/4001", direction: network.DirOutbound}, at.Addresses()[0]}
		err = emitter.Emit(event.EvtPeerIdentificationCompleted{Peer: idOf(t, 1), Conn: by, ObservedAddr: ma.StringCast("/ip4/8.8.8.8/tcp/4001")})
		if err != nil {
			t.Fatal(err)
		}
		if punch {
			eventually(t, "holes are punched", func() bool { return punches(at) })
		} else if punches(at) || at.host.(*assembled).observed != nil {
			t.Error("holes are punched, and nobody has asked for it")
		}
	}
}

// seen is a connection of which the ends are known, here too.
type seen struct {
	linked
	local string
}

func (s seen) LocalMultiaddr() ma.Multiaddr { return ma.StringCast(s.local) }
func (s seen) IsClosed() bool               { return false }

// TestDialledBack: who serves for AutoNAT dials others under another identity than its own,
// and nobody whom it does not admit.
func TestDialledBack(t *testing.T) {
	other, barred := start(t, loopback()), start(t, loopback())
	config := loopback()
	config.Relay.Serve = true
	config.Admit = func(id transport.PeerID) error {
		if id == barred.Self() {
			return errors.New("barred")
		}
		return nil
	}
	at := start(t, config)
	dialer := at.host.(*assembled).dialer
	for _, to := range []*Transport{other, barred} {
		dialer.Peerstore().AddAddrs(to.id, []ma.Multiaddr{ma.StringCast(to.Addresses()[0])}, peerstore.TempAddrTTL)
	}
	if conn, err := dialer.DialPeer(t.Context(), other.id); err != nil || conn.LocalPeer() == at.id {
		t.Errorf("dialling back: %v", err)
	}
	if _, err := dialer.DialPeer(t.Context(), barred.id); err == nil {
		t.Error("who is not admitted is dialled back")
	}
}
