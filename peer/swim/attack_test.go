package swim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// gateway is a member of two networks with one identity: those behind it can be
// reached through nobody else, and it answers for them.
type gateway struct {
	transport.Transport
	inside transport.Transport
	behind map[transport.PeerID]bool
}

func (g *gateway) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	if g.behind[to] {
		return g.inside.Open(ctx, to, protocol, run)
	}
	return g.Transport.Open(ctx, to, protocol, run)
}

func (g *gateway) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	stopInside, err := g.inside.Handle(protocol, run, handler)
	if err != nil {
		return nil, err
	}
	stop, err := g.Transport.Handle(protocol, run, handler)
	return func() { stopInside(); stop() }, err
}

// besiege has a member of a cluster bring so many made-up ones, who really speak the
// protocol and whom it vouches for, but whom nobody else can reach.
func besiege(t *testing.T, n *memnet.Network, cluster []*member, fakes int, flags uint8) {
	t.Helper()
	hidden := newNetwork()
	outside, err := n.Transport("mallory")
	if err != nil {
		t.Fatal(err)
	}
	inside, err := hidden.Transport("mallory")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{Transport: outside, inside: inside, behind: make(map[transport.PeerID]bool)}
	crew := make([]*member, fakes)
	for i := range crew {
		crew[i] = start(t, hidden, fmt.Sprint("fake", i))
		g.behind[crew[i].wire.Self()] = true
		record := crew[i].record(1, 0)
		record.Flags = flags
		if err := crew[i].Announce(record); err != nil {
			t.Fatal(err)
		}
	}
	m, err := New(Config{Transport: g, Run: testRun})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); outside.Close(); inside.Close() })
	if err := m.Announce(transport.Record{Peer: outside.Self(), Run: testRun, Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	for _, f := range crew {
		if err := f.Join(t.Context(), outside.Self()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Join(t.Context(), cluster[0].wire.Self()); err != nil {
		t.Fatal(err)
	}
}

// TestAttackFakeMembers: made-up members, for whom one that is real vouches, are no
// members for anybody who has not met them, and real joiners still get in.
func TestAttackFakeMembers(t *testing.T) {
	for name, c := range map[string]struct {
		flags      uint8
		ever, last int // most members that an honest one may see
	}{
		"that cannot be dialled": {0, 7, 7},
		"that say so":            {transport.FlagUnreachable, 7 + 7, 7 + 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fakes := 25
				if underRace {
					fakes = 12 // twice as many still as may be believed
				}
				n := newNetwork()
				honest := cluster(t, n, 6)
				within(t, gossipMissed, honest, "joined", count(6))
				besiege(t, n, honest, fakes, c.flags)
				most := 0
				for range 300 {
					time.Sleep(100 * time.Millisecond)
					for _, m := range honest {
						most = max(most, len(m.Members()))
					}
				}
				if most > c.ever {
					t.Errorf("an honest member has seen %d members, with %d made-up ones; at most %d are bearable", most, fakes, c.ever)
				}
				for _, m := range honest {
					if got := len(m.Members()); got > c.last {
						t.Errorf("an honest member sees %d a minute later, want at most %d", got, c.last)
					}
					if size := m.remembered(); size > minCrowd+2*8+fakes {
						t.Errorf("it remembers %d peers", size)
					}
				}
				late := start(t, n, "late")
				late.announce(t, 1, 0)
				late.join(t, honest[2])
				within(t, gossipMissed, honest, "a real newcomer is seen", func(records []transport.Record) bool {
					for _, r := range records {
						if r.Peer == late.wire.Self() {
							return true
						}
					}
					return false
				})
				t.Logf("most members ever seen: %d", most)
			})
		})
	}
}

// TestAttackFlood: however many identities are made up, few are remembered, none in
// the place of one that was met, and refusing them costs no signature.
func TestAttackFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := &counting{}
		b := newBook(counted, testRun, 1, func() {})
		for i := range 10 {
			id := transport.PeerID(fmt.Sprint("honest", i))
			b.meet(id)
			if err := admitted(t, b, id); err != nil {
				t.Fatal(err)
			}
			b.setAlive(id, true)
		}
		counted.verified = 0
		refused := 0
		for i := range 20_000 {
			id := transport.PeerID(fmt.Sprint("fake", i))
			switch err := admitted(t, b, id); {
			case errors.Is(err, errCrowd):
				refused++
			case err != nil:
				t.Fatal(err)
			default:
				b.setAlive(id, true)
			}
		}
		if kept := len(b.entries) - 10; kept > minCrowd || refused != 20_000-kept {
			t.Errorf("%d of 20,000 made-up members are remembered, %d refused", kept, refused)
		}
		if counted.verified > minCrowd {
			t.Errorf("%d signatures were verified", counted.verified)
		}
		if got := len(b.members()); got > 10+10 { // as they say that they cannot be dialled
			t.Errorf("%d members, of whom 10 were met", got)
		}
		b.meet("newcomer")
		if err := admitted(t, b, "newcomer"); err != nil {
			t.Errorf("a newcomer that has come in person: %v", err)
		}
		b.setAlive("newcomer", true)
		if got := len(b.members()); got != 11+11 {
			t.Errorf("%d members, want the 11 that were met and as many of the others", got)
		}
	})
}

