package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// dim is a membership that lags for ever: it takes everybody else for passive until
// it has heard from them by hand, and knows of a member that nobody but it can see
// until others compare with it.
type dim struct {
	transport.Membership
	mu       sync.Mutex
	heard    map[transport.PeerID]bool
	ghosts   []transport.Record
	own      transport.Record
	compared int
	partner  *dim
}

func newDim(m transport.Membership, ghosts ...transport.Record) *dim {
	return &dim{Membership: m, heard: map[transport.PeerID]bool{}, ghosts: ghosts}
}

func (d *dim) Announce(r transport.Record) error {
	d.mu.Lock()
	d.own = r
	d.mu.Unlock()
	return d.Membership.Announce(r)
}

func (d *dim) Members() []transport.Record {
	records := d.Membership.Members()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range records {
		if r.Peer != d.own.Peer && !d.heard[r.Peer] {
			records[i].Role = uint8(topology.Passive)
		}
	}
	return append(records, d.ghosts...)
}

// courierDim is a dim one that can hand records over.
type courierDim struct{ *dim }

func (d courierDim) Signed() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, _ := json.Marshal(d.own)
	return text
}

func (d courierDim) Received(from transport.PeerID, signed []byte) (bool, error) {
	var r transport.Record
	if err := json.Unmarshal(signed, &r); err != nil || r.Peer != from {
		return false, fmt.Errorf("no record of %s: %v", from, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	news := !d.heard[from]
	d.heard[from] = true
	return news, nil
}

func (d courierDim) Compare(context.Context, transport.PeerID) error {
	d.partner.mu.Lock()
	ghosts := d.partner.ghosts
	d.partner.mu.Unlock()
	d.mu.Lock()
	d.ghosts = ghosts
	d.compared++
	own := d.own
	d.mu.Unlock()
	return d.Announce(own) // so that everybody looks again
}

// quarrel trains two peers that disagree on each other's role for a virtual minute:
// the first is active, since it alone knows of a third, passive one; the second takes
// it for passive and so is active too. It returns the second, and its view.
func quarrel(t *testing.T, names [2]string, wrap func(*dim) transport.Membership) (asker *peer.Peer, view *dim) {
	network := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
	ghost, err := network.Transport("ghost")
	if err != nil {
		t.Fatal(err)
	}
	defer ghost.Close()
	var peers [2]*peer.Peer
	var views [2]*dim
	for i, name := range names {
		config := peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, name, "digits")}
		shortRun(i, &config)
		config.Training.Work = peer.Work{}
		views[i] = newDim(config.Network.Membership)
		if i == 0 {
			views[i].ghosts = []transport.Record{{Peer: ghost.Self(), Run: "digits", Incarnation: 1, Role: uint8(topology.Passive)}}
		} else {
			config.Join = peers[0].JoinAddresses()[:1]
			views[i].partner = views[0]
		}
		config.Network.Membership = wrap(views[i])
		peers[i] = start(t, config)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute/sparing)
	defer cancel()
	var training sync.WaitGroup
	for i, p := range peers {
		training.Go(func() {
			for p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
				return atPace(20*time.Millisecond, towards)(i, x, grad)
			}) == nil {
			}
		})
	}
	training.Wait()
	s := peers[1].Stats()
	t.Logf("%s and %s are %s and %s: %d refusals, %d exchanges", names[0], names[1], peers[0].Stats().Role, s.Role, s.Exchanges.Refused, s.Exchanges.Completed())
	if s.Role == "passive" && s.Exchanges.Completed() == 0 {
		t.Error("they never exchange although their roles would let them")
	}
	return peers[1], views[1]
}

// One refusal settles a quarrel about roles. Where the record that comes with it
// changes the view, that does it; where it tells nothing new, since the two know
// other members, a comparison of what they know does.
func TestOneRefusalSettlesAQuarrel(t *testing.T) {
	t.Parallel()
	byHand := func(d *dim) transport.Membership { return courierDim{d} }
	byGossip := func(d *dim) transport.Membership { return d }
	for _, c := range []struct {
		names    [2]string
		compared int
	}{
		{[2]string{"bob", "alice"}, 0},
		{[2]string{"alice", "bob"}, 1}, // by both views it is the other that should change
	} {
		t.Run(c.names[0]+" is active", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asker, view := quarrel(t, c.names, byHand)
				s := asker.Stats()
				if s.Exchanges.Refused != uint64(1+c.compared) || view.compared != c.compared {
					t.Errorf("%d refusals and %d comparisons in a minute, want one refusal, one more before a comparison, and %d of these",
						s.Exchanges.Refused, view.compared, c.compared)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				asker, _ := quarrel(t, c.names, byGossip)
				if s := asker.Stats(); s.Exchanges.Refused < 100 {
					t.Errorf("%d refusals with records that do not pass from hand to hand, want many: the quarrel is none", s.Exchanges.Refused)
				}
			})
		})
	}
}
