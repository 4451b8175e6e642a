package flock

import "time"

// Bounds for the estimate of a member's steps since its last record.
const (
	// caution: a member is assumed to go on at up to caution times its former speed.
	caution = 2
	// silent is how long after its last record, beyond the usual time between two, a member
	// is assumed to go on. After that the others take over its steps.
	silent = 2 * time.Second
	// Beginning is the same for a member whose speed is not known, which is assumed to be
	// about to take its whole share. It is also the longest time that a peer waits for
	// others.
	Beginning = 5 * time.Second
	// rested: the speed of a member that had stopped is forgotten only so long after its last record.
	// Otherwise others would wait at each step for a member that repeatedly stops and begins.
	rested = time.Minute
)

const (
	// NewsTick is how often a member announces its progress at most, in a flock of up to newsShare members.
	NewsTick = 300 * time.Millisecond
	// newsShare is the largest number of members that announce at this rate. In a larger
	// flock the total rate of announcements stays the same, since each goes to all.
	newsShare = 16
	// A member announces what it has done when that is a newsPart of the work that is left to it: what others know of it lags by
	// about as much, so the nearer the end, the less. It does so every newsRest NewsTicks anyway, and every newsLongest; and when its
	// steps have doubled, else others would wait in the end for one whose speed they do not know yet.
	newsPart    = 64
	newsRest    = 16
	newsLongest = time.Minute
)

// NewsEvery is the least time from one announcement of steps to the next in a flock of so many.
func NewsEvery(present int) time.Duration { return NewsTick * time.Duration(present) / newsShare }

// newsWithin is the most time from one announcement of steps to the next, of a member that takes any.
func newsWithin(present int) time.Duration {
	return max(NewsEvery(present), min(newsRest*NewsEvery(present), newsLongest))
}

// pace is how fast a member takes its steps, according to its records.
type pace struct {
	steps    uint64        // in its last record
	received time.Time     // when that was
	between  time.Duration // from the news before to those
	from     uint64        // the steps at since, where the measuring begins
	since    time.Time
	speed    float64 // steps a second; 0 means not known
}

// begin resets the pace of a member that did not train, so that the pause does not count as slowness.
func (p *pace) begin(idle bool, now time.Time) {
	if idle && now.Sub(p.received) >= rested {
		*p = pace{}
	}
}

// receive takes the steps of a new record.
func (p *pace) receive(steps uint64, now time.Time) {
	switch {
	case p.received.IsZero() || p.steps == 0 && steps > 0: // it began at an unknown time since then
		*p = pace{steps: steps, received: now, from: steps, since: now}
	case steps > p.steps:
		p.steps, p.received, p.between = steps, now, now.Sub(p.received)
		if took := now.Sub(p.since); took >= NewsTick {
			p.speed, p.from, p.since = float64(steps-p.from)/took.Seconds(), steps, now
		}
	}
}

// ahead is how many steps beyond its last record a member of so many may have taken, or be about to
// take, if its share is share. The part of its share that it can take before the next record is left to it.
func (p *pace) ahead(share uint64, present int, now time.Time) uint64 {
	quiet, lag := now.Sub(p.received), max(NewsEvery(present), min(p.between, newsWithin(present)))
	switch {
	case p.speed == 0 && quiet < Beginning+lag:
		return share - min(share, p.steps)
	case quiet >= silent+lag:
		return 0
	}
	fast := caution * p.speed
	soon := min(share-min(share, p.steps), uint64(fast*(quiet+NewsTick).Seconds())) // it takes these without waiting
	return max(soon, uint64(fast*quiet.Seconds()))
}

// May tells whether this peer may take another step towards the flock's target. It may always
// take its share: the remaining steps divided among the working members. Beyond that it takes
// the steps that the others are expected to leave at their present speed. So equal peers take
// no more steps than required, and nobody waits for long for a member that is slow or has
// died.
func (f *Flock) May(target uint64, now time.Time) bool {
	workers := max(f.workers.Load(), 1)
	share := (target - min(target, f.ended.Load()) + workers - 1) / workers // rounded up, so that nothing is left over
	if f.steps.Load() < share {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.Total()
	for _, m := range f.present {
		if works(m.Record) {
			all = plus(all, m.pace.ahead(share, 1+len(f.present), now))
		}
	}
	return all < target
}

// Wait notes whether this peer waits for news of the others before its next step. Others may
// wait for its news too, so it then announces its steps at once.
func (f *Flock) Wait(waits bool) { f.waits.Store(waits) }

// NewsDue tells whether this peer's steps are to be announced again, with so many more of them at this time after the last
// announcement, while the flock is to take target steps, or goes on for ever if that is 0.
func (f *Flock) NewsDue(after time.Duration, more, target uint64) bool {
	const sooner = 10 // times sooner, for a peer that waits
	present, _ := f.Members()
	every := NewsEvery(present)
	if f.waits.Load() && after >= every/sooner || after >= newsWithin(present) {
		return true
	}
	left := (target - min(target, f.Total())) / max(f.workers.Load(), 1)
	return after >= every && (2*more >= f.Steps()-f.Resumed() || target > 0 && more >= left/newsPart)
}
