package averaging

import (
	"math/bits"

	"github.com/seed-97356399/murmuration/topology"
)

const (
	// acrossShare is the share of the time that exchanges with other sites may last: the link to them is others' too.
	acrossShare = 0.36
	// acrossGain is the share of the difference between two sites' mean models that an exchange across removes. With
	// all of it, two exchanges at once would drive sites apart.
	acrossGain = 0.5
	// acrossMost is how many times as much as others an exchange across weighs at most: the delegate then goes a quarter
	// of the way beyond its partner's model. Farther, where sites hold unlike data, is where no model is any good.
	acrossMost = 2.5
)

// across is how many times as much an exchange between delegates weighs as one inside a site. Half of their difference
// would move the means of sites of a and b members by 1/2a and 1/2b of it. For the means to meet, the delegates'
// models move by ab/(a+b) of it, farther than each other's, and exchanges inside spread that.
func across(overlay *topology.Overlay, self, peer topology.PeerID) float64 {
	a, b := float64(overlay.AtSiteOf(self)), float64(overlay.AtSiteOf(peer))
	return min(max(1, acrossGain*2*a*b/max(a+b, 1)), acrossMost)
}

// spread is the overlap to tell of an exchange across that weighs so many times as much, so that it weighs less
// where delegates differ from one another mostly as members of one site do: that is no difference between the
// sites, and would be multiplied. Squared are mean distances of partners' models at this site and at others.
func spread(across float64, overlap int, squaredHere, squaredThere float64) int {
	between := max(1-squaredHere/squaredThere, 1/across) // of the difference; NaN before there was any
	if !(between > 0) {
		between = 1 / across
	}
	return int(float64(1+overlap)/min(between, 1)) - 1
}

// rounds is how many exchanges of each of so many members bring what one of them has to all.
func rounds(members int) int { return bits.Len(uint(max(members-1, 0))) + 1 }
