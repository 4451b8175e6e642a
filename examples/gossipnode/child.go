package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// processes starts peers as processes of the same program.
type processes struct {
	program     string
	environment []string
}

// newProcesses prepares processes for a number of peers, which share the cores
// of this machine unless GOMAXPROCS says otherwise.
func newProcesses(peers int) (*processes, error) {
	program, environment, err := cli.Child(peers)
	if err != nil {
		return nil, err
	}
	return &processes{program: program, environment: environment}, nil
}

// process is a peer that processes started.
type process struct {
	command *exec.Cmd
	// life is the child's standard input: it begins to train at the first line, and
	// leaves when that is closed, by this process or by its death.
	life io.WriteCloser
}

// begin cannot block: a pipe takes more than the one byte. A child that has gone
// will say so by its end.
func (p process) begin() { _, _ = io.WriteString(p.life, "\n") }

func (p process) leave() { _ = p.life.Close() }
func (p process) kill()  { _ = p.command.Process.Kill() }

func (p *processes) launch(number int, s settings, events chan<- event) (member, error) {
	s.Report = true
	command := exec.Command(p.program, append([]string{"run"}, s.arguments()...)...)
	command.Env = p.environment
	life, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting peer %d: %w", number, err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting peer %d: %w", number, err)
	}
	logged, err := command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting peer %d: %w", number, err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting peer %d: %w", number, err)
	}
	go watch(number, command, out, logged, events)
	return process{command: command, life: life}, nil
}

// watch passes on what a child says until it has ended.
func watch(number int, command *exec.Cmd, out, logged io.Reader, events chan<- event) {
	var readers sync.WaitGroup
	readers.Go(func() {
		lines := &cli.LineWriter{Take: func(line string) { events <- event{number: number, line: line} }}
		_, _ = io.Copy(lines, logged)
		lines.Flush()
	})
	readers.Go(func() {
		lines := &cli.LineWriter{Take: func(line string) { events <- reportEvent(number, line) }}
		_, _ = io.Copy(lines, out)
		lines.Flush()
	})
	// The pipes end with the child, and must be read before Wait closes them.
	readers.Wait()
	events <- event{number: number, end: endOf(command.Wait())}
}

// reportEvent reads a line of a child's standard output. What is no report is
// shown as what it is.
func reportEvent(number int, line string) event {
	var r report
	if err := json.Unmarshal([]byte(line), &r); err != nil || r.Kind == "" {
		return event{number: number, line: line}
	}
	return event{number: number, report: &r}
}

// endOf tells whether a child ended by itself. Where there are no signals a
// killed child cannot be told from one that failed.
func endOf(err error) *end {
	var exit *exec.ExitError
	return &end{killed: errors.As(err, &exit) && !exit.Exited(), err: err}
}
