package peer_test

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// frames speaks the hello protocol by hand.
type frames struct {
	seam.Stream
	*wire.Reader
}

func byHand(s seam.Stream) frames { return frames{s, wire.NewReader(s, wire.MaxHandshake)} }

// said reads a frame into a message; false if there is none, or another one.
func (f frames) said(m interface {
	wire.Message
	Decode([]byte) error
}) bool {
	h, payload, err := f.Next()
	return err == nil && h.Type == m.Type() && m.Decode(payload) == nil
}

func tell[M wire.Message](f frames, m M) {
	if frame, err := wire.Pack(nil, 0, m); err == nil {
		_, _ = f.Write(frame)
	}
}

var runKey = bytes.Repeat([]byte{7}, 32)

// A host that does not know the run's key can neither make the proof nor show the
// newcomer's own, and gives the newcomer no model.
func TestAttackFalseHost(t *testing.T) {
	for name, answer := range map[string]func(nonce [32]byte, theirs wire.Proof) wire.Proof{
		"noise":           func(nonce [32]byte, _ wire.Proof) wire.Proof { return wire.Proof{Nonce: nonce, MAC: nonce} },
		"reflected":       func(nonce [32]byte, p wire.Proof) wire.Proof { return wire.Proof{Nonce: nonce, MAC: p.MAC} },
		"reflected whole": func(_ [32]byte, p wire.Proof) wire.Proof { return p },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{})
				mallory := place(t, n, "mallory")
				nonce := [32]byte{1, 2, 3}
				_, err := mallory.Handle(seam.ProtocolHello, "digits", func(s seam.Stream) {
					defer s.Close()
					f := byHand(s)
					var proof wire.Proof
					if !f.said(&wire.Hello{}) {
						return
					}
					tell(f, wire.Challenge{Nonce: nonce})
					if f.said(&proof) {
						tell(f, answer(nonce, proof))
						tell(f, wire.Welcome{FlockSteps: 1000})
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				guest := guarded(t, place(t, n, "guest"), peer.Admission{RunKey: runKey}, nil, "mem:mallory")
				if err := step(t, guest, idle); !errors.Is(err, seam.ErrNotAdmitted) || !strings.Contains(err.Error(), "is false") {
					t.Errorf("the guest's step: %v", err)
				}
			})
		})
	}
}

// Whoever stands between a newcomer and a host, with an identity of its own, can pass
// on what both say, and is let in by neither.
func TestAttackRelayedProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host := guarded(t, place(t, n, "host"), peer.Admission{RunKey: runKey}, nil)
		mallory := place(t, n, "mallory")
		var relayed, welcomed atomic.Int64
		_, err := mallory.Handle(seam.ProtocolHello, "digits", func(s seam.Stream) {
			defer s.Close()
			to, err := mallory.Open(t.Context(), host.Self(), seam.ProtocolHello, "digits")
			if err != nil {
				return
			}
			defer to.Close()
			front, back := byHand(s), byHand(to)
			var hello wire.Hello
			var challenge wire.Challenge
			var proof wire.Proof
			if !front.said(&hello) {
				return
			}
			tell(back, hello)
			if !back.said(&challenge) {
				return
			}
			tell(front, challenge)
			if !front.said(&proof) {
				return
			}
			relayed.Add(1)
			tell(back, proof)
			if back.said(&proof) {
				welcomed.Add(1)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		guest := guarded(t, place(t, n, "guest"), peer.Admission{RunKey: runKey}, nil, "mem:mallory")
		time.Sleep(20 * time.Second)
		if relayed.Load() == 0 || welcomed.Load() != 0 {
			t.Errorf("%d proofs were passed on, %d times that let mallory in", relayed.Load(), welcomed.Load())
		}
		if h, g := host.Stats().Members, guest.Stats().Members; h != 1 || g != 1 {
			t.Errorf("host and guest see %d and %d members", h, g)
		}
	})
}

// A stream of another protocol that begins without a mark, or with another's, never
// reaches those that serve it.
func TestAttackStreamsWithoutAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host := guarded(t, place(t, n, "host"), peer.Admission{RunKey: runKey}, nil)
		mallory := place(t, n, "mallory")
		for _, protocol := range []seam.Protocol{seam.ProtocolExchange, seam.ProtocolState, seam.ProtocolSwim} {
			for name, mark := range map[string][]byte{"none": nil, "short": make([]byte, 5), "false": make([]byte, 4096)} {
				s, err := mallory.Open(t.Context(), host.Self(), protocol, "digits")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = s.Write(mark)
				s.SetReadDeadline(time.Now().Add(30 * time.Second))
				began := time.Now()
				if k, err := s.Read(make([]byte, 1)); err == nil || k > 0 {
					t.Errorf("%s, mark %s: got an answer", protocol, name)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%s, mark %s: kept for %v", protocol, name, took)
				}
				s.Reset()
			}
		}
	})
}
