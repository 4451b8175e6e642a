package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// TestDeadlinesFollowThePartner: how long a partner is waited for follows from how long
// it has made this peer wait, within bounds.
func TestDeadlinesFollowThePartner(t *testing.T) {
	const stall, deadline = 5 * time.Second, 30 * time.Second
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
		{"an unknown partner", nil, leastPatience, deadline},
		{"on a LAN", []shown{{ms, 50 * ms, nil}}, leastPatience, leastPatience + 200*ms},
		{"on a slow link", []shown{{second, 5 * second, nil}}, 4 * second, 24 * second},
		{"never more than all", []shown{{4 * second, 20 * second, nil}}, stall, deadline},
		{"one hiccup fades", []shown{{second, 5 * second, nil}, {ms, ms, nil}}, 3200 * ms, 3200*ms + 16*second},
		{"more time after it ran out", []shown{{ms, 50 * ms, nil}, {0, 0, late}}, stall, 5400 * ms},
		{"and more", []shown{{ms, 50 * ms, nil}, {0, 0, late}, {0, 0, errLate}}, stall, 10800 * ms},
		{"until one is completed", []shown{{ms, 50 * ms, nil}, {0, 0, late}, {ms, ms, nil}}, leastPatience, leastPatience + 160*ms},
		{"other failures change nothing", []shown{{ms, 50 * ms, nil}, {0, 0, errAborted}, {0, 0, errors.New("reset")}}, leastPatience, leastPatience + 200*ms},
		{"opening may run out of time too", []shown{{0, 0, fmt.Errorf("opening: %w", context.DeadlineExceeded)}}, stall, deadline},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ts tempos
			for _, s := range c.shown {
				ts.ended("partner", s.longest, s.longest, s.took, s.err, time.Now())
			}
			if got := ts.patience("partner", stall); got != c.patience {
				t.Errorf("a frame is waited for %s, want %s", got, c.patience)
			}
			if got := ts.budget("partner", deadline); got != c.budget {
				t.Errorf("an exchange has %s, want %s", got, c.budget)
			}
			if got := ts.patience("another", stall); got != leastPatience {
				t.Errorf("another partner is waited for %s", got)
			}
		})
	}
}

func TestTemposAreBounded(t *testing.T) {
	var ts tempos
	now := time.Now()
	for i := range 3 * maxTempos {
		ts.ended(seam.PeerID(fmt.Sprint(i)), time.Second, time.Second, time.Second, nil, now.Add(time.Duration(i)))
	}
	if len(ts.known) != maxTempos {
		t.Errorf("%d partners are remembered, want %d", len(ts.known), maxTempos)
	}
	if newest := seam.PeerID(fmt.Sprint(3*maxTempos - 1)); ts.patience(newest, time.Hour) != 4*time.Second {
		t.Error("the newest is not remembered")
	}
}
