package roster

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// twinLook is the least time between two looks for another process with this peer's key.
const twinLook = 5 * time.Second

// twins is what is known of another process with this peer's key.
type twins struct {
	looked time.Time
	gone   atomic.Bool // this peer is the later one, and says no more
}

// lookForTwin asks at the addresses that another life of this peer has signed whether it is
// still there: a whole handshake tells it from this process, and a life that has ended does
// not answer. Who finds it before members have heard of this peer came later.
func (r *Roster) lookForTwin(now time.Time) {
	if now.Sub(r.twins.looked) < twinLook {
		return
	}
	other, known := r.config.Membership.Last(r.config.Transport.Self())
	if !known {
		return
	}
	r.twins.looked = now
	later := !r.record.told
	for _, address := range other.Addresses {
		r.config.Life.Spawn(func(ctx context.Context) {
			_, err := r.config.Transport.Connect(ctx, r.named(address))
			if !errors.Is(err, seam.ErrTwin) {
				return // it has ended, or cannot be reached from here
			}
			r.twins.gone.Store(r.twins.gone.Load() || later)
			r.config.Arrival.MeetTwin(address, err, later)
		})
	}
}

// named is an address with the identity that is looked for there, if it is a multiaddr.
func (r *Roster) named(address string) string {
	if !strings.HasPrefix(address, "/") {
		return address
	}
	return address + "/p2p/" + string(r.config.Transport.Self())
}
