package dashboard

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// States of a member, in addition to those of package control.
	waiting = "waiting" // no step yet, and fewer peers are present than the run needs
	leaving = "leaving"
	lost    = "lost" // gone without notice before the work was done

	// A member's figures are stale when missedDigests of its digests are overdue, or when the flock has made a given
	// share of all its steps since: losses fall quickly.
	missedDigests = 3
	staleShare    = 0.25
	// maxLost bounds the lost members that are shown.
	maxLost = 32
)

// stateOf is the state of a member in a word.
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

// stale tells whether a member's digest is too old to describe the run. Members send digests after every, and less
// often in a larger run.
func (v *view) stale(m control.Member, every time.Duration) bool {
	const messages = 2 // a digest, and a name with it
	timeout := missedDigests * max(every, time.Duration(messages*v.Total)*control.DigestShare)
	return time.Since(m.Received) > timeout || float64(m.FlockSteps) < (1-staleShare)*float64(v.FlockSteps)
}

// losses are lost members, which the page shows in their last state.
type losses []member

// notice adds members that were present before and are gone now, up to the number of lost members that the peer has
// counted meanwhile: others may have left regularly. It removes members that are back, under their id or their name.
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
