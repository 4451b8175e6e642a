package trainer

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/ewma"
)

// smoothing is the weight of a new step in the running means.
const smoothing = 0.1

// pace is the speed of a trainer and the length of its steps.
type pace struct {
	length  ewma.Mean // of a step
	between ewma.Mean // seconds from one step to the next
	last    time.Duration
	ticking bool // there is a last step
	speed   speed
}

// tick takes steps made since the last, and returns about the time from one to the next.
func (p *pace) tick(now time.Duration, steps int) time.Duration {
	if p.ticking {
		p.between.Add((now-p.last).Seconds()/float64(steps), smoothing)
	}
	p.last, p.ticking = now, true
	return time.Duration(p.between.Value() * float64(time.Second))
}

// pause is the time since the last step, in usual times from one step to the next, 0 if that is
// not known.
func (p *pace) pause(now time.Duration) float64 {
	if usual := p.between.Value(); usual > 0 {
		return (now - p.last).Seconds() / usual
	}
	return 0
}

// rest leaves out the time until the next step.
func (p *pace) rest() { p.ticking = false }

// stride takes the length of a step, and returns the running mean.
func (p *pace) stride(length float64) float64 {
	p.length.Add(length, smoothing)
	return p.length.Value()
}

// speedWindow is the time over which a peer's speed is compared with the others': news of
// their steps is up to a few announcements old.
const speedWindow = 5 * time.Second

// speed is the speed of a trainer, relative to the mean of the flock's peers.
type speed struct {
	begun    bool
	since    time.Duration
	own, all uint64 // steps then
	value    float64
}

// of takes the steps of the trainer and of all peers together, and returns the speed
// over the last window, 0 if there was none yet.
func (s *speed) of(own, all uint64, peers int, now time.Duration) float64 {
	switch {
	case !s.begun:
		s.begun, s.since, s.own, s.all = true, now, own, all
	case now-s.since >= speedWindow && all > s.all && own >= s.own:
		s.value = float64(own-s.own) * float64(peers) / float64(all-s.all)
		s.since, s.own, s.all = now, own, all
	}
	return s.value
}
