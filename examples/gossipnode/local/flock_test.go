package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// fakes starts peers that only a script knows.
type fakes struct {
	// script is what a peer does, as goroutine of the test; its end is the peer's.
	script  func(f *fake) *supervise.End
	started []settings.Settings
	refuse  int // the number of the peer that cannot be started; 0 is none
}

// fake is such a peer.
type fake struct {
	number     int
	events     chan<- supervise.Event
	left, dead chan struct{}
	may        chan struct{} // closed when it may train
	shown      chan result.Result
}

func (f *fake) tell(r watch.Report) { f.events <- supervise.Event{Number: f.number, Report: &r} }

// train tells what a peer says until it trains.
func (f *fake) train() {
	f.ready()
	<-f.may
	f.tell(watch.Report{Kind: watch.ReportProgress, Status: &watch.Status{Step: 1, Elapsed: 1, Counts: watch.Counts{Initiated: 2, Failed: 1}}})
}

// ready tells what it says until it could.
func (f *fake) ready() {
	f.tell(watch.Report{Kind: watch.ReportStarted, Peer: fmt.Sprint(f.number), Addresses: []string{"address-of-" + fmt.Sprint(f.number)}})
	f.tell(watch.Report{Kind: watch.ReportReady})
}

// finish tells that a peer is done.
func (f *fake) finish() *supervise.End {
	f.tell(watch.Report{Kind: watch.ReportResult, Share: &result.Share{Result: result.Result{Steps: 10, Failed: 3}, Initiated: 5}})
	return &supervise.End{}
}

func (l *fakes) launch(number int, s settings.Settings, events chan<- supervise.Event) (*supervise.Member, error) {
	if l.refuse > 0 && number == l.refuse {
		return nil, errors.New("no such program")
	}
	f := &fake{number: number, events: events, left: make(chan struct{}), dead: make(chan struct{}), may: make(chan struct{}), shown: make(chan result.Result, 1)}
	l.started = append(l.started, s)
	go func() { events <- supervise.Event{Number: number, End: l.script(f)} }()
	return &supervise.Member{
		Begin: sync.OnceFunc(func() { close(f.may) }),
		Show:  func(r result.Result) { f.shown <- r },
		Leave: func() { close(f.left) },
		Kill:  func() { close(f.dead) },
	}, nil
}

// fly runs three fake peers, and returns what a person was shown, too.
func fly(ctx context.Context, l *fakes, kill <-chan struct{}) (result.Result, *clitest.Buffer, error) {
	show := &clitest.Buffer{}
	s := settings.Settings{Network: settings.Network{Join: []string{"outside"}, Listen: []string{settings.Loopback}}}
	r, err := newFlock(s, 3, 0, l.launch, show, "").run(ctx, kill)
	return r, show, err
}

func TestFlockFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End { f.train(); return f.finish() }}
		r, _, err := fly(t.Context(), l, nil)
		if err != nil || r.Peers != 3 || r.PeersLost != 0 || r.Steps != 30 {
			t.Errorf("result %+v, error %v", r, err)
		}
		for number, want := range [][]string{{"outside"}, {"address-of-0", "outside"}, {"address-of-0", "outside"}} {
			if s := l.started[number]; !slices.Equal(s.Join, want) || s.Part != fmt.Sprintf("%d/3", number) {
				t.Errorf("peer %d was to join %q with part %s, want %q", number, s.Join, s.Part, want)
			}
		}
	})
}

// TestServedCounts: the row of a peer that is done has the exchanges of its result, those that
// it served until it left included.
func TestServedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End {
			f.train()
			f.tell(watch.Report{Kind: watch.ReportResult, Share: &result.Share{Result: result.Result{Steps: 10, Exchanges: 7}, Initiated: 3}})
			return &supervise.End{}
		}}
		f := newFlock(settings.Settings{Network: settings.Network{Listen: []string{settings.Loopback}}}, 3, 0, l.launch, &clitest.Buffer{}, "")
		if _, err := f.run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i, p := range f.Rows {
			if s := p.Status; s.Exchanges != 7 || s.Initiated != 3 {
				t.Errorf("peer %d: %d exchanges, %d of which it began, want 7 and 3", i, s.Exchanges, s.Initiated)
			}
		}
	})
}

