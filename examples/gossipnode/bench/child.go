package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	// partnerGrace is how long the other process may take to end when asked to.
	partnerGrace = 15 * time.Second
	// maxLastWords bounds what is kept of what the other process says at its end.
	maxLastWords = 20
)

// partnerProcess is the other process, seen from the one that started it.
type partnerProcess struct {
	started answer
	command *exec.Cmd
	// life is its standard input: it leaves when that is closed, by this process or
	// by its death.
	life    io.WriteCloser
	answers chan answer
	ended   chan struct{}
	cause   error // why it ended; set before ended is closed
}

// startPartner starts this program once more. The context that it returns ends with
// the other process, and says why.
func startPartner(ctx context.Context, s exchangeSettings) (*partnerProcess, context.Context, error) {
	program, environment, err := cli.Child(1)
	if err != nil {
		return nil, ctx, err
	}
	p := &partnerProcess{
		command: exec.Command(program, s.arguments()...),
		answers: make(chan answer, 1), ended: make(chan struct{}),
	}
	p.command.Env = environment
	if err := p.start(); err != nil {
		return nil, ctx, fmt.Errorf("starting the other process: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		<-p.ended
		cancel(p.cause)
	}()
	if p.started, err = p.next(ctx); err != nil {
		return nil, ctx, errors.Join(err, p.close())
	}
	return p, ctx, nil
}

func (p *partnerProcess) start() (err error) {
	if p.life, err = p.command.StdinPipe(); err != nil {
		return err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return err
	}
	logged, err := p.command.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.command.Start(); err != nil {
		return err
	}
	go p.watch(out, logged)
	return nil
}

// watch passes answers on until the process has ended.
func (p *partnerProcess) watch(out, logged io.Reader) {
	var last []string
	var readers sync.WaitGroup
	readers.Go(func() {
		lines := &cli.LineWriter{Take: func(line string) {
			if last = append(last, line); len(last) > maxLastWords {
				last = last[1:]
			}
		}}
		_, _ = io.Copy(lines, logged)
		lines.Flush()
	})
	readers.Go(func() {
		for decoder := json.NewDecoder(out); ; {
			var a answer
			if decoder.Decode(&a) != nil {
				_, _ = io.Copy(io.Discard, out)
				return
			}
			select {
			case p.answers <- a:
			default: // nobody has asked
			}
		}
	})
	readers.Wait() // the pipes end with the process, and must be read before Wait
	p.cause = errors.New("the other process has ended")
	if err := p.command.Wait(); err != nil {
		p.cause = fmt.Errorf("the other process has ended: %w", err)
	}
	if len(last) > 0 {
		p.cause = fmt.Errorf("%w, with the words\n%s", p.cause, strings.Join(last, "\n"))
	}
	close(p.ended)
}

// ask demands something and waits for the answer.
func (p *partnerProcess) ask(ctx context.Context, do string) (answer, error) {
	if err := json.NewEncoder(p.life).Encode(demand{Do: do}); err != nil {
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

// explain is err, or why the process has ended if that is what lies behind it.
func (p *partnerProcess) explain(err error) error {
	const soon = 2 * time.Second // its connections break before it has been waited for
	if err == nil || errors.Is(err, cli.ErrInterrupted) {
		return err
	}
	select {
	case <-p.ended:
		return p.cause
	case <-time.After(soon):
		return err
	}
}

func (p *partnerProcess) next(ctx context.Context) (answer, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-p.answers:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-timer.C:
		return answer{}, fmt.Errorf("no answer within %s", patience)
	}
}

// close asks the process to end, and kills it if it does not.
func (p *partnerProcess) close() error {
	_ = p.life.Close() // it may have gone already
	select {
	case <-p.ended:
		return nil
	case <-time.After(partnerGrace):
		_ = p.command.Process.Kill()
		<-p.ended
		return fmt.Errorf("the other process was killed: it did not end within %s", partnerGrace)
	}
}
