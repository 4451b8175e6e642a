package bridge

import (
	"math"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// figures are the fields of the answer to stats.
type figures struct {
	Name              string   `json:"name,omitempty"`
	Role              string   `json:"role"`
	Steps             uint64   `json:"steps"`
	FlockSteps        uint64   `json:"flock_steps"`
	Target            uint64   `json:"target"`
	Members           int      `json:"members"`
	Lost              int      `json:"lost"`
	Joined            bool     `json:"joined"`
	Loss              *float64 `json:"loss"` // null before the first step, or if no commit told one
	Exchanges         uint64   `json:"exchanges"`
	Failed            uint64   `json:"exchanges_failed"`
	BytesSent         uint64   `json:"bytes_sent"`
	BytesReceived     uint64   `json:"bytes_received"`
	BitsPerParameter  float64  `json:"bits_per_parameter"`
	ConsensusDistance float64  `json:"consensus_distance"`
	Every             int      `json:"every"`
	Quarantined       int      `json:"quarantined"`
}

func figuresOf(s stats.Peer, joined bool) figures {
	f := figures{
		Name: s.Name, Role: s.Role, Steps: s.Steps, FlockSteps: s.FlockSteps, Target: s.Target,
		Members: s.Members, Lost: s.Lost, Joined: joined,
		Exchanges: s.Exchanges.Completed(), Failed: s.Exchanges.Failed,
		BytesSent: s.Exchanges.BytesSent, BytesReceived: s.Exchanges.BytesReceived,
		BitsPerParameter: finite(s.Exchanges.BitsPerParameter), ConsensusDistance: finite(s.Exchanges.ConsensusDistance),
		Every: s.Exchanges.Every, Quarantined: s.Quarantined,
	}
	if finite(s.Loss) == s.Loss {
		f.Loss = &s.Loss
	}
	return f
}

// finite is a figure that JSON can hold: 0 in place of NaN and infinities.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
