package peer_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// mbit is a link of so many Mbit/s with a round trip.
func mbit(rate float64, roundTrip time.Duration) memnet.Link {
	return memnet.Link{Bandwidth: rate * 1e6 / 8, Delay: roundTrip / 2}
}

// The three kinds of link, and what is to be chosen for them by a peer whose step takes
// kindStep and whose model has kindValues parameters.
var kinds = []struct {
	name  string
	link  memnet.Link
	codec string
}{
	{"fast", mbit(1000, 200*time.Microsecond), "lattice8+4"},
	{"slow", mbit(100, 40*time.Millisecond), "lattice6+4"},
	{"very slow", mbit(0.2, 200*time.Millisecond), "lattice4+1"}, // 6+4 takes 3.6 s, and 4+1 2.6 s
}

const (
	kindStep     = 4 * time.Millisecond
	kindValues   = 100_000
	kindDeadline = 5 * time.Second
)

func kindModel() *tensor.Params { return rowsModel(kindValues / 100) }

// rowsModel has so many rows of a hundred values.
func rowsModel(rows int) *tensor.Params {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{rows, 100}})
	if err != nil {
		panic(err) // the specs are constants
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i%7) - 3
	}
	return params
}

// threeKinds is an active peer with a partner on each kind of link.
type threeKinds struct {
	t        *testing.T
	network  *memnet.Network
	active   *peer.Peer
	partners []*peer.Peer // the i-th on a link of kind i modulo their number
	logged   *observer.ObservedLogs
}

// startThreeKinds starts a flock so large that at least three peers are passive, and so
// small that an active one neighbours them all. Only one of these will train and
// initiate over the links; another has exchanged with all before, without any limits. Two
// peers neither of which has exchanged before speak in halves, whatever the codec, and the
// very slow link carries no slice of those in the time that a partner gets which was never
// waited for: whether that came to pass would rest on who is asked first, which is random.
func startThreeKinds(t *testing.T) *threeKinds {
	k := &threeKinds{t: t, network: memnet.New(memnet.Config{Seed: 3})}
	var all []*peer.Peer
	var before *peer.Peer
	var logs []*observer.ObservedLogs
	for i := range 2*len(kinds) + 1 {
		name := string(rune('0' + i))
		core, logged := observer.New(zapcore.InfoLevel)
		network := inMemory(t, k.network, name, "digits")
		network.Log = zap.New(core)
		p := start(t, peer.Config{
			Run:      "digits",
			Params:   kindModel(),
			Network:  network,
			Join:     []string{"mem:0"}[:min(i, 1)],
			Training: peer.Training{Exchange: peer.Exchange{Codec: quant.Policy{Codec: quant.Auto}, Deadline: kindDeadline}},
		})
		all, logs = append(all, p), append(logs, logged)
		time.Sleep(time.Second) // it takes its role before the next comes
	}
	for i, p := range all {
		switch p.Stats().Role {
		case "active":
			before, k.active, k.logged = k.active, p, logs[i]
		case "passive":
			k.partners = append(k.partners, p)
		}
	}
	if before == nil || len(k.partners) < len(kinds) {
		t.Fatalf("%d passive peers of %d, want at least %d, and two active ones", len(k.partners), len(all), len(kinds))
	}
	k.train(before, "an exchange with each passive peer", func() bool {
		return !slices.ContainsFunc(k.partners, func(p *peer.Peer) bool { return p.Stats().Exchanges.Served == 0 })
	})
	time.Sleep(time.Second) // what is under way ends
	for i, p := range k.partners {
		k.network.SetLink(k.active.Self(), p.Self(), kinds[i%len(kinds)].link)
	}
	return k
}

// train has an active peer take steps, which change nothing, until a condition holds.
func (k *threeKinds) train(active *peer.Peer, what string, holds func() bool) {
	k.t.Helper()
	const patience = 5 * time.Minute
	still := make(tensor.Vector, kindValues)
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			k.t.Fatalf("%s: not within %s: %+v", what, patience, active.Stats().Exchanges)
		}
		time.Sleep(kindStep)
		if err := active.Apply(k.t.Context(), still, peer.Result{}); err != nil {
			k.t.Fatal(err)
		}
	}
}

// link is what the active peer tells of the link to a partner.
func (k *threeKinds) link(partner int) stats.Link {
	for _, l := range k.active.Stats().Exchanges.Links {
		if l.Partner == k.partners[partner].Self() {
			return l
		}
	}
	return stats.Link{}
}

// measured tells whether so many more exchanges were measured on each link.
func (k *threeKinds) measured(n uint64) func() bool {
	before := make([]uint64, len(k.partners))
	for i := range before {
		before[i] = k.link(i).Exchanges
	}
	return func() bool {
		for i := range before {
			if k.link(i).Exchanges < before[i]+n {
				return false
			}
		}
		return true
	}
}

