package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// asked is the reason for which the host refuses what a transport sends first on a
// stream, 0 if it does not refuse.
func (r *rogue) asked(tr *memnet.Transport, frame []byte) wire.Reason {
	r.t.Helper()
	if _, err := tr.Connect(r.t.Context(), "mem:host"); err != nil {
		r.t.Fatal(err)
	}
	stream, err := tr.Open(r.t.Context(), r.host.Self(), transport.ProtocolExchange, "digits")
	if err != nil {
		r.t.Fatal(err)
	}
	defer stream.Reset()
	if _, err := stream.Write(frame); err != nil {
		r.t.Fatal(err)
	}
	header, payload, err := wire.NewReader(stream, 0).Next()
	var refuse wire.Refuse
	switch {
	case err != nil:
		r.t.Fatal(err)
	case header.Type != wire.TypeRefuse:
		return 0
	case refuse.Decode(payload) != nil:
		r.t.Fatal("a refusal that cannot be read")
	}
	return refuse.Reason
}

// TestWhoIsNoMemberIsNotServed: whatever a stranger wants of a peer, it is refused
// at once, for that reason.
func TestWhoIsNoMemberIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		r := newRogueOn(t, network, peer.Exchange{})
		stranger, err := network.Transport("stranger")
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		pack := func(m wire.Message) []byte {
			frame, err := wire.Pack(nil, 1, m)
			if err != nil {
				t.Fatal(err)
			}
			return frame
		}
		for name, frame := range map[string][]byte{
			"a proposal": r.propose(nil), "a lane": pack(wire.Lane{Lane: 1}), "a question": pack(wire.Status{Incarnation: 1, Slices: []uint32{0}}),
			"an offer": pack(wire.Offer{Opening: wire.Opening{Run: "digits", Layout: newModel().Layout().Hash(), Incarnation: 1, SliceLen: 1, Codecs: []uint8{1}}, Parts: 1}),
			"a word":   pack(wire.Tell{}),
		} {
			before := time.Now()
			if got := r.asked(stranger, frame); got != wire.ReasonNotMember {
				t.Errorf("%s of a stranger: refused for %v, want %v", name, got, wire.ReasonNotMember)
			}
			if took := time.Since(before); took > time.Second {
				t.Errorf("%s of a stranger: the answer took %s", name, took)
			}
		}
		if got := r.asked(r.transport, r.propose(nil)); got != 0 {
			t.Errorf("a member's proposal is refused for %v", got)
		}
	})
}

// TestAnExchangeIDIsNotUsedTwice: what was proposed before in one life is not served.
func TestAnExchangeIDIsNotUsedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t)
		first := r.propose(nil)
		second := r.propose(nil)
		if got := r.asked(r.transport, second); got != 0 {
			t.Fatalf("a proposal is refused for %v", got)
		}
		time.Sleep(time.Minute)
		for name, frame := range map[string][]byte{"the same": second, "an older one": first} {
			if got := r.asked(r.transport, frame); got != wire.ReasonBusy {
				t.Errorf("%s once more is refused for %v, want %v", name, got, wire.ReasonBusy)
			}
		}
		if got := r.asked(r.transport, r.propose(func(p *wire.Propose) { p.Incarnation = 2 })); got != 0 {
			t.Errorf("a proposal of the next life is refused for %v", got)
		}
	})
}
