package stats

import (
	"fmt"
	"math"
	"time"
)

// Alarm says that a person should look at a peer: its name, since when it is so without a break, and what is so, in words.
type Alarm struct {
	Name, Text string // the name is peer-lost, distance-grows, no-exchange, checkpoint-old, accuracy-falls or over-budget
	Since      time.Time
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

// keep takes a reading, and returns the oldest of the window and the mean distance.
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
	for _, r := range a.seen {
		mean += r.Distance / float64(len(a.seen))
	}
	if !math.IsNaN(now.Accuracy) {
		a.best = max(a.best, now.Accuracy)
	}
	return a.seen[0], mean
}

// See judges a reading, which is not before the last, and returns the alarms that are raised now.
func (a *Alarms) See(now Reading) (raised []Alarm) {
	old, mean := a.keep(now)
	raise := func(name string, is bool, format string, args ...any) {
		if !is {
			delete(a.since, name)
			return
		}
		if a.since[name].IsZero() {
			a.since[name] = now.At
		}
		raised = append(raised, Alarm{name, fmt.Sprintf(format, args...), a.since[name]})
	}
	span, last := now.At.Sub(old.At), now.Exchanged
	if a.due.After(last) {
		last = a.due
	}
	silent, hourly := now.At.Sub(last), (now.Moved-old.Moved)/span.Hours()
	raise("peer-lost", now.Lost > old.Lost, "members lost within %.0f minutes: %d", alarmWindow.Minutes(), now.Lost-old.Lost)
	raise("distance-grows", span >= alarmShort && now.Distance > alarmFactor*mean, "models are %.3g apart, and %.3g in the mean", now.Distance, mean)
	raise("no-exchange", now.Exchanges && silent > alarmSilence, "no exchange for %s", silent.Round(time.Second))
	raise("checkpoint-old", now.SaveEvery > 0 && now.Saved > alarmFactor*now.SaveEvery, "the last checkpoint is %s old, and one is due every %s", now.Saved.Round(time.Second), now.SaveEvery)
	raise("accuracy-falls", now.Accuracy < a.best-alarmDrop, "accuracy is %.1f %%, and was %.1f %%", 100*now.Accuracy, 100*a.best)
	raise("over-budget", now.Budget > 0 && span >= alarmShort && hourly > alarmExcess*now.Budget, "exchanges move %.3g bytes an hour, of %.3g", hourly, now.Budget)
	return raised
}