// TestDashboardStays shows that the result of a local run is there while its first peer shows
// the dashboard, until it is asked to leave.
func TestDashboardStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End {
			f.train()
			e := f.finish()
			if f.number == 0 {
				if r := <-f.shown; r.Steps != 30 {
					t.Errorf("its dashboard is to show %+v", r)
				}
				<-f.left
			}
			return e
		}}
		s := settings.Settings{Network: settings.Network{Listen: []string{settings.Loopback}}}
		s.Name, s.Dashboard, s.DashboardStay = "lab", "127.0.0.1:0", settings.StayYes
		ctx, interrupt := context.WithCancel(t.Context())
		f := newFlock(s, 3, 0, l.launch, &clitest.Buffer{}, "")
		r, err := f.run(ctx, nil)
		if err != nil || r.Steps != 30 || r.Name != "lab" || f.First() == nil {
			t.Errorf("result %+v, error %v", r, err)
		}
		began := time.Now()
		time.AfterFunc(time.Hour, interrupt)
		if f.Stay(ctx, nil); f.First() != nil || time.Since(began) != time.Hour {
			t.Errorf("after %v it is there: %v", time.Since(began), f.First() != nil)
		}
	})
}

// TestFlockLosesPeers shows that a killed peer is counted and that the others
// go on, whenever it dies.
func TestFlockLosesPeers(t *testing.T) {
	for name, early := range map[string]bool{"before training": true, "in training": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &fakes{script: func(f *fake) *supervise.End {
					if !early || f.number != 1 {
						f.train()
					}
					if f.number == 1 {
						return &supervise.End{Killed: true, Err: errors.New("signal: killed")}
					}
					return f.finish()
				}}
				r, show, err := fly(t.Context(), l, nil)
				steps, exchanges, failed := uint64(20), uint64(10), uint64(6)
				if !early { // what it did lives on in the others
					steps, exchanges, failed = steps+1, exchanges+2, failed+1
				}
				if err != nil || r.Peers != 3 || r.PeersLost != 1 || r.Steps != steps || r.Exchanges != exchanges || r.Failed != failed {
					t.Errorf("result %+v, error %v", r, err)
				}
				if !strings.Contains(show.String(), "peer 1 is lost; the others go on\n") {
					t.Errorf("lines %q", show)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End { f.train(); return &supervise.End{Killed: true} }}
		if r, _, err := fly(t.Context(), l, nil); err == nil || r.Peers != 0 || !strings.Contains(err.Error(), "all were killed") {
			t.Errorf("all killed: result %+v, error %v", r, err)
		}
	})
}

// TestFlockFault shows what a fault of a peer's own does: before the training it
// ends the run, later the others go on, and both times it is named, with the
// peer's exit code.
func TestFlockFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End {
			f.tell(watch.Report{Kind: watch.ReportStarted})
			if f.number == 1 {
				f.tell(watch.Report{Kind: watch.ReportFailed, Failure: "batch too large", Code: cli.ExitUsage})
				return &supervise.End{Err: errors.New("exit status 2")}
			}
			<-f.left
			f.tell(watch.Report{Kind: watch.ReportFailed, Failure: "interrupted", Interrupted: true})
			return &supervise.End{Err: errors.New("exit status 1")}
		}}
		r, _, err := fly(t.Context(), l, nil)
		if r.Peers != 0 || err == nil || err.Error() != "peer 1: batch too large" || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("early: result %+v, error %v", r, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End {
			f.train()
			if f.number == 1 {
				return &supervise.End{Err: errors.New("exit status 2")} // a crash says nothing
			}
			time.Sleep(time.Hour)
			return f.finish()
		}}
		r, show, err := fly(t.Context(), l, nil)
		if r.Steps != 21 || err == nil || cli.ExitCode(err) != cli.ExitFailed || !strings.Contains(err.Error(), "peer 1: ended without a result") {
			t.Errorf("late: result %+v, error %v, lines %q", r, err, show)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{refuse: 2, script: func(f *fake) *supervise.End { f.train(); <-f.left; return &supervise.End{} }}
		if _, _, err := fly(t.Context(), l, nil); err == nil || !strings.Contains(err.Error(), "no such program") {
			t.Errorf("a peer that cannot be started: error %v", err)
		}
	})
}

