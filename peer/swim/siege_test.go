package swim

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// The attacks of this file were found by a second reading, of what the gate lets through.

// aliveNews is memberlist's news that a peer is alive.
func aliveNews(id transport.PeerID, incarnation uint32, meta []byte, versions ...byte) []byte {
	return packed(messageAlive, "Incarnation", incarnation, "Node", string(id), "Addr", []byte(advertiseIP(id)),
		"Port", uint32(advertisePort), "Meta", meta, "Vsn", versions)
}

// TestAttackVersionsOfAnother: memberlist compares no memberships while any member it
// believes alive speaks other versions of its protocol than the rest: one member that says
// so of itself, or of another, would keep every joiner out.
func TestAttackVersionsOfAnother(t *testing.T) {
	for name, versions := range map[string][]byte{"old": {1, 1, 1, 0, 0, 0}, "new": {5, 5, 5, 0, 0, 0}, "of delegates": {1, 5, 2, 3, 9, 4}} {
		for who, at := range map[string]int{"itself": 3, "another": 1} {
			t.Run(name+", of "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork()
					members := cluster(t, n, 4)
					within(t, gossipMissed, members, "joined", count(4))
					liar := members[3]
					late := start(t, n, "late")
					late.announce(t, 1, 0)
					// Who is spoken of denies it, so it is said again.
					for i := range uint32(6) {
						whisper(t, liar.wire, members[0].wire.Self(), aliveNews(members[at].wire.Self(), 10+3*i, members[at].book.own.nodeMeta(), versions...))
						time.Sleep(30 * time.Millisecond)
						if err := late.Join(t.Context(), members[0].wire.Self()); err != nil {
							t.Fatalf("a newcomer does not get in: %v", err)
						}
					}
					within(t, gossipMissed, append(members, late), "all see all", count(5))
				})
			})
		}
	}
}

// TestAttackForgedCeiling: a number that is signed by nobody does not raise what a peer
// takes its own incarnation for, nor what others may say of it.
func TestAttackForgedCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 5)
		within(t, gossipMissed, members, "joined", count(5))
		victim, liar, honest := members[2], members[4], members[:4]
		id := victim.wire.Self()
		body, err := statement{Record: victim.record(1, 0), ceiling: math.MaxUint32, announced: true}.encode()
		if err != nil {
			t.Fatal(err)
		}
		forged := append(body, make([]byte, signatureSize)...)
		share := presence(id, honest, 30, func() {
			for _, m := range honest {
				whisper(t, liar.wire, m.wire.Self(), aliveNews(id, math.MaxUint32, forged, 1, 5, 2, 0, 0, 0),
					packed(messageDead, "Incarnation", uint32(math.MaxUint32), "Node", string(id), "From", string(liar.wire.Self())))
			}
			victim.announce(t, 1, 0)
		})
		victim.book.own.mu.Lock()
		ceiling := victim.book.own.ceiling
		victim.book.own.mu.Unlock()
		t.Logf("present %.1f %% of the time, its ceiling is %d", 100*share, ceiling)
		if share < 1 || ceiling > 1<<16 {
			t.Errorf("the victim is a member for all others %.1f %% of the time, and signs the ceiling %d", 100*share, ceiling)
		}
	})
}

// TestAttackOnlookerOfAnEarlierLife: what a peer said in a life before, when it looked on,
// does not hide it once it is back.
func TestAttackOnlookerOfAnEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 4)
		within(t, gossipMissed, members, "joined", count(4))
		before := start(t, n, "victim")
		kept := before.book.own.nodeMeta()
		before.join(t, members[0])
		before.announce(t, 1, 0)
		within(t, gossipMissed, members, "a life", count(5))
		id := before.wire.Self()
		before.Close()
		before.wire.Close()
		within(t, gossipMissed, members, "its end", count(4))
		victim := start(t, n, "victim")
		victim.join(t, members[0])
		victim.announce(t, 2, 0)
		within(t, gossipMissed, members, "the next life", count(5))
		liar, honest := members[3], members[:3]
		share := presence(id, honest, 30, func() {
			for _, m := range honest {
				whisper(t, liar.wire, m.wire.Self(), aliveNews(id, 1, kept, 1, 5, 2, 0, 0, 0))
			}
		})
		t.Logf("present %.1f %% of the time", 100*share)
		if share < 1 {
			t.Errorf("the victim is a member for all others %.1f %% of the time", 100*share)
		}
	})
}

// TestAttackOnlookersOfForgottenLives: what a peer said when it looked on, in lives that
// this book has not seen end, hides it once, until it announces its next record, and then
// no more.
func TestAttackOnlookersOfForgottenLives(t *testing.T) {
	b := newBook(trusting{}, testRun, 1, func() {})
	onlooker := func(life uint64) []byte {
		s := statement{life: life}
		s.Peer, s.Run = "victim", testRun
		meta, err := seal(trusting{}, s)
		if err != nil {
			t.Fatal(err)
		}
		return meta
	}
	b.meet("victim")
	announce := func(life, sequence uint64) {
		s := sampleStatement("victim")
		s.life, s.Incarnation, s.Sequence = life, 100, sequence
		meta, _ := seal(trusting{}, s)
		if err := b.admit("victim", meta); err != nil {
			t.Fatal(err)
		}
	}
	announce(99, 1)
	b.setAlive("victim", true)
	hidden := 0
	for round := range uint64(50) { // five old lives, in turn, one after each announcement
		_ = b.admit("victim", onlooker(1+round%5))
		if len(b.members()) == 0 {
			hidden++
		}
		announce(99, 2+round)
	}
	if hidden > 1 {
		t.Errorf("hidden after %d of 50 announcements", hidden)
	}
}

