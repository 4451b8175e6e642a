package admit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const run = "digits"

// The run's key, and one that is none.
var key, wrong = bytes.Repeat([]byte{1}, transport.MinRunKey), bytes.Repeat([]byte{2}, transport.MinRunKey)

// at is the transport of a name on a network.
func at(t *testing.T, n *memnet.Network, name string) *memnet.Transport {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// over is a guard of the run, with the transport that it guards.
func over(t *testing.T, tr transport.Transport, c Config) (*Guard, transport.Transport) {
	t.Helper()
	c.Run = run
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g, g.Over(tr)
}

// handle serves a protocol of the run.
func handle(t *testing.T, tr transport.Transport, protocol transport.Protocol, serve func(*framed.Stream)) {
	t.Helper()
	stop, err := tr.Handle(protocol, run, func(raw transport.Stream) {
		var s framed.Stream
		s.Begin(raw, time.Minute)
		serve(&s)
		s.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

// greet answers hellos as a member with a guard does.
func greet(t *testing.T, g *Guard, tr transport.Transport) {
	t.Helper()
	handle(t, tr, transport.ProtocolHello, func(s *framed.Stream) {
		var hello wire.Hello
		if _, err := s.Receive(&hello); err != nil {
			return
		}
		if reason, detail := g.Vet(s, hello); reason != 0 {
			s.Refuse(0, reason, detail)
			return
		}
		_ = framed.Say(s, 0, wire.Welcome{FlockSteps: 9}) // the other end tells what has become of it
		s.Finish()
	})
}

// hello says hello as one that comes, and returns the flock's steps as it is told them.
func hello(t *testing.T, g *Guard, tr transport.Transport, to transport.PeerID) (steps uint64, err error) {
	t.Helper()
	raw, err := tr.Open(t.Context(), to, transport.ProtocolHello, run)
	if err != nil {
		t.Fatal(err)
	}
	var welcome wire.Welcome
	err = new(framed.Stream).Converse(t.Context(), raw, time.Minute, func(s *framed.Stream) error {
		hello := wire.Hello{Run: run, Steps: 3}
		return errors.Join(framed.Say(s, 0, hello), g.AwaitAnswer(s, hello, &welcome, &wire.Description{}))
	})
	return welcome.FlockSteps, err
}

// TestWhoIsLetIn: by a key that both have, or by none; each end can read why it is not, and
// what has been proven counts where nothing can be.
func TestWhoIsLetIn(t *testing.T) {
	for name, c := range map[string]struct {
		host, guest []byte
		listed      bool
		want        string // "": let in
	}{
		"no key":          {nil, nil, true, ""},
		"one key":         {key, key, true, ""},
		"none where due":  {key, nil, true, detailNoKey},
		"another":         {key, wrong, true, detailFalse},
		"one none is due": {nil, key, true, detailNotAsks},
		"off the list":    {key, key, false, detailList},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{})
				a, b := at(t, n, "host"), at(t, n, "guest")
				ids := []transport.PeerID{a.Self(), b.Self()}
				if !c.listed {
					ids = ids[:1]
				}
				hg, host := over(t, a, Config{Key: c.host, List: written(t, ids...)})
				gg, guest := over(t, b, Config{Key: c.guest})
				greet(t, hg, host)
				steps, err := hello(t, gg, guest, a.Self())
				refusal, _ := errors.AsType[*wire.Refusal](err)
				if in := err == nil && steps == 9; in != (c.want == "") || !in && (refusal == nil || refusal.Reason != wire.ReasonAdmission || refusal.Detail != c.want) {
					t.Errorf("let in with %d steps, %v, want %q", steps, err, c.want)
				}
				if h, g := hg.TakesPart(b.Self()), gg.TakesPart(a.Self()); c.want == "" != (h == nil) && c.host != nil || c.want == "" != (g == nil) && c.guest != nil {
					t.Errorf("to the host the guest is %v, to the guest the host %v", h, g)
				}
			})
		})
	}
}

// TestAFalseHost: one that does not know the key can neither make the proof, nor show the
// guest's own, nor do without.
func TestAFalseHost(t *testing.T) {
	nonce := [wire.NonceSize]byte{1, 2, 3}
	for name, answer := range map[string]func(theirs wire.Proof) wire.Message{
		"noise":           func(wire.Proof) wire.Message { return wire.Proof{Nonce: nonce, MAC: nonce} },
		"reflected":       func(p wire.Proof) wire.Message { return wire.Proof{Nonce: nonce, MAC: p.MAC} },
		"reflected whole": func(p wire.Proof) wire.Message { return p },
		"no proof":        func(wire.Proof) wire.Message { return wire.Welcome{FlockSteps: 1000} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{})
				mallory := at(t, n, "mallory")
				handle(t, mallory, transport.ProtocolHello, func(s *framed.Stream) {
					var proof wire.Proof
					_, err1 := s.Receive(&wire.Hello{})
					err2 := framed.Say(s, 0, wire.Challenge{Nonce: nonce})
					_, err3 := s.Receive(&proof)
					if err := errors.Join(err1, err2, err3, framed.Say(s, 0, answer(proof)), framed.Say(s, 0, wire.Welcome{FlockSteps: 1000})); err != nil {
						t.Error(err)
					}
					s.Finish()
				})
				g, guest := over(t, at(t, n, "guest"), Config{Key: key})
				if _, err := hello(t, g, guest, mallory.Self()); err == nil || name != "no proof" && !strings.Contains(err.Error(), detailFalse) {
					t.Errorf("answered with %v", err)
				}
				if g.TakesPart(mallory.Self()) == nil {
					t.Error("mallory takes part")
				}
			})
		})
	}
}

// TestARelayedProof: whoever stands between a guest and a host, with an identity of its own,
// can pass on what both say, and is let in by neither.
func TestARelayedProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		hg, host := over(t, at(t, n, "host"), Config{Key: key})
		greet(t, hg, host)
		mallory, relayed := at(t, n, "mallory"), false
		handle(t, mallory, transport.ProtocolHello, func(front *framed.Stream) {
			raw, err := mallory.Open(t.Context(), host.Self(), transport.ProtocolHello, run)
			if err != nil {
				t.Error(err)
				return
			}
			var back framed.Stream
			back.Begin(raw, time.Minute)
			pass := func(from, to *framed.Stream) error {
				header, payload, err := from.Next()
				to.Frame = append(wire.Reserve(to.Frame), payload...)
				return errors.Join(err, to.Seal(header))
			}
			hello, challenge, proof := pass(front, &back), pass(&back, front), pass(front, &back)
			relayed = errors.Join(hello, challenge, proof) == nil
			if _, err := back.Receive(&wire.Proof{}); err == nil {
				t.Error("the host gives mallory a proof")
			}
		})
		g, guest := over(t, at(t, n, "guest"), Config{Key: key})
		if _, err := hello(t, g, guest, mallory.Self()); err == nil || !relayed {
			t.Errorf("relayed: %v; the guest gets %v", relayed, err)
		}
		if hg.TakesPart(mallory.Self()) == nil || g.TakesPart(mallory.Self()) == nil {
			t.Error("mallory takes part")
		}
	})
}
