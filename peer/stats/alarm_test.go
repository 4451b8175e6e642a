package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAlarmsAreRaisedAndRecover: each alarm, and no other, is raised when what it is about goes wrong, tells since when, and
// is gone when that is mended. Time is made up.
func TestAlarmsAreRaisedAndRecover(t *testing.T) {
	began := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		spoil func(r *Reading, after time.Duration) // from 20 minutes to 25 minutes after the beginning
		late  time.Duration                         // until the alarm is raised, at most
		text  string
	}{
		"peer-lost":      {func(r *Reading, _ time.Duration) { r.Lost++ }, 0, "members lost within 10 minutes: 1"},
		"distance-grows": {func(r *Reading, _ time.Duration) { r.Distance *= 2.5 }, 0, "models are 2.5 apart, and 1"},
		"no-exchange":    {func(r *Reading, after time.Duration) { r.Exchanged = r.At.Add(-after) }, 2*time.Minute + time.Second, "no exchange for 2m1s"},
		"checkpoint-old": {func(r *Reading, after time.Duration) { r.Saved += after }, time.Minute, "checkpoint is 1m1s old, and one is due every 30s"},
		"accuracy-falls": {func(r *Reading, _ time.Duration) { r.Accuracy -= 0.06 }, 0, "accuracy is 84.0 %, and was 90.0 %"},
		"over-budget":    {func(r *Reading, after time.Duration) { r.Moved += 1000 * after.Seconds() }, time.Minute, "of 3.6e+06"},
	} {
		var a Alarms
		var moved float64
		raised, gone := time.Time{}, time.Time{}
		for second := range 60 * 60 {
			after := time.Duration(second) * time.Second
			r := Reading{At: began.Add(after), Lost: 3, Exchanges: true, Exchanged: began.Add(after - 5*time.Second), Distance: 1, Accuracy: 0.9, Saved: 30 * time.Second, SaveEvery: 30 * time.Second, Moved: moved, Budget: 3.6e6}
			bad := after - 20*time.Minute
			if bad >= 0 && bad < 5*time.Minute || bad >= 0 && name == "peer-lost" {
				c.spoil(&r, bad)
			}
			moved += 950 // a second
			if bad >= 0 && bad < 5*time.Minute && name == "over-budget" {
				moved = r.Moved + 950
			}
			all := a.See(r)
			for _, one := range all {
				if one.Name != name || one.Since.Before(began.Add(20*time.Minute)) {
					t.Fatalf("%s: after %s %+v", name, after, one)
				}
				if raised.IsZero() && (!strings.Contains(one.Text, c.text) || !one.Since.Equal(r.At)) {
					t.Errorf("%s: %+v, want %q", name, one, c.text)
				}
			}
			switch {
			case len(all) == 1 && raised.IsZero():
				raised = r.At
			case len(all) == 0 && !raised.IsZero() && gone.IsZero():
				gone = r.At
			case len(all) > 0 && !gone.IsZero():
				t.Fatalf("%s comes and goes", name)
			}
		}
		if late := raised.Sub(began.Add(20 * time.Minute)); raised.IsZero() || late > c.late+time.Second {
			t.Errorf("%s is raised %s late", name, late)
		}
		if lasts := gone.Sub(raised); gone.IsZero() || lasts > 16*time.Minute {
			t.Errorf("%s is there for %s", name, lasts)
		}
	}
}

// TestWhatIsNotKnownRaisesNothing: of a peer of which nothing is known, or that has nothing to do, there are no alarms,
// and what is kept of it is bounded, however often one looks.
func TestWhatIsNotKnownRaisesNothing(t *testing.T) {
	var a Alarms
	random, at := rand.New(rand.NewPCG(1, 2)), time.Unix(0, 0)
	for range 20_000 {
		at = at.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		if all := a.See(Reading{At: at, Accuracy: math.NaN(), Exchanged: time.Unix(1, 0)}); len(all) > 0 || len(a.seen) > maxReadings+1 {
			t.Fatalf("%+v, %d kept", all, len(a.seen))
		}
	}
}

