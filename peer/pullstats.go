package peer

import (
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// MaxPullStats bounds the partners whose pull Stats lists.
const MaxPullStats = 8

// PullStats is how one-sided the differences were that this peer has applied with a
// partner, lately most: each may be within the bound, and together they push the model.
type PullStats struct {
	Partner seam.PeerID
	// Pull is the length of the sum of the differences over the sum of their lengths: 1
	// if all pointed the same way. Of partners with data alike it is 0.2 to 0.5, of
	// those with other labels than most up to 0.9; from 0.97 on the log tells.
	Pull float64
	// Exchanges counts those that have moved anything.
	Exchanges uint64
}

// pulls are those with the largest pull.
func (p *Peer) pulls() (listed []PullStats) {
	for _, pull := range p.replica.Pulls(MaxPullStats) {
		listed = append(listed, PullStats{Partner: seam.PeerID(pull.Partner), Pull: pull.Ratio, Exchanges: pull.Exchanges})
	}
	return listed
}

// watchPull says once of a partner, after an exchange with it, that it pushes in one
// direction.
func (p *Peer) watchPull(partner string) {
	pull, news := p.replica.OneSided(partner)
	if !news {
		return
	}
	p.log.Warn("a partner pushes in one direction: each difference is within the bound, together they are not by chance. "+
		"See what data it trains on; if they are like those of others, admit only the others (Network.Admission)",
		zap.String("peer", partner), zap.Float64("pull", pull.Ratio), zap.Uint64("exchanges", pull.Exchanges))
}