// TestFlockUnmerged shows that peers which were to end with one model, and have not, are
// told of by an exit code of their own, beside the result.
func TestFlockUnmerged(t *testing.T) {
	for name, c := range map[string]struct {
		odd  result.FinalResult // that of one peer
		code int
	}{
		"merged":       {result.FinalResult{Final: settings.FinalMerge, ModelHash: "a"}, cli.ExitDone},
		"one has not":  {result.FinalResult{Final: settings.FinalUnmerged, ModelHash: "b"}, result.ExitUnmerged},
		"in two parts": {result.FinalResult{Final: settings.FinalMerge, ModelHash: "b"}, result.ExitUnmerged},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &fakes{script: func(f *fake) *supervise.End {
					f.train()
					r := result.Result{FinalResult: result.FinalResult{Final: settings.FinalMerge, ModelHash: "a"}}
					if f.number == 2 {
						r.FinalResult = c.odd
					}
					f.tell(watch.Report{Kind: watch.ReportResult, Share: &result.Share{Result: r}})
					return &supervise.End{}
				}}
				if r, _, err := fly(t.Context(), l, nil); r.Peers != 3 || cli.ExitCode(err) != c.code {
					t.Errorf("result %+v, error %v: want exit code %d", r, err, c.code)
				}
			})
		})
	}
}

// TestFlockInterruptedEarly shows that an interrupt before the training is told as that.
func TestFlockInterruptedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *supervise.End {
			if f.number < 2 { // the third never is ready: all wait for it
				f.ready()
			}
			<-f.left
			f.tell(watch.Report{Kind: watch.ReportFailed, Interrupted: true})
			return &supervise.End{}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, _, err := fly(ctx, l, nil); !errors.Is(err, train.ErrNothingDone) || cli.ExitCode(err) != cli.ExitFailed || !strings.Contains(err.Error(), "nothing was learned") {
			t.Errorf("error %v", err)
		}
	})
}

// TestFlockUnsaved shows that a peer whose last checkpoint could not be saved is named, and
// the exit code 1, whether the work was done or broken off.
func TestFlockUnsaved(t *testing.T) {
	for name, interrupt := range map[string]bool{"done": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &fakes{script: func(f *fake) *supervise.End {
					f.train()
					ended := train.Outcome(result.Share{Result: result.Result{Steps: 10}}, nil)
					if interrupt {
						<-f.left
						ended = train.Outcome(result.Share{}, cli.ErrInterrupted)
					}
					if full := errors.New("no space"); f.number == 1 && interrupt {
						ended = train.Outcome(result.Share{}, &train.UnsavedError{Cause: full})
					} else if f.number == 1 {
						ended = train.Outcome(result.Share{Result: result.Result{Steps: 10}, Unsaved: full}, nil)
					}
					f.tell(ended)
					return &supervise.End{}
				}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if interrupt {
					time.AfterFunc(time.Minute, cancel)
				}
				r, _, err := fly(ctx, l, nil)
				if cli.ExitCode(err) != cli.ExitFailed || !strings.Contains(fmt.Sprint(err), "peer 1: no space") || strings.Contains(fmt.Sprint(err), "is kept") {
					t.Errorf("error %v", err)
				}
				if errors.Is(err, cli.ErrInterrupted) != interrupt || interrupt != (r.Peers == 0) {
					t.Errorf("result %+v, error %v", r, err)
				}
			})
		})
	}
}

// TestFlockInterrupted shows that an interrupt asks the peers to leave, and that
// one that does not is killed: after a quarter of a minute, or at once when asked again.
func TestFlockInterrupted(t *testing.T) {
	for name, again := range map[string]bool{"once": false, "twice": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &fakes{script: func(f *fake) *supervise.End {
					f.train()
					<-f.left
					if f.number == 1 {
						<-f.dead // it hangs
						return &supervise.End{Killed: true}
					}
					f.tell(watch.Report{Kind: watch.ReportFailed, Interrupted: true})
					return &supervise.End{}
				}}
				ctx, cancel := context.WithCancel(t.Context())
				kill := make(chan struct{})
				go func() {
					time.Sleep(time.Minute)
					cancel()
					if time.Sleep(time.Second); again {
						close(kill)
					}
				}()
				began := time.Now()
				_, _, err := fly(ctx, l, kill)
				if !errors.Is(err, cli.ErrInterrupted) || cli.ExitCode(err) != cli.ExitFailed {
					t.Errorf("error %v", err)
				}
				want := time.Minute + 15*time.Second
				if again {
					want = time.Minute + time.Second
				}
				if took := time.Since(began); took != want {
					t.Errorf("it took %s, want %s", took, want)
				}
				time.Sleep(time.Minute) // until the goroutine above is done
			})
		})
	}
}
