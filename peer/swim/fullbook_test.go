package swim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func filled(t *testing.T, n int) *book {
	b := newBook(trusting{}, testRun, 1, func() {})
	for i := range n {
		id := transport.PeerID(fmt.Sprint("peer", i))
		b.meet(id)
		if err := admitted(t, b, id); err != nil {
			t.Fatal(err)
		}
		b.setAlive(id, true)
	}
	return b
}

// TestAStrangerThatGaveWayComesBack: one that memberlist believes alive gives way to one that
// has been met, and comes back by its next record, of which nobody is told as of a join.
func TestAStrangerThatGaveWayComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(t, maxMembers-1)
		if err := admitted(t, b, "newcomer"); err != nil {
			t.Fatal(err)
		}
		b.setAlive("newcomer", true) // NotifyJoin
		b.meet("intruder")           // somebody opens a stream
		if b.knows("newcomer") {
			t.Fatal("not evicted")
		}
		b.setAlive("peer1", false) // room again
		if err := admitted(t, b, "newcomer"); err != nil {
			t.Fatal(err)
		}
		(*delegate)(&Membership{contacts: &contacts{book: b}}).NotifyUpdate(&memberlist.Node{Name: "newcomer"})
		b.meet("newcomer")
		if !b.accepts("newcomer") {
			t.Error("memberlist believes it alive, its record is here, it has been met: no member")
		}
	})
}

// TestTheSilentPushOutNobodyDeparted: peers that open a stream and say nothing do not make a
// book forget members that have departed.
func TestTheSilentPushOutNobodyDeparted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(t, 10)
		b.setAlive("peer1", false)
		time.Sleep(time.Second)
		for i := range maxMembers {
			b.meet(transport.PeerID(fmt.Sprint("silent", i)))
		}
		if len(b.lost(time.Now(), 4)) == 0 {
			t.Error("a departed member is forgotten for peers that have no record")
		}
	})
}
