package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// member is a peer that local has started: another process, or goroutines of
// this one.
type member interface {
	// begin lets the peer take its first step. It returns at once, and may be
	// called again.
	begin()
	// show has the peer's dashboard show the result of all, once. It returns at once.
	show(result.Result)
	// leave asks the peer to end in good order. It returns at once.
	leave()
	// kill ends the peer at once, if that is possible. It may follow leave.
	kill()
}

// launcher starts peers. The events of a peer, the last of which is its end, are
// sent to events; whoever launches must receive them until then.
type launcher interface {
	launch(number int, s settings.Settings, events chan<- event) (member, error)
}

type event = cli.Event[watch.Report]

// inProcess starts peers as goroutines of this process, which read the rows of a table once.
type inProcess struct{ source *rows.Source }

// goroutine is a peer that inProcess started. It cannot be killed.
type goroutine struct {
	start  func()
	result chan result.Result
	cancel context.CancelCauseFunc
}

func (g goroutine) begin() { g.start() }
func (g goroutine) leave() { g.cancel(cli.ErrInterrupted) }
func (g goroutine) kill()  {}

func (g goroutine) show(r result.Result) { g.result <- r }

func (p inProcess) launch(number int, s settings.Settings, events chan<- event) (member, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	begin, all := make(chan struct{}), make(chan result.Result, 1)
	go func() {
		defer cancel(nil)
		tell := func(r watch.Report) { events <- event{Number: number, Report: &r} }
		log := s.NewLog(&cli.LineWriter{Take: func(line string) { events <- event{Number: number, Line: line} }})
		watcher, stayed := train.Observer{Log: log.With(zap.Int("peer", number)), Tell: tell, Begin: begin, Source: p.source}, false
		if s.Stays(nil) {
			watcher.Stay = func(done result.Share, show func(result.Result)) {
				stayed = true
				tell(train.Outcome(done, nil))
				select {
				case r := <-all:
					show(r)
				case <-ctx.Done():
				}
				<-ctx.Done()
			}
		}
		done, err := train.Run(ctx, s, watcher)
		if !stayed {
			tell(train.Outcome(done, err))
		}
		events <- event{Number: number, End: &cli.End{Err: err}}
	}()
	return goroutine{start: sync.OnceFunc(func() { close(begin) }), result: all, cancel: cancel}, nil
}

// processes starts peers as so many processes of this program.
type processes int

// process is a peer that processes started. It begins to train at the first empty line of
// its standard input, and shows the result that another line is.
type process struct{ *cli.Child }

// begin cannot block: a pipe takes more than the one byte. A child that has gone
// will say so by its end.
func (p process) begin() { _, _ = io.WriteString(p.Life, "\n") }

func (p process) show(r result.Result) { _ = json.NewEncoder(p.Life).Encode(r) }

func (p process) leave() { _ = p.Life.Close() }
func (p process) kill()  { _ = p.Kill() }

func (p processes) launch(number int, s settings.Settings, events chan<- event) (member, error) {
	s.Report = true
	child, err := cli.StartPeer(number, int(p), append([]string{"run"}, s.Arguments()...), events)
	if err != nil {
		return nil, fmt.Errorf("starting peer %d: %w", number, err)
	}
	return process{child}, nil
}
