package peer

import (
	"context"
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// ShortenQuarantine has the peer keep offenders away for other times than those that
// a flock needs. It is no setting: whoever could turn the terms down for a whole flock
// would let a liar back in as often as it likes.
func (p *Peer) ShortenQuarantine(first, most time.Duration) {
	p.quarantine.mu.Lock()
	defer p.quarantine.mu.Unlock()
	p.quarantine.first, p.quarantine.most = first, most
}

// IsRefusal tells whether err is a partner's REFUSE in the middle of an exchange.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// IsAbort tells whether err says that this side gave the exchange up.
func IsAbort(err error) bool { return errors.Is(err, errAborted) || errors.Is(err, errLaneMissing) }

// Converse tells a member control messages as they are and returns what it answers.
func Converse(ctx context.Context, from seam.Transport, run string, member seam.PeerID, messages [][]byte) ([][]byte, error) {
	return converse(ctx, from, run, member, messages, DefaultStall)
}

// Kept counts what a peer remembers of others.
func (p *Peer) Kept() map[string]int {
	kept := map[string]int{}
	p.flock.mu.Lock()
	kept["present members"], kept["departed members"] = len(p.flock.accounts), p.flock.departed.Len()
	p.flock.mu.Unlock()
	p.tempos.mu.Lock()
	kept["tempos"] = len(p.tempos.known)
	p.tempos.mu.Unlock()
	p.plans.links.mu.Lock()
	kept["links"] = len(p.plans.links.known)
	p.plans.links.mu.Unlock()
	p.sessions.mu.Lock()
	kept["sessions"] = len(p.sessions.open)
	p.sessions.mu.Unlock()
	p.underway.mu.Lock()
	kept["exchanges under way"] = len(p.underway.all)
	p.underway.mu.Unlock()
	p.repairs.mu.Lock()
	kept["repairs"] = len(p.repairs.waiting)
	p.repairs.mu.Unlock()
	return kept
}

// KeptAtMost is the bound of what Kept counts.
func KeptAtMost(what string) int {
	return map[string]int{"departed members": maxDeparted, "tempos": maxTempos, "links": maxLinks}[what]
}

// Cut is how a peer cuts its model: the digest, and the length of a slice.
func (p *Peer) Cut() (digest uint64, sliceLen int) { return p.cut, p.replica.SliceLen() }

// FoundReachable is what the transport calls.
func (p *Peer) FoundReachable(reachable bool) { p.foundReachable(reachable) }
