package swim

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// presence tells for which share of so many seconds a peer is a member for all of some.
func presence(victim transport.PeerID, members []*member, seconds int, each func()) float64 {
	const looks = 100
	seen := 0
	for range seconds {
		each()
		for range looks {
			time.Sleep(time.Second / looks)
			all := true
			for _, m := range members {
				all = all && m.lists(victim)
			}
			if all {
				seen++
			}
		}
	}
	return float64(seen) / float64(seconds*looks)
}

func (m *member) lists(peer transport.PeerID) bool {
	for _, r := range m.Members() {
		if r.Peer == peer {
			return true
		}
	}
	return false
}

// TestAttackForgedDeath2To32: a death that nobody could deny, since there is no higher
// incarnation, is not heard: of a stranger nor of a member, as a packet, in a push and
// pull, or as the news that the victim is alive in that incarnation.
func TestAttackForgedDeath2To32(t *testing.T) {
	for name, isMember := range map[string]bool{"a stranger": false, "a member": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				members := cluster(t, n, 5)
				within(t, gossipMissed, members, "joined", count(5))
				victim, honest := members[2], members[:4]
				liar := transport.Transport(members[4].wire)
				if !isMember {
					wire, err := n.Transport("mallory")
					if err != nil {
						t.Fatal(err)
					}
					defer wire.Close()
					liar = wire
				}
				id := victim.wire.Self()
				lies := [][]byte{
					packed(messageDead, "Incarnation", uint32(math.MaxUint32), "Node", string(id), "From", string(members[0].wire.Self())),
					packed(messageDead, "Incarnation", uint32(math.MaxUint32), "Node", string(id), "From", string(id)),
					packed(messageSuspect, "Incarnation", uint32(math.MaxUint32), "Node", string(id), "From", string(liar.Self())),
					packed(messageAlive, "Incarnation", uint32(math.MaxUint32), "Node", string(id), "Addr", []byte(advertiseIP(id)),
						"Port", uint32(advertisePort), "Meta", victim.book.own.nodeMeta(), "Vsn", []byte{1, 5, 2, 0, 0, 0}),
				}
				state := packed(0, "Name", string(id), "Addr", []byte(advertiseIP(id)), "Port", uint32(advertisePort), "Meta", victim.book.own.nodeMeta(),
					"Incarnation", uint32(math.MaxUint32), "State", byte(stateLeft), "Vsn", []byte{1, 5, 2, 0, 0, 0})[1:]
				share := presence(id, honest, 60, func() {
					for _, m := range honest {
						whisper(t, liar, m.wire.Self(), lies...)
					}
					go tell(t, liar, honest[0].wire.Self(), append(header(1, 0), state...))
				})
				t.Logf("present %.1f %% of the time", 100*share)
				if share < 1 {
					t.Errorf("the victim is a member for all others %.1f %% of the time", 100*share)
				}
				n.Crash(id)
				within(t, 20*time.Second, []*member{members[0], members[1], members[3]}, "its death is seen when it dies", count(4))
			})
		})
	}
}

// TestAttackCeilingClimbs: a member that accuses another in the highest incarnation that
// may be heard, again and again, makes it neither absent nor run out of incarnations.
func TestAttackCeilingClimbs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 5)
		within(t, gossipMissed, members, "joined", count(5))
		victim, liar, honest := members[2], members[4], members[:4]
		id := victim.wire.Self()
		const seconds = 60
		share := presence(id, honest, seconds, func() {
			victim.book.own.mu.Lock()
			ceiling := victim.book.own.ceiling
			victim.book.own.mu.Unlock()
			for _, m := range honest {
				var lies [][]byte
				for above := range uint32(2 * incarnationRoom) {
					lies = append(lies, packed(messageDead, "Incarnation", ceiling-8+above, "Node", string(id), "From", string(liar.wire.Self())))
				}
				whisper(t, liar.wire, m.wire.Self(), lies...)
			}
		})
		victim.book.own.mu.Lock()
		ceiling := victim.book.own.ceiling
		victim.book.own.mu.Unlock()
		t.Logf("present %.1f %% of the time, the ceiling is %d", 100*share, ceiling)
		if share < 1 {
			t.Errorf("the victim is a member for all others %.1f %% of the time", 100*share)
		}
		if ceiling > 4*incarnationRoom*seconds {
			t.Errorf("the ceiling is %d after %d seconds", ceiling, seconds)
		}
	})
}

// TestALongLifeAndTheNext: a new life is heard at once although it begins far below the
// incarnations of the one before, whose ceiling the others hold against it.
func TestALongLifeAndTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 4)
		within(t, gossipMissed, members, "joined", count(4))
		old := members[3]
		for i := range uint64(20 * incarnationRoom) {
			old.announce(t, 1, i)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		id := old.wire.Self()
		n.Crash(id)
		m := start(t, n, "peer3")
		m.join(t, members[0])
		highest, _ := m.book.highest(id)
		m.announce(t, highest+1, 7)
		all := append(members[:3:3], m)
		within(t, 2*time.Second, all, "the new life is seen", func(records []transport.Record) bool {
			for _, r := range records {
				if r.Peer == id {
					return r.Incarnation == highest+1 && r.Steps == 7 && len(records) == 4
				}
			}
			return false
		})
		for range 30 {
			time.Sleep(time.Second)
			within(t, 0, all, "it stays", count(4))
		}
	})
}
