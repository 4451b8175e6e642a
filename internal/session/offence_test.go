package session_test

import (
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// Whoever is told that a partner is kept away is told for what, also if its offer was turned
// down before the averaging machine was asked.
func TestAnOfferThatIsNoneIsAnOffenceWithAName(t *testing.T) {
	x := newPair(t, setting{codec: "raw", values: 12, slice: 4, lanes: 1, window: 2, traits: collective.Traits{Gradients: true}})
	x.begin(silent{}, x.a, x.p)
	x.ways[0].done[0] = true
	host := &x.a.local
	offer := wire.Offer{
		Opening: wire.Opening{
			Run: host.Run, Layout: host.Layout, Incarnation: 1, Cut: host.Cut,
			SliceLen: uint32(host.Replica.SliceLen()), Codecs: []uint8{uint8(coding.Raw)},
		},
	}
	replica.PutTransfer(&offer, collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Add: true, Parts: 1})
	x.say(t, offer)
	x.run(-1)
	r := x.results["P"]
	if r.Outcome != session.Declined || r.Quarantine == 0 || !errors.Is(r.Err, replica.ErrTransfer) {
		t.Errorf("outcome %d, kept away for %s because of %v; want it declined and kept away because of %v",
			r.Outcome, r.Quarantine, r.Err, replica.ErrTransfer)
	}
}
