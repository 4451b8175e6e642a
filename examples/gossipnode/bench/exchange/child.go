package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// partnerGrace bounds the time in which the other process must end.
const partnerGrace = 15 * time.Second

// partnerProcess is the other process as its parent sees it.
type partnerProcess struct {
	started answer
	*cli.Child
	answers chan answer
	ended   chan struct{}
}

// startPartner starts this program again; that process reports faults on standard error. The returned context ends
// with the process, and its cause says why.
func startPartner(ctx context.Context, s exchangeSettings, std cli.Streams) (_ *partnerProcess, _ context.Context, err error) {
	p := &partnerProcess{answers: make(chan answer, 1), ended: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(ctx)
	p.Child, err = cli.StartChild(1, s.arguments(), p.receive,
		func(line string) { fmt.Fprintln(std.Err, line) },
		func(err error) {
			cause := errors.New("the other process has ended")
			if err != nil {
				cause = fmt.Errorf("the other process has ended: %w", err)
			}
			cancel(cause)
			close(p.ended)
		})
	if err != nil {
		cancel(nil)
		return nil, ctx, fmt.Errorf("starting the other process: %w", err)
	}
	if p.started, err = p.next(ctx); err != nil {
		return nil, ctx, errors.Join(err, p.close())
	}
	return p, ctx, nil
}

// receive handles a line of the process's standard output.
func (p *partnerProcess) receive(line string) {
	var a answer
	if json.Unmarshal([]byte(line), &a) != nil {
		return
	}
	select {
	case p.answers <- a:
	default: // there was no request
	}
}

// ask sends a request and waits for the answer.
func (p *partnerProcess) ask(ctx context.Context, do string) (answer, error) {
	if _, err := fmt.Fprintln(p.Life, do); err != nil {
		return answer{}, fmt.Errorf("asking the other process to %s: %w", do, err)
	}
	a, err := p.next(ctx)
	if err == nil && a.Failure != "" {
		err = errors.New(a.Failure)
	}
	if err != nil {
		return a, fmt.Errorf("asking the other process to %s: %w", do, err)
	}
	return a, nil
}

// explain returns why the context has ended if that caused err, else err.
func explain(ctx context.Context, err error) error {
	const soon = 2 * time.Second // a dead process's connections break before its end is known
	if err == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(soon):
		return err
	}
}

func (p *partnerProcess) next(ctx context.Context) (answer, error) {
	timer := time.NewTimer(peerTimeout)
	defer timer.Stop()
	select {
	case a := <-p.answers:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-timer.C:
		return answer{}, fmt.Errorf("no answer within %s", peerTimeout)
	}
}

// close asks the process to end, and kills it if it does not end in time.
func (p *partnerProcess) close() error {
	_ = p.Life.Close() // it may have ended already
	select {
	case <-p.ended:
		return nil
	case <-time.After(partnerGrace):
		_ = p.Kill()
		<-p.ended
		return fmt.Errorf("the other process was killed: it did not end within %s", partnerGrace)
	}
}
