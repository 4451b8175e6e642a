package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
)

// offer is the frame that offers a transfer of one buffer into another.
func (r *rogue) offer(from, into uint8) []byte {
	r.t.Helper()
	cut, sliceLen := r.host.Cut()
	frame, err := wire.Pack(nil, 1, wire.Offer{
		Opening: wire.Opening{
			Run: "digits", Layout: newModel().Layout().Hash(), Incarnation: 1, SliceLen: uint32(sliceLen),
			Cut: cut, Codecs: []uint8{uint8(coding.Raw)},
		},
		From: from, Into: into, Parts: 1, Round: 1,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return frame
}

// mute is AD-PSGD that leaves what others ask of it without an answer, after a while.
type mute struct {
	collective.Machine
	after time.Duration
}

func (m mute) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	if e.Kind == averaging.Proposed || e.Kind == collective.Offered {
		time.Sleep(m.after)
		return actions
	}
	return m.Machine.Decide(now, e, actions)
}

// mutePool is one that takes transfers.
type mutePool struct{ mute }

func (mutePool) Traits() collective.Traits { return collective.Traits{Pools: true} }

// TestRequestsThatNobodyAnswersAreRefused: whatever a machine does not know, who asks for
// it is told no, and the peer can still close.
func TestRequestsThatNobodyAnswersAreRefused(t *testing.T) {
	pool := func(c averaging.Config) (averaging.Machine, error) {
		m, err := averaging.NewADPSGD(c)
		return mutePool{mute{Machine: collective.Of(m)}}, err
	}
	for name, c := range map[string]struct {
		machine func(averaging.Config) (averaging.Machine, error)
		frame   func(*rogue) []byte
	}{
		"parameters, of AD-PSGD": {nil, func(r *rogue) []byte { return r.offer(wire.BufferParameters, wire.BufferParameters) }},
		"a gradient, of AD-PSGD": {nil, func(r *rogue) []byte { return r.offer(wire.BufferGradient, wire.BufferSum) }},
		"a transfer":             {pool, func(r *rogue) []byte { return r.offer(wire.BufferParameters, wire.BufferParameters) }},
		"an exchange":            {pool, func(r *rogue) []byte { return r.propose(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRogueWith(t, peer.Exchange{Machine: c.machine})
				stream, frames := r.open()
				defer stream.Reset()
				began := time.Now()
				if _, err := stream.Write(c.frame(r)); err != nil {
					t.Fatal(err)
				}
				stream.SetReadDeadline(time.Now().Add(time.Hour))
				header, payload, err := frames.Next()
				var refuse wire.Refuse
				if err != nil || header.Type != wire.TypeRefuse || refuse.Decode(payload) != nil || refuse.Reason != wire.ReasonRound {
					t.Errorf("the host answers %v %v (%v), want a refusal for %v", header.Type, refuse.Reason, err, wire.ReasonRound)
				}
				r.host.Close()
				if took := time.Since(began); took > 2*peer.Stall {
					t.Errorf("answering and closing took %s", took)
				}
				if left := r.host.Kept()["exchanges under way"]; left != 0 {
					t.Errorf("%d exchanges are still under way", left)
				}
			})
		})
	}
}

// TestCloseDoesNotWaitForAMachinesAnswer: who has asked is let go when the peer has waited
// long enough, whatever keeps its machine from answering.
func TestCloseDoesNotWaitForAMachinesAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogueWith(t, peer.Exchange{Machine: func(c averaging.Config) (averaging.Machine, error) {
			m, err := averaging.NewADPSGD(c)
			return mutePool{mute{collective.Of(m), time.Hour}}, err
		}})
		stream, frames := r.open()
		defer stream.Reset()
		if _, err := stream.Write(r.propose(nil)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		closed := make(chan struct{})
		go func() {
			r.host.Close()
			close(closed)
		}()
		frames.Next()
		if waited := time.Since(began); waited > peer.Stall+time.Second {
			t.Errorf("who asked was let go after %s", waited)
		}
		synctest.Wait()
		if left := r.host.Kept()["exchanges under way"]; left != 0 {
			t.Errorf("%d exchanges are still under way", left)
		}
		<-closed
	})
}
