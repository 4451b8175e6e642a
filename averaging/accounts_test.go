package averaging

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/topology"
)

// TestAccountsAreOfThoseWhoHaveCome: a view makes none; what a partner has had stays on its
// account while it is one and after, whoever comes between; of others the last are known.
func TestAccountsAreOfThoseWhoHaveCome(t *testing.T) {
	a := newAccounts()
	come := func(peer topology.PeerID, id ExchangeID) bool {
		return a.fresh(Event{Peer: peer, Incarnation: 1, Exchange: id})
	}
	a.link([]partner{{id: "p"}, {id: "q"}, {id: "silent"}}, 100)
	if n := a.known.Len(); n != 0 {
		t.Errorf("%d accounts of nobody", n)
	}
	for range savedUp {
		a.begun(0, "p")
		a.begun(0, "q")
	}
	had := a.charged("p").left
	if come("p", 7); had >= savedUp || a.charged("silent").left != savedUp || a.charged("other") != &a.unlinked {
		t.Errorf("the partners have %g and %g left", had, a.charged("silent").left)
	}
	name := func(i int) topology.PeerID { return topology.PeerID(fmt.Sprint(i)) }
	const many = 3 * maxAccounts
	for i := range many {
		come(name(i), 7)
		if n := a.known.Len(); n > maxAccounts+3 {
			t.Fatalf("%d accounts", n)
		}
	}
	if come("p", 7) || a.charged("p").left != had {
		t.Error("a partner's account begins anew")
	}
	if come(name(many-1), 7) || come(name(many-maxAccounts), 7) || !come(name(many-maxAccounts-4), 7) {
		t.Error("of others not the last are known")
	}
	a.link([]partner{{id: "silent"}}, 100)
	if come("p", 7) || a.charged("p") != &a.unlinked || !come("new", 1) || a.known.Len() > maxAccounts+1 {
		t.Error("who is a partner no more is forgotten at once, or charged as one")
	}
	if a.link([]partner{{id: "p"}}, 100); a.charged("p").left != had {
		t.Errorf("who is one again has %g left, had %g", a.charged("p").left, had)
	}
}
