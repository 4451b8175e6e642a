package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// suite is a named world: a variation of the one that the flags describe.
type suite struct {
	name, about string
	change      func(s *simulate.Settings)
	// least is the least number of peers.
	least int
	// replays: the suite keeps the compute times, links, joins and leaves.
	replays bool
	// churn lets peers leave and come back within the given time.
	churn bool
}

// Share of slow peers, and unevenness of labels, in suites.
const (
	slowPeer   = 1
	skewedData = "dirichlet=0.1"
	wanLink    = "100,40"
	// churnStep is the time of a step when peers leave and come back: long enough that a crash is noticed before the
	// run ends.
	churnStep = 100 * time.Millisecond
)

const homogeneous = "homogeneous"

// suites are all suites of compare.
func suites() []suite {
	slow := func(factor int) suite {
		return suite{
			name: fmt.Sprintf("slow-%d", factor), least: slowPeer + 1, about: fmt.Sprintf("peer %d computes %d times slower", slowPeer, factor),
			change: func(s *simulate.Settings) { s.Slow = append(s.Slow, fmt.Sprintf("%d=%d", slowPeer, factor)) },
		}
	}
	return []suite{
		{name: homogeneous, about: "the world as the other flags describe it", replays: true, change: func(*simulate.Settings) {}},
		slow(2), slow(10), slow(100),
		{name: "slow-link-100", least: slowPeer + 1, about: fmt.Sprintf("the connection of peer %d carries 100 times less", slowPeer), change: func(s *simulate.Settings) {
			s.SlowLink = append(s.SlowLink, fmt.Sprintf("%d=100", slowPeer))
		}},
		{name: "wan", about: "connections of 100 Mbit/s, 40 ms from one peer to another", change: func(s *simulate.Settings) { s.Link = wanLink }},
		{name: "churn", about: "a quarter of the peers crash or leave, and come back; steps of at least " + churnStep.String(), churn: true, change: func(s *simulate.Settings) {
			s.StepTime = max(s.StepTime, churnStep)
		}},
		{name: "skewed", about: "labels are skewed: --shard " + skewedData, replays: true, change: func(s *simulate.Settings) { s.Shard = skewedData }},
	}
}

// suitesNamed returns the suites in a list of names, or all.
func suitesNamed(text string) ([]suite, error) {
	known := suites()
	if text == "all" {
		return known, nil
	}
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	var chosen []suite
	for _, name := range strings.Split(text, ",") {
		at := slices.Index(names, strings.TrimSpace(name))
		if at < 0 {
			return nil, cli.Faultf("suite", "%q: want all, or some of %s", name, strings.Join(names, ", "))
		}
		if slices.ContainsFunc(chosen, func(other suite) bool { return other.name == known[at].name }) {
			return nil, cli.Faultf("suite", "%q is there twice", known[at].name)
		}
		chosen = append(chosen, known[at])
	}
	return chosen, nil
}

// churn lets a quarter of the peers leave, half of them by a crash, at random times in the first half of during. They
// come back after a quarter of during.
func churn(seed uint64, peers int, during time.Duration) (changes []peertest.Change) {
	const purpose = 7 // makes random numbers differ from others of the same seed
	rng := rand.New(rand.NewPCG(seed, purpose))
	for k, i := range rng.Perm(peers)[:peers/4] {
		kind := peertest.Crash
		if k%2 == 1 {
			kind = peertest.Leave
		}
		at := time.Duration((0.1 + 0.4*rng.Float64()) * float64(during))
		changes = append(changes,
			peertest.Change{At: at, Kind: kind, Peer: i},
			peertest.Change{At: at + during/4, Kind: peertest.Arrive, Peer: i})
	}
	return changes
}
