package conversations

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// An exchange that breaks off can leave slices in doubt at the passive side, which
// asks the active one about them: before it answers the next proposal, and of its
// own accord until then.

// Bounds of asking.
const (
	// The first question outside a proposal comes repairFirst after the exchange broke off,
	// each further one after twice the time, up to repairMost.
	repairFirst = 500 * time.Millisecond
	repairMost  = 30 * time.Second
	// maxUnanswered is the number of unanswered questions after which a partner counts as silent.
	maxUnanswered = 4
	// doubtMost is how long slices in doubt with one partner may keep this peer from serving
	// others, and doubtRest how many times longer it takes until they may do so again. Otherwise
	// a few partners that answer just in time could stop everybody's exchanges permanently.
	doubtMost = 10 * time.Second
	doubtRest = 8
	// maxHolders bounds the partners for which this time is remembered.
	maxHolders = 256
)

// repairs asks partners about slices in doubt, and knows when to ask whom.
type repairs struct {
	*base
	mu      sync.Mutex
	waiting map[transport.PeerID]repair
	looked  time.Time                                   // when they were last looked at
	holders *simplelru.LRU[transport.PeerID, time.Time] // when the time that each has held others up expires
}

// repair is the state of asking one partner.
type repair struct {
	at    time.Time     // when to ask next
	after time.Duration // the wait before that
	asked int           // questions without an answer
	busy  bool
}

// silent tells whether slices in doubt with a partner no longer count, because it has left
// too many questions unanswered or has held others up for too long.
func (r *repairs) silent(partner transport.PeerID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[partner].asked >= maxUnanswered || r.spent(partner, now)
}

// spent tells whether a partner has held others up for as long as it may. The lock is held.
func (r *repairs) spent(partner transport.PeerID, now time.Time) bool {
	if r.holders == nil {
		return false
	}
	forgotten, _ := r.holders.Peek(partner)
	return forgotten.Sub(now) >= doubtRest*doubtMost
}

// hold counts the time for which a partner has held others up. The lock is held.
func (r *repairs) hold(partner transport.PeerID, since, now time.Time) {
	if r.spent(partner, now) {
		return
	}
	if r.holders == nil {
		r.holders, _ = simplelru.NewLRU[transport.PeerID, time.Time](maxHolders, nil) // fails of sizes that are not positive
	}
	forgotten, _ := r.holders.Get(partner)
	if forgotten.Before(since) {
		forgotten = since
	}
	if forgotten = forgotten.Add((1 + doubtRest) * now.Sub(since)); forgotten.Sub(now) > doubtRest*doubtMost {
		forgotten = now.Add(doubtRest * doubtMost)
	}
	r.holders.Add(partner, forgotten)
}

// due returns the partners, of those given, that should be asked now, and notes
// that they are being asked.
func (r *repairs) due(partners []string, now time.Time) (ask []transport.PeerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := make(map[transport.PeerID]repair, len(partners))
	for _, partner := range partners {
		id := transport.PeerID(partner)
		turn, known := r.waiting[id]
		if !known {
			turn = repair{at: now.Add(repairFirst), after: repairFirst}
		} else {
			r.hold(id, r.looked, now)
		}
		if !turn.busy && !turn.at.After(now) {
			turn.busy = true
			ask = append(ask, id)
		}
		keep[id] = turn
	}
	r.waiting, r.looked = keep, now
	return ask
}

// asked notes the end of asking.
func (r *repairs) asked(partner transport.PeerID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn, ok := r.waiting[partner]; ok {
		turn.asked++
		turn.busy, turn.after = false, min(2*turn.after, repairMost)
		turn.at = now.Add(turn.after)
		r.waiting[partner] = turn
	}
}

// Repair asks those partners about slices in doubt whose turn it is, and gives up what is
// too old.
func (r *repairs) Repair(now time.Time) {
	r.Host.Ledger.Expire(r.now())
	for _, partner := range r.due(r.Host.Ledger.Partners(), now) {
		r.Life.Tasks.Spawn(func() {
			if err := r.inquire(r.Life.Working, partner); err != nil {
				r.Log.Debug("a partner did not answer about a broken exchange; it is asked again later",
					zap.String("peer", string(partner)), zap.Error(err))
			}
			r.asked(partner, time.Now())
		})
	}
}

// inquire asks a partner about everything that is in doubt with it.
func (r *repairs) inquire(ctx context.Context, partner transport.PeerID) error {
	open, cancel := context.WithTimeout(ctx, r.Stall)
	stream, err := r.Transport.Open(open, partner, transport.ProtocolExchange, r.Host.Run)
	cancel()
	if err != nil {
		return err
	}
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	t := r.conversation(stream)
	defer r.done(t)
	var q session.Inquiry
	q.Begin(&r.Host, r.now(), partner)
	t.drive(&q, nil)
	result := q.End(r.now(), session.Seen{})
	t.finish(result.Ending)
	return result.Err
}

// Unresolved is the number of exchanges in doubt with present members: those with others
// cannot disturb an exchange.
func (r *repairs) Unresolved() int {
	return r.Host.Ledger.Unresolved(func(partner string) bool {
		return r.Flock.Here(transport.PeerID(partner)) && !r.silent(transport.PeerID(partner), time.Now())
	})
}

// A peer that leaves lets the exchanges in flight end, and then repairs broken exchanges
// with the members that are still there: it asks about the slices that it has in doubt, and
// stays to answer the questions of partners that may have some.

const (
	// farewellEvery is the time between two attempts to repair.
	farewellEvery = 200 * time.Millisecond
	// farewellTries is the number of attempts after which a partner that does not answer is
	// given up. What is in doubt with it is lost.
	farewellTries = 3
	// questionTime is the time after a broken exchange within which the partner asks.
	questionTime = 2 * time.Second
)

// RepairAll repairs what is in doubt with the members present, within a time.
func (r *repairs) RepairAll(limit time.Duration) {
	ctx, cancel := context.WithTimeout(r.Life.Running, limit)
	defer cancel()
	ticker := time.NewTicker(farewellEvery)
	defer ticker.Stop()
	tries := make(map[transport.PeerID]int)
	for ctx.Err() == nil {
		r.Host.Ledger.Expire(r.now()) // it notes which exchanges have expired
		asked := r.askAll(ctx, tries)
		if asked == 0 && r.Host.Ledger.Unasked(r.now(), questionTime) == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if waiting, _ := r.Host.Ledger.InDoubt(); waiting > 0 {
		r.Log.Info("leaving with slices in doubt; the partners do not answer", zap.Int("slices", waiting))
	}
}

// askAll asks all partners with whom something is in doubt, at once, and returns how
// many there were to ask.
func (r *repairs) askAll(ctx context.Context, tries map[transport.PeerID]int) (asked int) {
	var all sync.WaitGroup
	for _, partner := range r.Host.Ledger.Partners() {
		id := transport.PeerID(partner)
		if tries[id] >= farewellTries || !r.Flock.Here(id) {
			continue
		}
		tries[id]++
		asked++
		all.Go(func() {
			if err := r.inquire(ctx, id); err != nil {
				r.Log.Debug("a partner did not answer about a broken exchange", zap.String("peer", partner), zap.Error(err))
			}
		})
	}
	all.Wait()
	return asked
}

// kept is the number of partners that are asked.
func (r *repairs) kept() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}
