package presence

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// duplicateLook is the least time between two checks for another process with this peer's key.
const duplicateLook = 5 * time.Second

// duplicates is what is known about another process with this peer's key.
type duplicates struct {
	looked time.Time
	gone   atomic.Bool // this peer is the later one, and announces nothing more
}

// lookForDuplicate connects to the addresses in the record of another life of this peer, to see
// whether that life still runs. A full handshake tells it from this process, and an ended life
// does not answer. A peer that finds one before it has been announced is the later one.
func (r *Presence) lookForDuplicate(now time.Time) {
	if now.Sub(r.duplicates.looked) < duplicateLook {
		return
	}
	other, known := r.config.Membership.Last(r.config.Transport.Self())
	if !known {
		return
	}
	r.duplicates.looked = now
	later := !r.record.announced
	for _, address := range other.Addresses {
		r.config.Life.Spawn(func(ctx context.Context) {
			_, err := r.config.Transport.Connect(ctx, r.named(address))
			if !errors.Is(err, transport.ErrDuplicate) {
				return // it has ended, or cannot be reached from here
			}
			r.duplicates.gone.Store(r.duplicates.gone.Load() || later)
			r.config.Arrival.MeetDuplicate(address, err, later)
		})
	}
}

// named is an address with the expected identity, if it is a multiaddr.
func (r *Presence) named(address string) string {
	if !strings.HasPrefix(address, "/") {
		return address
	}
	return address + "/p2p/" + string(r.config.Transport.Self())
}
