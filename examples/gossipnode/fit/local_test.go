package fit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/table"
)

// fake is a peer that only a script knows.
type fake struct {
	*supervise.Here
	number     int
	left, dead chan struct{}
}

// watched runs so many peers as the script of each says, whose end is its own, until ctx ends.
// Log is what a person sees.
func watched(ctx context.Context, peers int, script func(f fake) *supervise.End) (p *supervise.Peers, log *clitest.Buffer) {
	log = new(clitest.Buffer)
	p = supervise.New(supervise.Config{
		Launch: func(number int, _ []string, events chan<- supervise.Event) (*supervise.Member, error) {
			here, _ := supervise.InProcess(number, events)
			f := fake{here, number, make(chan struct{}), make(chan struct{})}
			go func() { events <- supervise.Event{Number: number, End: script(f)} }()
			return &supervise.Member{Leave: func() { close(f.left) }, Kill: func() { close(f.dead) }}, nil
		},
		AtOnce: true, Line: lineOf(peers), Display: watch.NewDisplay(log, "", watch.Doing{Begun: time.Now(), Counted: "sum", Idle: "reading, or waiting for others"}),
	}, peers)
	p.Run(ctx, nil)
	return p, log
}

// One that was killed is lost, and the result is that of the others.
func TestKilledPeerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := watched(t.Context(), 3, func(f fake) *supervise.End {
			if f.number == 1 {
				return &supervise.End{Killed: true, Err: errors.New("signal: killed")}
			}
			select {
			case <-f.left:
				t.Errorf("peer %d was asked to leave", f.number)
			case <-time.After(time.Second):
			}
			f.Tell(outcome(Result{Hash: "a", BytesSent: 10, Seconds: float64(f.number)}, nil))
			return &supervise.End{}
		})
		r, err := combine(p, "")
		if err != nil || r.PeersLost != 1 || r.BytesSent != 20 || r.Seconds != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		if said := "peer 1 is lost; the others go on\n"; !strings.Contains(log.String(), said) {
			t.Errorf("not %q: %s", said, log)
		}
		if _, err := combine(p, "m"); err == nil || !strings.Contains(err.Error(), "not in m") {
			t.Errorf("%v; want it to say that there is no model", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p, _ := watched(t.Context(), 2, func(fake) *supervise.End { return &supervise.End{Killed: true} })
		if _, err := combine(p, ""); !errors.Is(err, supervise.ErrAllKilled) {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the first is lost: the next one's figures begin the sums
		p, _ := watched(t.Context(), 3, func(f fake) *supervise.End {
			if f.number == 0 {
				return &supervise.End{Killed: true}
			}
			f.Tell(outcome(Result{Hash: "a", BytesSent: 10}, nil))
			return &supervise.End{}
		})
		if r, err := combine(p, ""); err != nil || r.PeersLost != 1 || r.BytesSent != 20 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// The fault that counts is that of the peer which has it, also when another tells of it first.
func TestFaultIsThatOfItsPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		p, _ := watched(t.Context(), 3, func(f fake) *supervise.End {
			switch f.number {
			case 0:
				select {
				case <-f.left:
					t.Error("the peer with the fault was stopped before it could tell it")
				case <-time.After(time.Second):
				}
				f.Tell(outcome(Result{}, cli.Config(errors.New("line 7 is torn"))))
			case 1:
				f.Tell(outcome(Result{}, table.ErrMember))
			case 2:
				<-f.left
				stopped = true
				f.Tell(outcome(Result{}, cli.ErrInterrupted))
			}
			return &supervise.End{}
		})
		_, err := combine(p, "")
		if err == nil || err.Error() != "peer 0: line 7 is torn" || cli.ExitCode(err) != cli.ExitConfig || !stopped {
			t.Errorf("%v, exit code %d, stopped: %v", err, cli.ExitCode(err), stopped)
		}
	})
}

// Two models where there should be one are no result.
func TestUnlikeModelsAreNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := watched(t.Context(), 2, func(f fake) *supervise.End {
			f.Tell(outcome(Result{Hash: []string{"a", "b"}[f.number]}, nil))
			return &supervise.End{}
		})
		if _, err := combine(p, ""); err == nil || !strings.Contains(err.Error(), "another model") {
			t.Error(err)
		}
	})
}

// An interrupt asks the peers of a fit to leave, and kills who does not.
func TestInterruptedFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		began := time.Now()
		p, log := watched(ctx, 2, func(f fake) *supervise.End {
			if f.Tell(watch.Report{Kind: watch.ReportStarted}); f.number == 1 {
				<-f.dead // it hangs
				return &supervise.End{Killed: true}
			}
			<-f.left
			f.Tell(outcome(Result{}, cli.ErrInterrupted))
			return &supervise.End{}
		})
		if _, err := combine(p, ""); err != cli.ErrInterrupted || cli.ExitCode(err) != cli.ExitFailed {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Minute+15*time.Second {
			t.Errorf("it took %s", took)
		}
		if strings.Contains(log.String(), "lost") {
			t.Errorf("who was asked to leave is no loss: %s", log)
		}
	})
}

// Before the first sum a line says what a peer is about, too.
func TestOutlookBeforeTheFirstSum(t *testing.T) {
	view, peers := watch.Doing{Begun: time.Now(), Counted: "sum", Idle: "reading, or waiting for others"}, []*watch.Row{{}}
	if text := view.Outlook(peers, 5*time.Second); !strings.HasSuffix(text, "0 sums, reading, or waiting for others") {
		t.Errorf("%q", text)
	}
	if text := view.Outlook(peers, 5*time.Second-1); text != "" {
		t.Errorf("too soon: %q", text)
	}
}
