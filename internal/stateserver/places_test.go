package stateserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestManyWhoAskKeepNobodyOut: more joiners than are remembered, who ask and ask, from
// one block of addresses or from several, keep no place empty and one from another block
// not out.
func TestManyWhoAskKeepNobodyOut(t *testing.T) {
	for _, blocks := range []int{1, 8} {
		t.Run(fmt.Sprint(blocks), func(t *testing.T) {
			a := newAsking()
			const crowd, each = 3 * maxWaiting, time.Millisecond // each asks every 1.5 s
			entered := 0
			for i := range 60 * int(time.Second/each) {
				a.now = a.now.Add(each)
				n := i % crowd
				if a.ask(transport.PeerID(fmt.Sprint("crowd-", n)), fmt.Sprint("block-", n%blocks)) {
					entered++
				}
				if i > 2*crowd && i%500 == 0 && a.ask("honest", "another") {
					t.Logf("in after %s, %d others before", a.now.Sub(time.Unix(0, 0)), entered)
					return
				}
			}
			t.Errorf("not in after a minute; %d of the crowd were, %d places are held", entered, a.count())
		})
	}
}

// asking are joiners that ask for places, on a clock of their own.
type asking struct {
	places
	now time.Time
	in  map[transport.PeerID]time.Time
}

func newAsking() *asking {
	return &asking{places: newPlaces(maxJoiners), now: time.Unix(0, 0), in: map[transport.PeerID]time.Time{}}
}

// ask asks for a place, and tells whether a joiner has one.
func (a *asking) ask(id transport.PeerID, block string) bool {
	at := &place{peer: id, block: block, yield: func() { delete(a.in, id) }}
	if _, has := a.in[id]; has || !a.enter(at, a.now) {
		return has
	}
	a.in[id] = a.now
	return true
}

// TestHeldPlacesKeepNobodyOut: neither one process with many identities that takes all places
// and asks again as soon as it is turned out, nor one with addresses in many blocks.
func TestHeldPlacesKeepNobodyOut(t *testing.T) {
	for _, c := range []struct {
		name  string
		block func(i int) string // of those who hold the places
		soon  time.Duration
	}{
		{"one block", func(int) string { return "held" }, 500 * time.Millisecond},
		{"many blocks", func(i int) string { return fmt.Sprint("held-", i) }, 25 * time.Second},
		{"the latecomer's block", func(int) string { return "late" }, 25 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsking()
			const each, came = 10 * time.Millisecond, 5 * time.Second
			for since := time.Duration(0); since < time.Minute; since += each {
				a.now = a.now.Add(each)
				for i := range 2 * maxJoiners {
					a.ask(transport.PeerID(fmt.Sprint("hoarder-", i)), c.block(i))
				}
				if since == came && len(a.in) != maxJoiners {
					t.Errorf("%d places are held before the latecomer comes", len(a.in))
				}
				if since < came || since%(500*time.Millisecond) != 0 || !a.ask("late", "late") {
					continue
				}
				took := since - came
				if t.Logf("in after %s", took); took > c.soon {
					t.Errorf("in after %s", took)
				}
				return
			}
			t.Error("not in after a minute")
		})
	}
}
