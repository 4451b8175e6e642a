package links

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// exchangeOver is what an exchange of a million values shows of a link of so many bytes
// a second.
func exchangeOver(rate, again float64) Sample {
	const bytes = 1_000_000
	return Sample{Bytes: bytes, Took: time.Duration(bytes / rate * float64(time.Second)), Retransmitted: again}
}

const (
	deadline = 30 * time.Second // of an exchange
	stall    = 5 * time.Second
	step     = 10 * time.Millisecond
	million  = 1_000_000
)

// choosing knows links that decide on the codec for exchanges of a million values.
func choosing(budget float64) *Links {
	return New(Config{
		Codecs: quant.Policy{Codec: quant.Auto}, Layers: []coding.JointLayer{{Len: million}}, Lanes: 2,
		Stall: stall, Deadline: deadline, Budget: budget,
	})
}

// TestWideLinksGetLanes: where the link is fast and long, and exchanges are, unless it is said
// how many there are to be or one of them has failed.
func TestWideLinksGetLanes(t *testing.T) {
	const mega = 1e6
	for _, c := range []struct {
		name  string
		rate  float64 // bytes a second
		round time.Duration
		bytes uint64
		given int
		want  int
	}{
		{"a local network", 110 * mega, 300 * time.Microsecond, 100 * mega, 0, 1},
		{"1 Gbit/s and 20 ms", 60 * mega, 20 * time.Millisecond, 16 * mega, 0, WideLanes},
		{"100 Mbit/s and 40 ms", 10 * mega, 40 * time.Millisecond, 16 * mega, 0, WideLanes},
		{"a small model", 60 * mega, 20 * time.Millisecond, 2 * mega, 0, 1},
		{"far, not fast", 1 * mega, 100 * time.Millisecond, 100 * mega, 0, 1},
		{"as it was said", 60 * mega, 20 * time.Millisecond, 16 * mega, 2, 2},
	} {
		l := New(Config{Layers: []coding.JointLayer{{Len: million}}, Lanes: c.given, Stall: stall, Deadline: deadline})
		if n := l.Lanes("p", 0); n != max(c.given, 1) {
			t.Errorf("%s: %d lanes before it is measured", c.name, n)
		}
		took := time.Duration(float64(c.bytes)/c.rate*float64(time.Second)) + rounds*c.round
		l.Saw("p", Sample{Bytes: c.bytes, Took: took, Round: c.round})
		if n := l.Lanes("p", 0); n != c.want {
			t.Errorf("%s: %d lanes, want %d", c.name, n, c.want)
		}
		if l.LaneFailed("p", 0); l.Lanes("p", time.Second) != 1 {
			t.Errorf("%s: more than one after one has failed", c.name)
		}
	}
}

func TestLinksChooseCodecs(t *testing.T) {
	const (
		mega = 1e6
	)
	for _, c := range []struct {
		name   string
		rate   float64
		failed float64
		budget float64
		want   coding.ID
	}{
		{"a local network", 100 * mega, 0, 0, coding.Lattice8to4},
		{"a slow link", 2 * mega, 0, 0, coding.Lattice6to4},
		{"a very slow one, on which exchanges end in time", 0.1 * mega, 0, 0, coding.Lattice6to4},
		{"one on which they do not", 0.02 * mega, 0, 0, coding.Lattice4to1},
		{"a slow link whose blocks fail", 2 * mega, 0.2, 0, coding.Lattice8to4},
		{"a local network on a budget", 100 * mega, 0, 0.02 * mega, coding.Lattice6to4},
	} {
		l := choosing(c.budget)
		if got, news := l.Offer("p", step); !slices.Contains(got.IDs, coding.Lattice6to4) || news != nil {
			t.Errorf("%s: unmeasured, codecs %d", c.name, got.IDs)
		}
		for range 20 {
			l.Saw("p", exchangeOver(c.rate, c.failed))
		}
		if got, news := l.Offer("p", step); !slices.Contains(got.IDs, c.want) || news == nil {
			t.Errorf("%s: codecs %d, want %d and to be told", c.name, got.IDs, c.want)
		}
		if _, news := l.Offer("p", step); news != nil {
			t.Errorf("%s: the choice changes though the link does not", c.name)
		}
	}
}

