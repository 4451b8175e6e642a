package local

import (
	"cmp"
	"context"
	"io"
	"slices"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// flock is the peers of a local run.
type flock struct {
	settings settings.Settings
	peers    int // number of peers that train
	*supervise.Peers
	news    []string // lines of news that peers have reported
	invited bool     // whether the token to join was shown
}

// launcher starts the peer with this number and these settings.
type launcher func(number int, s settings.Settings, events chan<- supervise.Event) (*supervise.Member, error)

func newFlock(s settings.Settings, peers, holders int, start launcher, errs io.Writer, title string) *flock {
	f := &flock{settings: s, peers: peers}
	f.Peers = supervise.New(supervise.Config{
		Launch: func(number int, join []string, events chan<- supervise.Event) (*supervise.Member, error) {
			return start(number, forMember(s, number, peers, holders, join), events)
		},
		Join: s.Join, AtOnce: s.Strategy == settings.StrategyAlone, LeaveWithin: s.LeaveWithin, Stays: s.Stays(nil),
		Line: f.lineOf, Display: watch.NewDisplay(errs, title, &watch.Training{}),
	}, peers+holders)
	return f
}

// processes starts peers as processes of this program. Peers is the number of all of them.
func processes(peers int) launcher {
	return func(number int, s settings.Settings, events chan<- supervise.Event) (*supervise.Member, error) {
		s.Report = true
		return supervise.Process(number, peers, append([]string{"run"}, s.Arguments()...), events)
	}
}

// goroutines starts peers as goroutines of this process. They share source, so the rows of a table are read once.
func goroutines(source *rows.Source) launcher {
	return func(number int, s settings.Settings, events chan<- supervise.Event) (*supervise.Member, error) {
		here, member := supervise.InProcess(number, events)
		watcher := train.Observer{Log: s.NewLog(here.Log()).With(zap.Int("peer", number)), Tell: here.Tell, Begin: here.Begin, Source: source}
		stayed := false
		if s.Stays(nil) {
			watcher.Stay = func(done result.Share, show func(result.Result)) {
				stayed = true
				here.Tell(train.Outcome(done, nil))
				select {
				case r := <-here.All:
					show(r)
				case <-here.Context.Done():
				}
				<-here.Context.Done()
			}
		}
		go func() {
			done, err := train.Run(here.Context, s, watcher)
			if !stayed {
				here.Tell(train.Outcome(done, err))
			}
			here.End(err)
		}()
		return member, nil
	}
}

// run runs the peers until all have ended, or only show their dashboard. The result is that of the
// peers that finished, if there are any; it may come together with an error.
func (f *flock) run(ctx context.Context, kill <-chan struct{}) (result.Result, error) {
	f.Run(ctx, kill)
	total, err := f.verdict(ctx)
	if first := f.First(); total.Peers > 0 && first != nil {
		first.Show(total)
	}
	return total, err
}

// lineOf is the line that is shown for a peer's report, empty if none is.
func (f *flock) lineOf(number int, r *watch.Report) (text string) {
	switch {
	case r.Kind == watch.ReportStarted:
		if r.Dashboard != "" {
			text = "dashboard at " + r.Dashboard + "\n"
		}
		if number == 0 && r.Token != "" && !f.invited {
			f.invited = true
			text += "another peer can come with " + r.Invitation()
		}
	case !slices.Contains(f.news, r.Said): // peers that read the same data report the same news
		f.news = append(f.news, r.Said)
		text = f.Of(number) + r.Said
	}
	return text
}

// verdict is the result of the run, and its error.
func (f *flock) verdict(ctx context.Context) (result.Result, error) {
	var (
		shares []result.Share
		held   []result.Share // of holders, which do not train
		gone   []watch.Status
		idle   []int
		lost   int
	)
	for number, p := range f.Rows {
		switch {
		case p.Done != nil && p.Done.Share != nil:
			if p.Done.Share.Result.Role == result.Holder {
				held = append(held, *p.Done.Share)
				continue
			}
			shares = append(shares, *p.Done.Share)
			if p.Done.Share.Result.Steps == 0 && !f.settings.ServeOnly {
				idle = append(idle, number)
			}
			continue
		case p.Phase == watch.PhaseLost:
			lost++
		}
		gone = append(gone, p.Status)
	}
	if ctx.Err() != nil {
		why := cli.ErrInterrupted
		switch {
		case !f.Begun:
			why = train.ErrNothingDone
		case f.Unsaved != nil:
			why = &train.UnsavedError{Cause: f.Unsaved}
		}
		return result.Result{}, train.Interruption(f.settings, why)
	}
	if len(shares) == 0 {
		return result.Result{}, cmp.Or(f.Fault, supervise.ErrAllKilled)
	}
	total := combine(shares, gone, f.peers, lost)
	travelled(&total, shares, held, len(f.Rows)-f.peers)
	total.Idle, total.Name = idle, f.settings.PeerName()
	return total, cmp.Or(f.Fault, f.Unsaved, total.Unmerged())
}