// decisions are the codecs that were logged for a partner, in order.
func (k *threeKinds) decisions(partner transport.PeerID) (codecs []string) {
	entries := k.logged.FilterMessage("the link to a partner decides on its codec").FilterField(zap.String("peer", string(partner)))
	for _, e := range entries.All() {
		fields := e.ContextMap()
		codecs = append(codecs, fields["codec"].(string))
		for _, figure := range []string{"bytes_per_second", "round_trip", "expected", "step", "again", "before"} {
			if _, told := fields[figure]; !told {
				k.t.Errorf("the log does not tell %s: %v", figure, fields)
			}
		}
	}
	return codecs
}

// TestAutoOnThreeKindsOfLink: in one run, a peer speaks to each partner in the codec
// that suits the link to it, tells so in Stats and in one line of the log each, and
// changes its mind when a link becomes another.
func TestAutoOnThreeKindsOfLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := startThreeKinds(t)
		k.train(k.active, "three exchanges on each link", k.measured(3))
		told := make(map[string]int)
		for i := range k.partners {
			kind, l := kinds[i%len(kinds)], k.link(i)
			t.Logf("%s link: %s, %.3g Mbit/s and a round trip of %s measured over %d exchanges", kind.name, l.Codec, l.Rate*8/1e6, l.Round, l.Exchanges)
			told[kind.codec]++
			if l.Codec != kind.codec {
				t.Errorf("%s link: codec %q, want %s", kind.name, l.Codec, kind.codec)
			}
			if logged := k.decisions(l.Partner); len(logged) != 1 || logged[0] != kind.codec {
				t.Errorf("%s link: decisions %q in the log, want one for %s", kind.name, logged, kind.codec)
			}
			if l.Rate < kind.link.Bandwidth/2 || l.Rate > kind.link.Bandwidth*1.1 {
				t.Errorf("%s link: %.3g bytes a second measured, it has %.3g", kind.name, l.Rate, kind.link.Bandwidth)
			}
			if trip := 2 * kind.link.Delay; l.Round < trip || l.Round > 2*trip {
				t.Errorf("%s link: a round trip of %s measured, it has %s", kind.name, l.Round, trip)
			}
		}
		x := k.active.Stats().Exchanges
		if !maps.Equal(x.Codecs, told) || x.Failed > 0 {
			t.Errorf("codecs %v, %d exchanges failed", x.Codecs, x.Failed)
		}
		k.swap()
	})
}

// swap makes the fast link very slow and the very slow one fast.
func (k *threeKinds) swap() {
	fast, slowest := 0, len(kinds)-1
	k.network.SetLink(k.active.Self(), k.partners[fast].Self(), kinds[slowest].link)
	k.network.SetLink(k.active.Self(), k.partners[slowest].Self(), kinds[fast].link)
	k.train(k.active, "the links that were swapped decide anew", func() bool {
		return k.link(fast).Codec == kinds[slowest].codec && k.link(slowest).Codec == kinds[fast].codec
	})
	k.train(k.active, "two exchanges more on each", k.measured(2))
	for i := range kinds {
		want := kinds[slowest-i]
		l := k.link(i)
		k.t.Logf("then %s: %s, %.3g Mbit/s, %s; decisions %v", want.name, l.Codec, l.Rate*8/1e6, l.Round, k.decisions(l.Partner))
		if l.Codec != want.codec {
			k.t.Errorf("the link became %s: codec %q, want %s", want.name, l.Codec, want.codec)
		}
		if n := len(k.decisions(l.Partner)); n > 3 { // by way of the middle one
			k.t.Errorf("the link that became %s changed its codec %d times", want.name, n-1)
		}
	}
}

// TestAutoLearnsFromExchangesThatTakeTooLong: where not even the first exchange can end
// in time, how far it came tells that the link is slow; with the coarsest codec they end.
func TestAutoLearnsFromExchangesThatTakeTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: mbit(0.3, 200*time.Millisecond)})
		const deadline = 2400 * time.Millisecond // 6+4 takes 2.7 s here, and 4+1 2.2 s
		var peers [2]*peer.Peer
		for i := range peers {
			peers[i] = start(t, peer.Config{
				Run:      "digits",
				Params:   kindModel(),
				Network:  inMemory(t, network, string(rune('0'+i)), "digits"),
				Join:     []string{"mem:0"}[:i],
				Training: peer.Training{Exchange: peer.Exchange{Codec: quant.Policy{Codec: quant.Auto}, Deadline: deadline}},
			})
		}
		for _, p := range peers {
			if err := p.WaitMembers(t.Context(), len(peers)); err != nil {
				t.Fatal(err)
			}
		}
		still := make(tensor.Vector, kindValues)
		const wanted, patience = 3, 5 * time.Minute
		for end := time.Now().Add(patience); peers[0].Stats().Exchanges.Completed() < wanted; time.Sleep(kindStep) {
			if time.Now().After(end) {
				t.Fatalf("no exchange ends in time: %+v", [2]stats.Exchanges{peers[0].Stats().Exchanges, peers[1].Stats().Exchanges})
			}
			for _, p := range peers {
				if err := p.Apply(t.Context(), still, peer.Result{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, p := range peers {
			if x := p.Stats().Exchanges; x.Initiated > 0 && (len(x.Links) != 1 || x.Links[0].Codec != "lattice4+1" || x.Failed == 0) {
				t.Errorf("%d exchanges broke off, links %+v", x.Failed, x.Links)
			}
		}
	})
}
