package swim

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// A record from hand to hand is worth what it is worth in gossip: it must be the
// member's own and newer, and it makes nobody a member.
func TestRecordsFromHandToHand(t *testing.T) {
	self, alice, mallory := newIdentity(t, "self"), newIdentity(t, "alice"), newIdentity(t, "mallory")
	signals := 0
	b := newBook(self, testRun, 1, func() { signals++ })
	asIs := func(*statement) {}
	good := forge(t, alice, asIs)
	if news, err := b.receive(alice.Self(), good); news || err != nil || len(b.entries) != 0 {
		t.Fatalf("a stranger's record: news %v, %v, %d entries", news, err, len(b.entries))
	}
	if err := b.admit(alice.Self(), good); err != nil {
		t.Fatal(err)
	}
	b.setAlive(alice.Self(), true)
	newer := forge(t, alice, func(s *statement) { s.Sequence++; s.Role = 2 })
	for _, c := range []struct {
		name string
		peer transport.PeerID
		meta []byte
		news bool
		want error
	}{
		{"what is known", alice.Self(), good, false, nil},
		{"newer", alice.Self(), newer, true, nil},
		{"older again", alice.Self(), good, false, nil},
		{"forged", alice.Self(), forge(t, mallory, func(s *statement) { s.Sequence = 99 }), false, errSignature},
		{"of another run", alice.Self(), forge(t, alice, func(s *statement) { s.Run = "letters" }), false, errOtherRun},
		{"another's under a stranger's name", mallory.Self(), newer, false, nil},
		{"truncated", alice.Self(), newer[:len(newer)-1], false, errTruncated},
		{"nothing", alice.Self(), nil, false, errTruncated},
		{"our own name", self.Self(), forge(t, self, asIs), false, nil},
	} {
		before := signals
		news, err := b.receive(c.peer, c.meta)
		if news != c.news || !errors.Is(err, c.want) || (signals > before) != news {
			t.Errorf("%s: news %v, %v, %d signals; want %v, %v", c.name, news, err, signals-before, c.news, c.want)
		}
	}
	if members := b.members(); len(members) != 1 || members[0].Role != 2 {
		t.Errorf("members %v, want alice with her newest role", members)
	}
}

// Two members that see different flocks see the same one after they have compared,
// in a few round trips and without anybody becoming a seed.
func TestCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := start(t, n, "a"), start(t, n, "b")
		a.announce(t, 1, 0)
		if a.Signed() == nil || b.Signed() != nil {
			t.Errorf("records to hand out: %d bytes of who has announced, %d of who has not", len(a.Signed()), len(b.Signed()))
		}
		b.announce(t, 1, 0)
		began := time.Now()
		if err := a.Compare(t.Context(), b.wire.Self()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("comparing took %v with a round trip of 20 ms", took)
		}
		for _, m := range []*member{a, b} {
			if len(m.Members()) != 2 {
				t.Errorf("after comparing one sees %s", m.seen([]*member{a, b}))
			}
			if m.book.seeds != 0 {
				t.Errorf("comparing made %d seeds", m.book.seeds)
			}
		}
		time.Sleep(gossipMissed)
		b.announce(t, 1, 5)
		if news, err := a.Received(b.wire.Self(), b.Signed()); !news || err != nil {
			t.Fatalf("b's newest record: news %v, %v", news, err)
		}
		steps := func(r transport.Record) bool { return r.Peer == b.wire.Self() && r.Steps == 5 }
		if !slices.ContainsFunc(a.Members(), steps) {
			t.Errorf("after a has heard b's record it sees %s", a.seen([]*member{a, b}))
		}
		time.Sleep(gossipMissed) // what gossip brings later is no news, and does no harm
		if !slices.ContainsFunc(a.Members(), steps) {
			t.Errorf("later a sees %s", a.seen([]*member{a, b}))
		}
	})
}