// verifier counts the signatures that a member has verified.
type verifier struct {
	transport.Transport
	verified atomic.Int64
}

func (v *verifier) Verify(peer transport.PeerID, message, signature []byte) bool {
	v.verified.Add(1)
	return v.Transport.Verify(peer, message, signature)
}

// TestAttackSignatures: the nodes in conversations cost no more signatures than the
// messages in packets, and few of somebody who is no member yet.
func TestAttackSignatures(t *testing.T) {
	const seconds = 10
	for name, c := range map[string]struct {
		member bool
		most   int64
	}{
		"a stranger": {false, introductionBurst + 2*seconds*introductionsPerSecond},
		"a member":   {true, messageBurst + 2*seconds*messagesPerSecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				wire, err := n.Transport("host")
				if err != nil {
					t.Fatal(err)
				}
				defer wire.Close()
				counted := &verifier{Transport: wire}
				host, err := New(Config{Transport: counted, Run: testRun})
				if err != nil {
					t.Fatal(err)
				}
				defer host.Close()
				liar := start(t, n, "liar")
				if c.member {
					liar.announce(t, 1, 0)
					liar.join(t, &member{Membership: host, wire: wire})
				}
				said := header(maxStates, 0)
				for i := range uint64(maxStates) {
					body, err := statement{Record: liar.record(2, i), announced: true}.encode()
					if err != nil {
						t.Fatal(err)
					}
					id := liar.wire.Self()
					said = append(said, packed(0, "Name", string(id), "Addr", []byte(advertiseIP(id)), "Port", uint32(advertisePort), "Meta", append(body, make([]byte, signatureSize)...),
						"Incarnation", uint32(1), "State", byte(stateAlive), "Vsn", []byte{1, 5, 2, 0, 0, 0})[1:]...)
				}
				for range seconds {
					tell(t, liar.wire, wire.Self(), said)
					time.Sleep(time.Second)
				}
				verified := counted.verified.Load()
				t.Logf("%d signatures verified in %d s", verified, seconds)
				if verified > c.most {
					t.Errorf("%d signatures were verified in %d s, want %d at most", verified, seconds, c.most)
				}
			})
		})
	}
}

// TestAttackFalseAnswers: a ping is answered by whom it went to, or nobody: a stranger
// that answers for the dead would keep them among the living.
func TestAttackFalseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		members := cluster(t, n, 2)
		within(t, gossipMissed, members, "joined", count(2))
		mallory, err := n.Transport("mallory")
		if err != nil {
			t.Fatal(err)
		}
		defer mallory.Close()
		n.Crash(members[1].wire.Self())
		var answers [][]byte
		for i := range uint32(240) {
			answers = append(answers, packed(messageAck, "SeqNo", i))
		}
		seconds := 0
		for ; seconds < 60 && len(members[0].Members()) == 2; seconds++ {
			for range 2 {
				whisper(t, mallory, members[0].wire.Self(), compound(answers))
				time.Sleep(time.Second / 2)
			}
		}
		t.Logf("the death was seen after %d s", seconds)
		if seconds > 20 {
			t.Errorf("a member that has died is one for %d s", seconds)
		}
	})
}

// TestAttackPlacesForConversations: strangers of one block of addresses that begin
// conversations and do not end them keep no joiner of another from its own.
func TestAttackPlacesForConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		host := start(t, n, "host")
		host.announce(t, 1, 0)
		stop := make(chan struct{})
		for i := range 2 * maxAllSyncs {
			liar, err := n.Transport(fmt.Sprint("liar", i))
			if err != nil {
				t.Fatal(err)
			}
			defer liar.Close()
			liar.SetBlock("192.0.2.0/24")
			go func() {
				for {
					s, err := liar.Open(t.Context(), host.wire.Self(), transport.ProtocolSwim, testRun)
					if err == nil {
						s.Write(append([]byte{kindSync}, header(1, 0)...))
					}
					select {
					case <-stop:
						return
					case <-time.After(1200 * time.Millisecond):
					}
				}
			}()
		}
		time.Sleep(20 * time.Second)
		got := 0
		for i := range 8 {
			late := start(t, n, fmt.Sprint("late", i))
			late.announce(t, 1, 0)
			if err := late.Join(t.Context(), host.wire.Self()); err == nil {
				got++
			}
		}
		close(stop)
		time.Sleep(2 * time.Second)
		t.Logf("%d of 8 newcomers get in", got)
		if got < 8 {
			t.Errorf("%d of 8 newcomers get in", got)
		}
	})
}