// TestDistancesThatAreNotKnown: neither they nor NaN hide that models grow apart, or make it seem so.
func TestDistancesThatAreNotKnown(t *testing.T) {
	for _, none := range []float64{0, math.NaN()} {
		var a Alarms
		for second := range 600 {
			r := Reading{At: time.Unix(int64(second), 0), Accuracy: math.NaN(), Distance: none}
			if second >= 200 {
				r.Distance = 1
			}
			if second >= 300 {
				r.Distance = 5
			}
			all := a.See(r)
			if grows := len(all) == 1 && all[0].Name == "distance-grows"; second < 300 && len(all) > 0 || second == 301 && !grows {
				t.Fatalf("none is %g: after %d s: %+v", none, second, all)
			}
		}
	}
}

// TestOneLook: a peer that is seen for the first time is judged by what it tells itself. One that has only come, or was
// paused, gets its time.
func TestOneLook(t *testing.T) {
	now := time.Unix(1e9, 0)
	names := func(all []Alarm) (names []string) {
		for _, one := range all {
			names = append(names, one.Name)
		}
		return names
	}
	var a, b Alarms
	if got := names(a.See(Reading{At: now, Exchanges: true, Exchanged: now.Add(-time.Hour), Lost: 2, Distance: 5})); !slices.Equal(got, []string{"no-exchange"}) {
		t.Error(got)
	}
	for _, c := range []struct {
		after     time.Duration
		exchanges bool
		want      bool
	}{{0, true, false}, {time.Minute, true, false}, {121 * time.Second, true, true}, {3 * time.Minute, false, false}, {4 * time.Minute, true, false}, {302 * time.Second, true, true}} {
		if got := b.See(Reading{At: now.Add(c.after), Exchanges: c.exchanges}); len(got) > 0 != c.want {
			t.Errorf("after %s: %+v", c.after, got)
		}
	}
}

// TestAlarmsAreTold: what a peer tells is raised at who hears it, since it was heard first, with figures where they are known, and
// ends with it; telling it again loses nothing.
func TestAlarmsAreTold(t *testing.T) {
	began := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var a Alarms
	reading := func(second int, told AlarmSet) Reading {
		return Reading{At: began.Add(time.Duration(second) * time.Second), Accuracy: math.NaN(), Told: told}
	}
	if raised := a.See(reading(0, 0)); len(raised) != 0 {
		t.Errorf("raised by nothing: %+v", raised)
	}
	all := a.See(reading(1, 1<<len(alarms)-1))
	for i, one := range all {
		if one.Name != alarms[i].name || one.Text != alarms[i].text || one.Since != began.Add(time.Second) {
			t.Errorf("alarm %d: %+v", i, one)
		}
	}
	if len(all) != len(alarms) || SetOf(all) != 1<<len(alarms)-1 || SetOf(nil) != 0 {
		t.Errorf("%d alarms of %d, set %b", len(all), len(alarms), SetOf(all))
	}
	both := reading(2, 1<<unsaved|1<<silent)
	both.Saved, both.SaveEvery = time.Hour, time.Minute
	raised := a.See(both)
	if len(raised) != 2 || raised[1].Since != began.Add(time.Second) || !strings.Contains(raised[1].Text, "1h0m0s") || SetOf(raised) != both.Told {
		t.Errorf("told and seen: %+v", raised)
	}
	if raised := a.See(reading(3, 1<<7)); len(raised) != 0 {
		t.Errorf("after their end, with one of a later release: %+v", raised)
	}
	if raised := a.See(reading(4, 1<<lost)); len(raised) != 1 || raised[0].Since != began.Add(4*time.Second) {
		t.Errorf("once more: %+v", raised)
	}
}
