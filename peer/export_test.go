package peer

import (
	"errors"
	"time"
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
