package counters

import (
	"context"
	"errors"
	"fmt"
	"github.com/seed-97356399/murmuration/internal/session"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestCauses shows that what breaks exchanges off is told apart.
func TestCauses(t *testing.T) {
	for want, err := range map[string]error{
		"cut":         fmt.Errorf("waiting for a slice: %w", io.ErrUnexpectedEOF),
		"time":        fmt.Errorf("waiting: %w", context.DeadlineExceeded),
		"unreachable": fmt.Errorf("opening a stream: %w", transport.ErrUnreachable),
		"given-up":    session.ErrAborted,
		"refused":     &wire.Refusal{Refuse: wire.Refuse{Reason: wire.ReasonClosing}},
		"protocol":    fmt.Errorf("a slice: %w", coding.ErrNotFinite),
	} {
		if got := causeOf(err); got != want {
			t.Errorf("%v is counted as %q, want %q", err, got, want)
		}
	}
	if got := causeOf(errors.New("stream reset")); got != "cut" {
		t.Errorf("an unknown fault is counted as %q", got)
	}
}

// TestReasonNames shows that each reason fits and has a name.
func TestReasonNames(t *testing.T) {
	c := New()
	for r := wire.ReasonBusy; r <= wire.ReasonOperator; r++ {
		c.Declined(r)
		c.Refused(r)
	}
	c.Declined(200)
	c.Declined(0)
	told := c.Counts()
	if len(told.Declined) != int(wire.ReasonOperator)+1 || told.Declined["busy"] != 1 || told.Declined["unknown"] != 2 || len(told.Refused) != int(wire.ReasonOperator) {
		t.Errorf("named %v and %v", told.Declined, told.Refused)
	}
	told.Declined["busy"] = 100
	var s stats.Peer
	if c.Report(&s); s.Exchanges.Declined != uint64(wire.ReasonOperator)+2 || c.Counts().Declined["busy"] != 1 {
		t.Errorf("%d declined in all, %v", s.Exchanges.Declined, c.Counts().Declined)
	}
}

// TestWhatIsCountedIsReported, of exchanges, transfers and steps.
func TestWhatIsCountedIsReported(t *testing.T) {
	c := New()
	var s stats.Peer
	if c.Report(&s); !math.IsNaN(s.Loss) || s.Exchanges.BitsPerParameter != 0 {
		t.Errorf("before anything was counted: %+v", s)
	}
	c.Completed(Completed{Values: 200, Bytes: 100, Took: time.Second, Cost: time.Millisecond, Steps: 3})
	c.Completed(Completed{Inbound: true, Values: 100, Bytes: 200, Took: time.Second, Cost: time.Millisecond})
	c.Distance(2)
	c.Learned(0.5, 0.1, 32)
	c.Learned(math.Inf(1), 0.2, 10)
	c.Held(time.Second)
	c.Held(time.Millisecond)
	c.Stepped(time.Microsecond)
	c.Paced(7)
	c.Connected(5)
	c.Connected(3)
	c.Retransmitted(2)
	c.Resolved(3)
	c.Quarantined()
	c.Moved(coding.Raw, 10, 20)
	c.Moved(200, 1, 2)
	c.Answered(time.Second)
	c.Failed(errors.New("reset"), true)
	c.Failed(session.ErrAborted, false)
	c.Report(&s)
	x := s.Exchanges
	if x.Initiated != 1 || x.Served != 1 || x.BitsPerParameter != 8 || x.Took != time.Second || x.Cost != time.Millisecond || x.Failed != 2 {
		t.Errorf("exchanges %+v", x)
	}
	if s.Loss != 0.5 || s.Rate != 0.2 || x.LongestHold != time.Second || x.Blocked.Count() != 1 || x.Every != 7 || s.ConnectionsMax != 5 {
		t.Errorf("the trainer's %+v", s)
	}
	if x.Retransmitted != 2 || x.Settled != 3 || x.Quarantines != 1 || x.BytesSent != 11 || x.BytesReceived != 22 || x.ConsensusDistance != math.Sqrt2 {
		t.Errorf("exchanges %+v", x)
	}
	told := c.Counts()
	if told.Traffic["raw"].Sent != 10 || told.Traffic["none"].Received != 2 || told.Dropped["cut"] != 1 || told.Failed["given-up"] != 1 {
		t.Errorf("tallies %+v", told)
	}
	if told.Samples != 42 || told.Age.Sum != 3 || told.Rounds.Count() != 1 || told.Durations.Count() != 2 {
		t.Errorf("ages %+v, %d rounds, %d durations", told.Age, told.Rounds.Count(), told.Durations.Count())
	}
}

// TestLastExchange: when the last exchange completed is known, and nothing before the first.
func TestLastExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		var s stats.Peer
		if c.Report(&s); !s.Exchanges.Last.IsZero() {
			t.Errorf("before the first: %v", s.Exchanges.Last)
		}
		c.Completed(Completed{Inbound: true})
		done := time.Now()
		time.Sleep(time.Second)
		if c.Report(&s); !s.Exchanges.Last.Equal(done) {
			t.Errorf("%v, want %v", s.Exchanges.Last, done)
		}
	})
}
