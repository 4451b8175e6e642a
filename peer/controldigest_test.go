package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// Every member knows what all others are about, as they say it themselves, and those
// who have gone are left out.
func TestDigestsTellOfEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 8, nil)
		r.trainAll()
		time.Sleep(20 * time.Second)
		for i, p := range r.Peers {
			digests := p.Digests()
			if len(digests) != 8 {
				t.Fatalf("peer %d has %d digests", i, len(digests))
			}
			all, counted := uint64(0), uint64(0)
			for k, d := range digests {
				counted += d.Exchanges
				if k > 0 && d.Peer <= digests[k-1].Peer {
					t.Error("digests are out of order")
				}
				if d.State != peer.StateTraining || d.Steps < 1000 || d.FlockSteps < 8000 || d.Exchanges == 0 || math.IsNaN(d.Loss) || d.ConsensusDistance <= 0 {
					t.Errorf("peer %d has %+v", i, d)
				}
				if d.Samples < 80 || d.Samples > 120 { // one a step, a step each 10 ms
					t.Errorf("peer %d: %s learns from %v samples a second", i, d.Peer.Short(), d.Samples)
				}
				var began uint64
				for _, m := range d.Partners {
					if m.Partner == "" || m.Partner == d.Peer {
						t.Errorf("peer %d: %s has met %+v", i, d.Peer.Short(), m)
					}
					began += m.Exchanges
				}
				all += began
				if began > d.Exchanges {
					t.Errorf("peer %d: %s began %d exchanges of %d", i, d.Peer.Short(), began, d.Exchanges)
				}
				if age := time.Since(d.Heard); age > peer.DefaultDigests+time.Second {
					t.Errorf("peer %d: the digest of %s is %v old", i, d.Peer.Short(), age)
				}
			}
			if ratio := float64(all) / float64(counted); ratio < 0.45 || ratio > 0.55 { // both sides count an exchange, one begins it
				t.Errorf("peer %d: %d exchanges with partners, %d counted", i, all, counted)
			}
		}
		r.send(0, peer.Command{Kind: peer.Pause})
		time.Sleep(2 * peer.DefaultDigests)
		for _, d := range r.Peers[1].Digests() {
			if d.State != peer.StatePaused || d.Samples > 80 {
				t.Errorf("in a pause: %+v", d)
			}
		}
		r.Peers[7].Close()
		time.Sleep(time.Second)
		if n := len(r.Peers[0].Digests()); n != 7 {
			t.Errorf("%d digests after one has gone", n)
		}
		r.end()
	})
}

// All members together publish at most one digest in DigestShare, however many.
func TestDigestsOfALargeFlockAreBoundedInAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const peers = 24 / sparing
		r := startRuled(t, peers, nil)
		ear := r.publisher(r.outsider("ear"))
		time.Sleep(time.Minute)
		for len(ear.heard) > 0 {
			<-ear.heard
		}
		const watched = 2 * time.Minute
		time.Sleep(watched)
		most := int(watched/peer.DigestShare) + peers
		if n := len(ear.heard); n < most/2 || n > most {
			t.Errorf("%d digests in %v, at most %d are allowed", n, watched, most)
		}
		for i, p := range r.Peers {
			if s := p.Control(); s.Hasty > 0 || s.Forged > 0 || s.Malformed > 0 {
				t.Errorf("peer %d: %+v", i, s)
			}
			if n := len(p.Digests()); n != peers {
				t.Errorf("peer %d has %d digests", i, n)
			}
		}
	})
}

// A digest is taken only of a member, signed by itself, newer than the last, and not
// sooner than a member may send one.
func TestFalseDigestsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 3, func(_ int, c *peer.Config) { c.Network.Control.Digests = time.Minute })
		mallory := r.outsider("mallory")
		topic := r.publisher(mallory)
		time.Sleep(70 * time.Second) // everybody has told of itself, and will not soon again
		victim := r.Peers[1].Self()
		digest := func(sequence uint64, d wire.Digest) wire.Control {
			return wire.Control{Kind: wire.ControlDigest, Sequence: sequence, Run: peertest.Run, Author: string(victim), Body: d.Append(nil)}
		}
		false1 := digest(1000, wire.Digest{Incarnation: 1, Steps: 7})
		stranger := digest(1, wire.Digest{Incarnation: 1})
		stranger.Author = string(mallory.Self())
		broken := digest(1000, wire.Digest{Incarnation: 1})
		broken.Body = broken.Body[1:]
		for name, c := range map[string]struct {
			message []byte
			count   func(peer.ControlStats) uint64
		}{
			"forged":       {signedBy(t, mallory, false1), func(s peer.ControlStats) uint64 { return s.Forged }},
			"a stranger's": {signedBy(t, mallory, stranger), func(s peer.ControlStats) uint64 { return s.Foreign }},
			"malformed":    {signedBy(t, mallory, broken), func(s peer.ControlStats) uint64 { return s.Malformed }},
			"old":          {signedBy(t, mallory, digest(1, wire.Digest{Incarnation: 1})), func(s peer.ControlStats) uint64 { return s.Known }},
		} {
			time.Sleep(time.Second)
			before := c.count(r.Peers[0].Control())
			if err := topic.Publish(c.message); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			s := r.Peers[0].Control()
			if c.count(s) != before+1 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		for _, d := range r.Peers[0].Digests() {
			if d.Peer == victim && d.Steps == 7 || d.Peer == mallory.Self() {
				t.Errorf("believed: %+v", d)
			}
		}
	})
}
