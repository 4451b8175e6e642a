package swim

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// trusting verifies everything, to fill a book quickly.
type trusting struct{ transport.Identity }

func (trusting) Self() transport.PeerID                       { return "self" }
func (trusting) Verify(transport.PeerID, []byte, []byte) bool { return true }
func (trusting) Sign([]byte) ([]byte, error)                  { return make([]byte, signatureSize), nil }

func admitted(t *testing.T, b *book, peer transport.PeerID) error {
	t.Helper()
	s := sampleStatement(peer)
	meta, err := seal(trusting{}, s)
	if err != nil {
		t.Fatal(err)
	}
	return b.admit(peer, meta)
}

func TestTheBookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(trusting{}, testRun, 1, func() {})
		name := func(i int) transport.PeerID { return transport.PeerID(fmt.Sprint("peer", i)) }
		for i := range maxMembers {
			b.meet(name(i))
			if err := admitted(t, b, name(i)); err != nil {
				t.Fatal(err)
			}
			b.setAlive(name(i), true)
		}
		if err := admitted(t, b, "newcomer"); !errors.Is(err, errBookFull) {
			t.Errorf("one too many: %v", err)
		}
		b.setAlive(name(7), false)
		time.Sleep(time.Second)
		b.setAlive(name(3), false)
		if err := admitted(t, b, "newcomer"); err != nil {
			t.Errorf("in place of a departed one: %v", err)
		}
		if _, ok := b.highest(name(7)); ok {
			t.Error("the one who departed first is still known")
		}
		if _, ok := b.highest(name(3)); !ok {
			t.Error("the one who departed last was forgotten")
		}
	})
}

func TestLostMembersAreTriedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(trusting{}, testRun, 1, func() {})
		b.addSeed("seed")
		for _, peer := range []transport.PeerID{"a", "b", "c"} {
			b.meet(peer)
			if err := admitted(t, b, peer); err != nil {
				t.Fatal(err)
			}
			b.setAlive(peer, true)
		}
		expect := func(when string, turns int, want map[transport.PeerID]int) {
			t.Helper()
			got := map[transport.PeerID]int{}
			for range turns {
				for _, peer := range b.lost(time.Now(), 2) {
					got[peer]++
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		type times = map[transport.PeerID]int
		expect("the seed was not met yet", 2, times{"seed": 2})
		if err := admitted(t, b, "seed"); err != nil {
			t.Fatal(err)
		}
		b.setAlive("seed", true)
		expect("all are there", 1, times{})
		b.setAlive("a", false)
		b.setAlive("c", false)
		b.setAlive("seed", false)
		expect("a seed has a place each time, the others take turns", 4, times{"seed": 4, "a": 2, "c": 2})
		b.setAlive("b", false)
		expect("who left last is tried first", 2, times{"seed": 2, "b": 2})
		time.Sleep(rejoinFor + time.Second)
		expect("only the seed is returned to for ever", 2, times{"seed": 2})
	})
}

func TestRecordsAreCopies(t *testing.T) {
	b := newBook(trusting{}, testRun, 1, func() {})
	if err := admitted(t, b, "a"); err != nil {
		t.Fatal(err)
	}
	b.setAlive("a", true)
	b.members()[0].Addresses[0] = "spoiled"
	if got := b.members()[0].Addresses[0]; got == "spoiled" {
		t.Error("the caller of Members can change the book")
	}
}
