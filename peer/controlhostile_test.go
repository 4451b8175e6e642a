package peer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/standing"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/stats"
)

const controlTopic = "murmuration/1/" + peertest.Run

// signedBy is a control message signed by a transport.
func signedBy(t *testing.T, by seam.Identity, m wire.Control) []byte {
	t.Helper()
	signature, err := by.Sign(m.Signed())
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Signature[:], signature)
	return m.Append(nil)
}

func pauseOf(author seam.PeerID, sequence uint64) wire.Control {
	return wire.Control{
		Kind: wire.ControlHold, Sequence: sequence, Run: peertest.Run, Author: string(author),
		Body: []byte{1, 0},
	}
}

// publisher takes part in a topic from outside and hears what goes round.
type publisher struct {
	seam.Topic
	heard chan string
}

func (r *ruled) publisher(at seam.Transport) publisher {
	r.t.Helper()
	p := publisher{heard: make(chan string, 1000)}
	topic, err := at.Topic(controlTopic, nil, func(_ seam.PeerID, message []byte) seam.Verdict {
		p.heard <- string(message)
		return seam.Drop
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { topic.Close() })
	p.Topic = topic
	return p
}

// What is forged, replayed, oversize, malformed or of another run or operator is
// ignored, counted, and not passed on, however it comes.
func TestHostileControlMessagesAreIgnoredAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, func(_ int, c *peer.Config) { c.Network.Control.Digests = -1 })
		mallory := r.outsider("mallory")
		topic := r.publisher(mallory)
		ear := r.publisher(r.outsider("ear"))
		operator := r.operator.Transport

		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(time.Second)
		r.send(0, control.Command{Kind: control.Resume})
		time.Sleep(time.Second)
		first := <-ear.heard // the pause, which a resume has replaced
		for len(ear.heard) > 0 {
			<-ear.heard
		}
		forged := pauseOf(operator.Self(), 100)
		elsewhere := pauseOf(operator.Self(), 100)
		elsewhere.Run = "elsewhere"
		flipped := signedBy(t, operator, pauseOf(operator.Self(), 99))
		flipped[3] ^= 1 // the sequence
		cases := []struct {
			name    string
			message []byte
			count   func(stats.Control) uint64
		}{
			{"replayed", []byte(first), func(s stats.Control) uint64 { return s.Known }},
			{"forged", signedBy(t, mallory, forged), func(s stats.Control) uint64 { return s.Forged }},
			{"altered", flipped, func(s stats.Control) uint64 { return s.Forged }},
			{"of another run", signedBy(t, operator, elsewhere), func(s stats.Control) uint64 { return s.Foreign }},
			{"of another operator", signedBy(t, mallory, pauseOf(mallory.Self(), 100)), func(s stats.Control) uint64 { return s.Foreign }},
			{"oversize", make([]byte, wire.MaxControl+1), func(s stats.Control) uint64 { return s.Oversize }},
			{"noise", []byte("noise"), func(s stats.Control) uint64 { return s.Malformed }},
		}
		for _, c := range cases {
			var before []uint64
			for _, p := range r.Peers {
				before = append(before, c.count(p.Stats().Control))
			}
			if err := topic.Publish(c.message); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			time.Sleep(time.Second)
			for i, p := range r.Peers {
				s := p.Stats().Control
				if c.name != "replayed" && c.count(s) != before[i]+1 { // what was seen before does not even arrive
					t.Errorf("%s: peer %d counts %d, before %d", c.name, i, c.count(s), before[i])
				}
				if s.Paused {
					t.Fatalf("%s: peer %d obeys", c.name, i)
				}
			}
			var refused *wire.Refusal
			_, err := standing.Said().Ask(t.Context(), mallory, peertest.Run, r.Peers[0].Self(), [][]byte{c.message}, peer.Stall)
			if c.name != "replayed" && c.name != "oversize" && err == nil {
				t.Errorf("%s: taken on a stream", c.name)
			}
			if c.name == "of another operator" && (!errors.As(err, &refused) || refused.Reason != wire.ReasonOperator) {
				t.Errorf("%s: refused with %v", c.name, err)
			}
			if r.Peers[0].Stats().Control.Paused {
				t.Fatalf("%s: obeyed on a stream", c.name)
			}
		}
		time.Sleep(20 * time.Second)
		direct := len(cases) // the ear is mallory's neighbour too
		if n := len(ear.heard); n > direct {
			t.Errorf("%d messages came round, of which mallory said %d", n, direct)
		}
	})
}

// A peer without an operator obeys nobody, says so to who asks it to, and stays in
// the flock.
func TestPeerWithoutOperatorObeysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 3, func(i int, c *peer.Config) {
			if i == 1 {
				c.Network.Control.Operator = ""
			}
		})
		if _, err := r.operator.Send(t.Context(), r.Peers[1].Self(), control.Command{Kind: control.Pause}); !errors.Is(err, control.ErrOperator) {
			t.Errorf("a peer without an operator answers %v", err)
		}
		r.send(0, control.Command{Kind: control.Pause})
		time.Sleep(30 * time.Second)
		if s := r.Peers[1].Stats().Control; s.Paused || s.Unasked == 0 {
			t.Errorf("the peer without an operator: %+v", s)
		}
		if !r.Peers[2].Stats().Control.Paused {
			t.Error("the third peer was not reached")
		}
	})
}

// topicless is a transport that has no topics.
type topicless struct{ seam.Transport }

func (topicless) Topic(string, func(seam.PeerID) bool, seam.TopicHandler) (seam.Topic, error) {
	return nil, seam.ErrNoTopics
}

// Without a topic, members that are asked tell what the operator has said.
func TestWordSpreadsWithoutATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, func(_ int, c *peer.Config) { c.Network.Transport = topicless{c.Network.Transport} })
		r.send(0, control.Command{Kind: control.Pause})
		began := time.Now()
		for i, p := range r.Peers {
			for !p.Stats().Control.Paused {
				if time.Sleep(time.Second); time.Since(began) > 2*time.Minute {
					t.Fatalf("peer %d has not heard of it in %v", i, time.Since(began))
				}
			}
		}
		t.Logf("everybody has heard after %v", time.Since(began))
	})
}
