package conversations

import "testing"

// A partner that asks for a second exchange by the number of one under way is refused that;
// the lanes of the first still find it.
func TestANumberUsedTwiceEndsNoSession(t *testing.T) {
	var s sessions
	key, first, second := Key{Peer: "a", Exchange: 1, Inbound: true}, newServed(), newServed()
	s.add(key, first)
	s.remove(key, second)
	if s.kept() != 1 {
		t.Error("the exchange under way is forgotten")
	}
	s.remove(key, first)
	if s.kept() != 0 {
		t.Error("an exchange that is over is kept")
	}
}
