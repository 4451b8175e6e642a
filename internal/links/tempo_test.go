package links

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestDeadlinesFollowThePartner: how long a partner is waited for follows from how long
// it has made this peer wait, within bounds.
func TestDeadlinesFollowThePartner(t *testing.T) {
	second, ms := time.Second, time.Millisecond
	late := fmt.Errorf("waiting for a slice: %w", os.ErrDeadlineExceeded)
	type shown struct {
		longest, took time.Duration
		err           error
	}
	for _, c := range []struct {
		name             string
		shown            []shown
		patience, budget time.Duration
	}{
		{"an unknown partner", nil, leastTimeout, deadline},
		{"on a LAN", []shown{{ms, 50 * ms, nil}}, leastTimeout, leastTimeout + 200*ms},
		{"on a slow link", []shown{{second, 5 * second, nil}}, 4 * second, 24 * second},
		{"never more than all", []shown{{4 * second, 20 * second, nil}}, stall, deadline},
		{"one hiccup fades", []shown{{second, 5 * second, nil}, {ms, ms, nil}}, 3200 * ms, 3200*ms + 16*second},
		{"more time after it ran out", []shown{{ms, 50 * ms, nil}, {0, 0, late}}, stall, 5400 * ms},
		{"and more", []shown{{ms, 50 * ms, nil}, {0, 0, late}, {0, 0, ErrLate}}, stall, 10800 * ms},
		{"until one is completed", []shown{{ms, 50 * ms, nil}, {0, 0, late}, {ms, ms, nil}}, leastTimeout, leastTimeout + 160*ms},
		{"other failures change nothing", []shown{{ms, 50 * ms, nil}, {0, 0, errors.New("given up")}, {0, 0, errors.New("reset")}}, leastTimeout, leastTimeout + 200*ms},
		{"opening may run out of time too", []shown{{0, 0, fmt.Errorf("opening: %w", context.DeadlineExceeded)}}, stall, deadline},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := choosing(0)
			for _, s := range c.shown {
				l.Ended("partner", Waits{s.longest, s.longest, s.took}, s.err)
			}
			if got := l.Timeout("partner"); got != c.patience {
				t.Errorf("a frame is waited for %s, want %s", got, c.patience)
			}
			if got := l.Budget("partner"); got != c.budget {
				t.Errorf("an exchange has %s, want %s", got, c.budget)
			}
			if got := l.Timeout("another"); got != leastTimeout {
				t.Errorf("another partner is waited for %s", got)
			}
		})
	}
}

// TestOpeningFollowsThePartner: the first sign of a partner that was accepted is waited
// for less long than a frame, and longer if it was late.
func TestOpeningFollowsThePartner(t *testing.T) {
	l := choosing(0)
	want := func(want time.Duration) {
		t.Helper()
		if got := l.Opening("p"); got != want {
			t.Errorf("the first sign is waited for %s, want %s", got, want)
		}
	}
	want(leastOpening)
	l.Ended("p", Waits{}, ErrLate)
	want(2 * leastOpening)
	l.Ended("p", Waits{Longest: 500 * time.Millisecond, Opening: 500 * time.Millisecond, Took: time.Second}, nil)
	want(slack * 500 * time.Millisecond)
	l.Ended("p", Waits{Longest: 2 * time.Second, Opening: 2 * time.Second, Took: 3 * time.Second}, nil)
	want(stall)
}
