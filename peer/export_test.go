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