type counting struct {
	trusting
	verified int
}

func (c *counting) Verify(transport.PeerID, []byte, []byte) bool {
	c.verified++
	return true
}

// TestAttackRecords: no record is believed that is replayed, forged, under another's
// name, of another run, or larger than memberlist bears.
func TestAttackRecords(t *testing.T) {
	self, alice, mallory := newIdentity(t, "self"), newIdentity(t, "alice"), newIdentity(t, "mallory")
	sealed := func(by transport.Identity, change func(*statement)) []byte { return forge(t, by, change) }
	asIs := func(*statement) {}
	for name, c := range map[string]struct {
		as   transport.PeerID
		meta []byte
		want error
	}{
		"replayed":             {alice.Self(), sealed(alice, func(s *statement) { s.Sequence-- }), errOldRecord},
		"replayed life":        {alice.Self(), sealed(alice, func(s *statement) { s.Incarnation--; s.Sequence += 9 }), errOldRecord},
		"forged":               {alice.Self(), sealed(mallory, func(s *statement) { s.Sequence++ }), errSignature},
		"another's name":       {mallory.Self(), sealed(alice, asIs), errSignature},
		"another run":          {mallory.Self(), sealed(mallory, func(s *statement) { s.Run = "letters" }), errOtherRun},
		"513 bytes":            {mallory.Self(), make([]byte, memberlist.MetaMaxSize+1), errOversize},
		"64 KiB":               {mallory.Self(), make([]byte, 64<<10), errOversize},
		"of this peer, forged": {self.Self(), sealed(mallory, func(s *statement) { s.Incarnation = 1 << 30 }), errSignature},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(self, testRun, 1, func() {})
			b.meet(alice.Self())
			b.meet(mallory.Self())
			if err := b.admit(alice.Self(), sealed(alice, asIs)); err != nil {
				t.Fatal(err)
			}
			b.setAlive(alice.Self(), true)
			if err := b.admit(c.as, c.meta); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			members := b.members()
			if len(members) != 1 || members[0].Sequence != sampleStatement("").Sequence {
				t.Errorf("members are %+v, want alice as she was", members)
			}
			if _, lived := b.highest(self.Self()); lived {
				t.Error("an earlier life of this peer is believed in")
			}
		})
	}
}

// TestAttackPackets: one peer's packets are taken at a bounded rate, however many it
// sends, and its streams do not add up.
func TestAttackPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAllowance().packets
		taken := 0
		for range 100 { // ten seconds
			for range 1000 {
				if a.AllowN(time.Now(), 1) {
					taken++
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if most := packetBurst + 10*packetsPerSecond; taken > most || taken < most*9/10 {
			t.Errorf("%d of 100,000 packets in ten seconds were taken, at most %d should be", taken, most)
		}
		tr := bare(t, newNetwork(), "host")
		taken = 0
		var pings [][]byte
		for range 250 {
			pings = append(pings, packed(messagePing, "SeqNo", uint32(1), "Node", "", "SourceNode", "liar"))
		}
		for range 10 * packetBurst { // two seconds
			if heard := tr.in.examine(compound(pings), tr.in.speaker("liar"), time.Now()); heard != nil {
				taken += len(pings)
			}
			time.Sleep(time.Second / packetsPerSecond / 10)
		}
		if most := messageBurst + 2*messagesPerSecond; taken > most || taken < most/2 {
			t.Errorf("%d of 500,000 messages in two seconds were taken, at most %d should be", taken, most)
		}
		time.Sleep(time.Hour)
		for range 2 * packetBurst {
			a.AllowN(time.Now(), 1)
		}
		if a.AllowN(time.Now(), 1) {
			t.Error("an hour of silence has saved up more than a burst")
		}
	})
}
