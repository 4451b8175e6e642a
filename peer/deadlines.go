package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// A partner that is cut off or frozen says nothing, and gossip takes seconds to call
// it dead. How long to wait for it follows from how long it has made this peer wait
// while all was well, on whichever side of an exchange: that holds what the round trip
// and the rate of the link, the slices' size and the machines at both ends come to.
// docs/design/018 says why.

const (
	// leastPatience is the shortest bound of the wait for a frame: long enough for a
	// process that is short of processor time, and less than 3 s with what a transport
	// may add to a deadline.
	leastPatience = 2500 * time.Millisecond
	// leastOpening is the shortest bound of the wait for the first sign of a partner that
	// was accepted, whose place nobody else has meanwhile. One that is not measured yet, or
	// was late, has that and twice as long the next time.
	leastOpening = time.Second
	// slack is how many times longer than before a wait, or an exchange, may last.
	slack = 4
	// tempoDecay is what is left of the longest wait after another exchange.
	tempoDecay = 0.8
	// maxLate bounds how often a partner's time is doubled because it was too short.
	maxLate = 4
	// maxTempos bounds the partners whose tempo is remembered.
	maxTempos = 256
)

// errLate: an exchange that moved on, but too slowly.
var errLate = errors.New("the exchange took several times longer than those with this partner before, and was given up")

// tempos remembers how long partners make this peer wait. The zero value is ready.
type tempos struct {
	mu    sync.Mutex
	known map[seam.PeerID]*tempo
}

// tempo is how long one partner makes this peer wait.
type tempo struct {
	wait time.Duration // for a frame, at most
	open time.Duration // of this, from the answer to a proposal to the partner's next sign
	took time.Duration // an exchange, at most
	late int           // exchanges in a row that ran out of time
	seen time.Time
}

// patience bounds the wait for a partner's next frame; most is the bound of all.
func (t *tempos) patience(partner seam.PeerID, most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(partner).patience(most)
}

// opening bounds the wait for the first sign of a partner that was accepted; most is the
// bound of all.
func (t *tempos) opening(partner seam.PeerID, most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(partner).opening(most)
}

// budget bounds an exchange with a partner; most is the bound of all, and what one
// gets with which no exchange has been completed.
func (t *tempos) budget(partner seam.PeerID, most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of(partner)
	if k.took == 0 {
		return most
	}
	return min((k.base()+slack*k.took)<<k.late, most)
}

func (t *tempos) of(partner seam.PeerID) tempo {
	if k := t.known[partner]; k != nil {
		return *k
	}
	return tempo{}
}

func (k tempo) patience(most time.Duration) time.Duration {
	return min(k.base()<<k.late, most)
}

// opening bounds the wait for the first sign of a partner that was accepted: a few of the
// round trips that it took before.
func (k tempo) opening(most time.Duration) time.Duration {
	return min(max(leastOpening, slack*k.open)<<k.late, k.patience(most))
}

// base bounds the wait for a frame where the last exchange did not run out of time.
func (k tempo) base() time.Duration { return max(leastPatience, slack*k.wait) }

// ended takes what an exchange that is over has shown of a partner.
func (t *tempos) ended(partner seam.PeerID, longest, open, took time.Duration, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.known[partner]
	if k == nil {
		if t.known == nil {
			t.known = make(map[seam.PeerID]*tempo)
		}
		t.makeRoom()
		k = &tempo{}
		t.known[partner] = k
	}
	k.seen = now
	switch {
	case err == nil:
		k.wait, k.open, k.took, k.late = faded(k.wait, longest), faded(k.open, open), faded(k.took, took), 0
	case ranOut(err):
		k.late = min(k.late+1, maxLate)
	}
}

// makeRoom forgets the partner that was not met for the longest time, if there are too
// many.
func (t *tempos) makeRoom() {
	if len(t.known) < maxTempos {
		return
	}
	var oldest seam.PeerID
	for id, k := range t.known {
		if o := t.known[oldest]; o == nil || k.seen.Before(o.seen) {
			oldest = id
		}
	}
	delete(t.known, oldest)
}

// faded is the longer of a sample and what is left of those before.
func faded(before, sample time.Duration) time.Duration {
	return max(sample, time.Duration(tempoDecay*float64(before)))
}

// ranOut tells whether an exchange failed because time was up, and might do with more.
func ranOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, errLate) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// patience bounds the wait for the next frame of a partner.
func (p *Peer) patience(partner seam.PeerID) time.Duration {
	return p.tempos.patience(partner, p.config.Exchange.Stall)
}

// limit bounds what is left of an exchange by several times what others with its
// partner took, on a lane.
func (p *Peer) limit(x *tracked, t *talk) {
	t.until = x.began.Add(p.tempos.budget(seam.PeerID(x.event.Peer), p.config.Exchange.Deadline))
}

// wait is the deadline for the next frame, whose wait begins at a moment.
func (t *talk) wait(began time.Time) (deadline time.Time, err error) {
	deadline = began.Add(t.stall)
	switch {
	case t.until.IsZero() || deadline.Before(t.until):
		return deadline, nil
	case began.Before(t.until):
		return t.until, nil
	}
	return deadline, errLate
}

// learn takes what an exchange that is over has shown of its partner.
func (p *Peer) learn(x *tracked, err error) {
	p.tempos.ended(seam.PeerID(x.event.Peer), time.Duration(x.longest.Load()), x.opened, time.Since(x.began), err, time.Now())
}

// waited notes the longest wait for a frame of a lane.
func (x *tracked) waited(t *talk) {
	for {
		longest := x.longest.Load()
		if int64(t.longest) <= longest || x.longest.CompareAndSwap(longest, int64(t.longest)) {
			return
		}
	}
}
