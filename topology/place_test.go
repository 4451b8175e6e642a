package topology

import (
	"strings"
	"testing"
)

// TestUplinksAreCoarse: a class has the rates from its least one to twice that; no rate, and what is none, is not known.
func TestUplinksAreCoarse(t *testing.T) {
	for rate, least := range map[float64]float64{0: 0, -1: 0, 1: 125, 125: 125, 249: 125, 250: 250, 2.5e6: 2.048e6, 1.25e8: 65.536e6, 1e300: 125 * (1 << 39)} {
		if u := UplinkOf(rate); u.BytesPerSecond() != least || u > maxUplink {
			t.Errorf("%g is of class %d, from %g; want %g", rate, u, u.BytesPerSecond(), least)
		}
	}
}

func TestPlacesAreChecked(t *testing.T) {
	for _, p := range []Place{{Site: strings.Repeat("s", MaxSite+1)}, {Site: "a\nb"}, {Site: "\xff"}, {Site: "\x1b"}, {Uplink: maxUplink + 1}} {
		if p.Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
	for _, p := range []Place{{}, {Site: "Zürich 2"}, {Uplink: maxUplink}} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}