// However many partners come and go, only those met last are remembered.
func TestLinksAreBounded(t *testing.T) {
	l := choosing(0)
	for i := range 2 * MaxPartners {
		l.Saw(letter(i), exchangeOver(1e6, 0))
		l.Ended(letter(i), Waits{Longest: time.Second, Took: time.Second}, nil)
	}
	if n := l.partners.Len(); n != MaxPartners {
		t.Errorf("%d partners are remembered, at most %d", n, MaxPartners)
	}
	if l.Timeout(letter(0)) != leastTimeout || l.Timeout(letter(2*MaxPartners-1)) != slack*time.Second {
		t.Error("the oldest is remembered, or the newest is not")
	}
	l.Saw("nothing", Sample{})
	if len(l.Measured()) != MaxPartners || l.Measured()[0].Partner == "nothing" {
		t.Error("an exchange of nothing is taken for a sample")
	}
}

// TestMeasuredLinksAreThoseUsedLast: in their order, without those that only served.
func TestMeasuredLinksAreThoseUsedLast(t *testing.T) {
	l := choosing(0)
	for i := range 5 {
		l.Saw(letter(i), exchangeOver(1e6, 0))
	}
	l.Ended("served", Waits{Took: time.Second}, nil)
	l.Saw(letter(1), exchangeOver(1e6, 0))
	var got []topology.PeerID
	for _, link := range l.Measured() {
		if link.Codec() != "lattice6+4" {
			t.Errorf("the link to %s decides on %s", link.Partner, link.Codec())
		}
		got = append(got, link.Partner)
	}
	if want := []topology.PeerID{"b", "e", "d", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("links %v, want %v", got, want)
	}
	if n := l.Measured()[0].Exchanges; n != 2 {
		t.Errorf("%d exchanges were measured, want 2", n)
	}
}

// TestALaneThatFails: a partner to whom a further lane has failed is spoken to over one
// for a while.
func TestALaneThatFails(t *testing.T) {
	l := choosing(0)
	l.LaneFailed("p", time.Hour)
	for _, c := range []struct {
		id   topology.PeerID
		at   time.Duration
		want int
	}{{"p", time.Hour, 1}, {"p", time.Hour + oneLaneFor - 1, 1}, {"p", time.Hour + oneLaneFor, 2}, {"q", time.Hour, 2}} {
		if got := l.Lanes(c.id, c.at); got != c.want {
			t.Errorf("%d lanes to %s at %s, want %d", got, c.id, c.at, c.want)
		}
	}
}

// TestAnOfferIsAcceptedInPart: what a partner accepts of an offer is used, and what was
// not offered is found out.
func TestAnOfferIsAcceptedInPart(t *testing.T) {
	lattice, _ := coding.ByID(coding.Lattice8to4)
	made := NewOffer(coding.Uniform(lattice))
	made.Codecs, made.IDs = append(made.Codecs, uint8(coding.Raw)), append(made.IDs, coding.Raw)
	if got, ok := made.Within([]uint8{uint8(coding.Raw)}); !ok || !slices.Equal(got.IDs, []coding.ID{coding.Raw}) {
		t.Errorf("accepted raw, codecs %d", got.IDs)
	}
	if got, ok := made.Within(made.Codecs); !ok || !slices.Equal(got.IDs, made.IDs) {
		t.Errorf("accepted all, codecs %d", got.IDs)
	}
	if _, ok := made.Within([]uint8{uint8(coding.Int8)}); ok {
		t.Error("a codec was accepted that was not offered")
	}
}

// TestOneWayNeedsCodecsThatStandAlone: a lattice is decoded against a model that is near, which no
// gradient has; the link may choose one.
func TestOneWayNeedsCodecsThatStandAlone(t *testing.T) {
	for codec, can := range map[string]bool{"raw": true, "int8": true, "lattice6+4": false, quant.Auto: false} {
		l := New(Config{Codecs: quant.Policy{Codec: codec}, Layers: []coding.JointLayer{{Len: million}}})
		if err := l.OneWay(); (err == nil) != can {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

// letter is the i-th partner of a test.
func letter(i int) topology.PeerID { return topology.PeerID(rune('a' + i)) }

// TestCoarsest shows which codec of several an exchange is counted under.
func TestCoarsest(t *testing.T) {
	for _, c := range []struct {
		ids  []coding.ID
		want coding.ID
	}{
		{nil, 0},
		{[]coding.ID{coding.Raw}, coding.Raw},
		{[]coding.ID{coding.Raw, coding.BF16, coding.Int8}, coding.Int8},
		{[]coding.ID{coding.Lattice8to4, coding.FP16}, coding.Lattice8to4},
		{[]coding.ID{coding.FP16, coding.Lattice8to4, coding.Lattice4to1}, coding.Lattice4to1},
	} {
		if got := Coarsest(c.ids); got != c.want {
			t.Errorf("of %v, %d is taken for the coarsest, want %d", c.ids, got, c.want)
		}
	}
}
