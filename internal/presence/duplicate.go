package presence

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// duplicateLook is the least time between two looks for another process with this peer's key.
const duplicateLook = 5 * time.Second

// duplicates is what is known of another process with this peer's key.
type duplicates struct {
	looked time.Time
	gone   atomic.Bool // this peer is the later one, and says no more
}

// lookForDuplicate asks at the addresses that another life of this peer has signed whether it is
// still there: a whole handshake tells it from this process, and a life that has ended does
// not answer. Who finds it before members have heard of this peer came later.
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

// named is an address with the identity that is looked for there, if it is a multiaddr.
func (r *Presence) named(address string) string {
	if !strings.HasPrefix(address, "/") {
		return address
	}
	return address + "/p2p/" + string(r.config.Transport.Self())
}
