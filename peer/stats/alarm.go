package stats

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Alarm says that a person should look at a peer: its name, since when it is so without a break, and what is so, in words.
type Alarm struct {
	Name, Text string // the name is peer-lost, distance-grows, no-exchange, checkpoint-old, accuracy-falls or over-budget
	Since      time.Time
}

// AlarmSet is a set of alarms: what members tell each other of theirs.
type AlarmSet uint8

// alarms are all, in the order of an AlarmSet's bits, with what is said of them where only that is known.
var alarms = [...]struct{ name, text string }{
	lost:    {"peer-lost", "members were lost of late"},
	grows:   {"distance-grows", "models are farther apart than they were"},
	silent:  {"no-exchange", "it has not exchanged of late"},
	unsaved: {"checkpoint-old", "the last checkpoint is old"},
	falls:   {"accuracy-falls", "accuracy is below its best"},
	exceeds: {"over-budget", "exchanges move more bytes than the budget allows"},
}

const (
	lost = iota
	grows
	silent
	unsaved
	falls
	exceeds
)

// SetOf is the set of alarms that are raised.
func SetOf(raised []Alarm) (set AlarmSet) {
	for i, one := range alarms {
		if slices.ContainsFunc(raised, func(a Alarm) bool { return a.Name == one.name }) {
			set |= 1 << i
		}
	}
	return set
}

// Reading is what is known of a peer at a moment. What is NaN, zero or a zero time is not known, and raises no alarm.
type Reading struct {
	At time.Time
	// Lost counts members that have gone without leaving.
	Lost int
	// Exchanges tells that the peer trains and others are there, Exchanged when it last exchanged with one.
	Exchanges bool
	Exchanged time.Time
	// Distance is the consensus distance, Accuracy that on held-out data, 0 to 1.
	Distance, Accuracy float64
	// Saved is the age of the last checkpoint, SaveEvery the time between two.
	Saved, SaveEvery time.Duration
	// Moved counts bytes of exchanges that the peer began, Budget bounds them, in bytes an hour.
	Moved, Budget float64
	// Told are the alarms that the peer tells of itself; they are raised whatever else is known.
	Told AlarmSet
}

// When alarms are raised. The sample's Prometheus rules have the same bounds.
const (
	alarmWindow  = 10 * time.Minute // over which lost members, distances and bytes are judged
	alarmShort   = time.Minute      // less of it says nothing of distances and bytes
	alarmSilence = 2 * time.Minute  // without an exchange
	alarmFactor  = 2                // of the mean distance, and of the time between checkpoints
	alarmDrop    = 0.05             // from the best accuracy
	alarmExcess  = 1.1              // of the budget
	maxReadings  = 60               // that are kept, evenly over the window
)

// Alarms judges a peer by its readings, one after the other. It reads no clock. The zero value is ready.
type Alarms struct {
	seen  []Reading // of the window, the oldest first
	due   time.Time // exchanges are awaited since then, if there was none since
	best  float64   // accuracy
	since map[string]time.Time
}

// keep takes a reading, and returns the oldest of the window, and the mean of the distances that are known there: NaN if
// they have been known for too short a time.
func (a *Alarms) keep(now Reading) (old Reading, mean float64) {
	if a.since == nil {
		a.since = make(map[string]time.Time)
		if now.Exchanged.IsZero() {
			a.due = now.At
		}
	} else if !now.Exchanges {
		a.due = now.At
	}
	for len(a.seen) > 1 && now.At.Sub(a.seen[0].At) > alarmWindow {
		a.seen = a.seen[1:]
	}
	if n := len(a.seen); n == 0 || now.At.Sub(a.seen[n-1].At) >= alarmWindow/maxReadings {
		a.seen = append(a.seen[:n:n], now)
	}
	if !math.IsNaN(now.Accuracy) {
		a.best = max(a.best, now.Accuracy)
	}
	since, known := now.At, 0
	for _, r := range slices.Backward(a.seen) {
		if r.Distance > 0 {
			since, known, mean = r.At, known+1, mean+r.Distance
		}
	}
	if now.At.Sub(since) < alarmShort {
		return a.seen[0], math.NaN()
	}
	return a.seen[0], mean / float64(known)
}

// See judges a reading, which is not before the last, and returns the alarms that are raised now.
func (a *Alarms) See(now Reading) (raised []Alarm) {
	old, mean := a.keep(now)
	raise := func(i int, is bool, format string, args ...any) {
		name, text := alarms[i].name, alarms[i].text
		if is {
			text = fmt.Sprintf(format, args...)
		} else if now.Told&(1<<i) == 0 {
			delete(a.since, name)
			return
		}
		if a.since[name].IsZero() {
			a.since[name] = now.At
		}
		raised = append(raised, Alarm{name, text, a.since[name]})
	}
	span, last := now.At.Sub(old.At), now.Exchanged
	if a.due.After(last) {
		last = a.due
	}
	quiet, hourly := now.At.Sub(last), (now.Moved-old.Moved)/span.Hours()
	raise(lost, now.Lost > old.Lost, "members lost within %.0f minutes: %d", alarmWindow.Minutes(), now.Lost-old.Lost)
	raise(grows, now.Distance > alarmFactor*mean, "models are %.3g apart, and %.3g in the mean", now.Distance, mean)
	raise(silent, now.Exchanges && quiet > alarmSilence, "no exchange for %s", quiet.Round(time.Second))
	raise(unsaved, now.SaveEvery > 0 && now.Saved > alarmFactor*now.SaveEvery, "the last checkpoint is %s old, and one is due every %s", now.Saved.Round(time.Second), now.SaveEvery)
	raise(falls, now.Accuracy < a.best-alarmDrop, "accuracy is %.1f %%, and was %.1f %%", 100*now.Accuracy, 100*a.best)
	raise(exceeds, now.Budget > 0 && span >= alarmShort && hourly > alarmExcess*now.Budget, "exchanges move %.3g bytes an hour, of %.3g", hourly, now.Budget)
	return raised
}
