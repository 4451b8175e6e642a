package flock

import "time"

// Bounds of what a member is taken to do of which nothing has been heard yet.
const (
	// caution is how many times as fast as it was a member is taken to go on.
	caution = 2
	// silent is for how long after its last news a member is taken to go on at all, beyond
	// the time from one announcement to the next. Then the others take over what it leaves.
	silent = 2 * time.Second
	// Beginning is the same for a member whose speed is not known: it is taken to be about
	// to take its whole share. It is also for how long a peer waits at most, whatever the
	// others do.
	Beginning = 5 * time.Second
	// rested is how long after its last news a member that had stopped begins anew: one that stops and
	// begins in turn would always be about to take its share, and be waited for with each step.
	rested = time.Minute
)

const (
	// NewsTick is how often a member announces its progress while that changes, in a flock of
	// up to newsShare members: what others know of it lags by about as much.
	NewsTick = 300 * time.Millisecond
	// newsShare is the number of members that announce their steps that often. More
	// share as many announcements: each of them goes to all.
	newsShare = 16
)

// NewsEvery is the least time from one announcement of steps to the next in a flock of so many.
func NewsEvery(present int) time.Duration { return NewsTick * time.Duration(present) / newsShare }

// pace is how fast a member takes its steps, as far as its news tell.
type pace struct {
	steps    uint64    // as heard of last
	received time.Time // when that was
	from     uint64    // the steps at since, where the measuring begins
	since    time.Time
	speed    float64 // steps a second; 0 is not known
}

// begin forgets, of a member that did not train, how fast it was long ago: who has not begun is not slow.
func (p *pace) begin(idle bool, now time.Time) {
	if idle && now.Sub(p.received) >= rested {
		*p = pace{}
	}
}

// receive takes what a member has done by now.
func (p *pace) receive(steps uint64, now time.Time) {
	switch {
	case p.received.IsZero() || p.steps == 0 && steps > 0: // it has begun at some time since
		*p = pace{steps: steps, received: now, from: steps, since: now}
	case steps > p.steps:
		p.steps, p.received = steps, now
		if took := now.Sub(p.since); took >= NewsTick {
			p.speed, p.from, p.since = float64(steps-p.from)/took.Seconds(), steps, now
		}
	}
}

// ahead is how many more steps than those heard of a member may have taken, or be about to
// take if share is what it is to take in all; its news take so long to come. What it can take
// of its share before there is news is left to it.
func (p *pace) ahead(share uint64, lag time.Duration, now time.Time) uint64 {
	quiet := now.Sub(p.received)
	switch {
	case p.speed == 0 && quiet < Beginning+lag:
		return share - min(share, p.steps)
	case quiet >= silent+lag:
		return 0
	}
	fast := caution * p.speed
	soon := min(share-min(share, p.steps), uint64(fast*(quiet+NewsTick).Seconds())) // it waits for nobody with these
	return max(soon, uint64(fast*quiet.Seconds()))
}

// May tells whether this peer may take another step, of so many that all are to take. It may
// take its share whatever the others do: what is left, divided among those that are at work.
// Of what is beyond that it takes what the others will leave, as far as can be told: they are
// taken to go on as they did. So equal peers take no more steps than they were asked for, and
// nobody waits for long for one that is slow, or has died.
func (f *Flock) May(target uint64, now time.Time) bool {
	workers := max(f.workers.Load(), 1)
	share := (target - min(target, f.ended.Load()) + workers - 1) / workers // rounded up, so that nothing is left over
	if f.steps.Load() < share {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, lag := f.Total(), NewsEvery(1+len(f.present))
	for _, m := range f.present {
		if works(m.Record) {
			all = plus(all, m.pace.ahead(share, lag, now))
		}
	}
	return all < target
}

// Wait notes that this peer waits for news of the others before its next step, or no longer:
// they may wait for its own, so it announces its steps at once.
func (f *Flock) Wait(waits bool) { f.waits.Store(waits) }

// NewsDue tells whether this peer's steps are to be announced again, so long after the last time.
func (f *Flock) NewsDue(after time.Duration) bool {
	const sooner = 10 // times, for a peer that waits
	present, _ := f.Members()
	every := NewsEvery(present)
	return after >= every || f.waits.Load() && after >= every/sooner
}
