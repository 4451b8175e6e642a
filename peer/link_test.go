package peer

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// exchangeOver is what an exchange of a million values shows of a link of so many bytes
// a second.
func exchangeOver(rate float64, failed float64) sample {
	const bytes = 1_000_000
	return sample{bytes: bytes, took: time.Duration(bytes / rate * float64(time.Second)), failed: failed}
}

func TestLinksChooseCodecs(t *testing.T) {
	const (
		values = 1_000_000
		step   = 10 * time.Millisecond
		mega   = 1e6
	)
	for _, c := range []struct {
		name   string
		rate   float64
		failed float64
		budget float64
		want   quant.ID
	}{
		{"a local network", 100 * mega, 0, 0, quant.Lattice8to4},
		{"a slow link", 2 * mega, 0, 0, quant.Lattice6to4},
		{"a very slow one, on which exchanges end in time", 0.1 * mega, 0, 0, quant.Lattice6to4},
		{"one on which they do not", 0.02 * mega, 0, 0, quant.Lattice4to1},
		{"a slow link whose blocks fail", 2 * mega, 0.2, 0, quant.Lattice8to4},
		{"a local network on a budget", 100 * mega, 0, 0.02 * mega, quant.Lattice6to4},
	} {
		var l links
		d := demand{values: values, step: step, deadline: averaging.DefaultDeadline, budget: c.budget}
		if got := l.choose("p", d); got.codec != quant.Lattice6to4 || got.changed {
			t.Errorf("%s: unmeasured, codec %d", c.name, got.codec)
		}
		for range 20 {
			l.saw("p", exchangeOver(c.rate, c.failed), time.Now())
		}
		if got := l.choose("p", d); got.codec != c.want || !got.changed {
			t.Errorf("%s: codec %d, want %d and to be told", c.name, got.codec, c.want)
		}
		if l.choose("p", d).changed {
			t.Errorf("%s: the choice changes though the link does not", c.name)
		}
	}
}

// However many partners come and go, only so many links are remembered.
func TestLinksAreBounded(t *testing.T) {
	var l links
	at := time.Now()
	for i := range 2 * maxLinks {
		l.saw(letter(i), exchangeOver(1e6, 0), at.Add(time.Duration(i)))
	}
	if len(l.known) != maxLinks {
		t.Errorf("%d links are remembered, at most %d", len(l.known), maxLinks)
	}
	if _, ok := l.known[letter(0)]; ok {
		t.Error("the oldest link was kept")
	}
	l.saw("nothing", sample{}, at)
	if _, ok := l.known["nothing"]; ok {
		t.Error("an exchange of nothing is taken for a sample")
	}
}

// letter is the i-th partner of a test.
func letter(i int) seam.PeerID { return seam.PeerID(rune('a' + i)) }
