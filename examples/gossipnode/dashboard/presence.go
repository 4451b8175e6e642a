package dashboard

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// States of a member, beside those of package control.
	waiting = "waiting" // it has taken no step, and fewer peers are here than are to begin
	leaving = "leaving"
	lost    = "lost" // it went before the work was done, without a word

	// What a member has told is stale when so many of its digests have not come, or when
	// the flock has made so great a share of all its steps since: losses fall quickly.
	missedDigests = 3
	staleShare    = 0.25
	// maxLost bounds the members that are lost and still shown.
	maxLost = 32
)

// stateOf is what a member is about, in a word.
func (v *view) stateOf(m control.Member, self stats.Peer, minPeers int) string {
	steps := m.Steps
	if m.ID == self.Self {
		steps -= min(steps, self.Resumed)
	}
	switch {
	case m.State == control.Training && steps == 0 && v.Total < minPeers:
		return waiting
	case m.Leaving && m.State != control.Over:
		return leaving
	}
	return m.State.String()
}

// stale tells whether a member's digest says nothing of the run as it is, where members tell each so
// often, and more seldom the more they are.
func (v *view) stale(m control.Member, every time.Duration) bool {
	const messages = 2 // a digest, and a name with it
	timeout := missedDigests * max(every, time.Duration(messages*v.Total)*control.DigestShare)
	return time.Since(m.Received) > timeout || float64(m.FlockSteps) < (1-staleShare)*float64(v.FlockSteps)
}

// losses are members that are lost: the page shows them as they were.
type losses []member

// notice keeps who was here before and is not now, as many as the peer has counted as lost
// meanwhile: others may have left between two looks. It forgets who is back, under its id or
// its name.
func (l *losses) notice(before, now view) {
	here := func(id transport.PeerID) bool {
		return slices.ContainsFunc(now.members, func(m control.Member) bool { return m.ID == id })
	}
	more := now.Lost - before.Lost
	for _, m := range before.Members {
		if more > 0 && m.State != lost && m.State != leaving && m.State != control.Over.String() && !here(m.ID) {
			m.State, m.Stale = lost, true
			*l = append(*l, m)
			more--
		}
	}
	*l = slices.DeleteFunc(*l, func(m member) bool {
		return here(m.ID) || m.Name != "" && slices.ContainsFunc(now.Members, func(n member) bool { return n.Name == m.Name })
	})
	*l = (*l)[max(0, len(*l)-maxLost):]
}
