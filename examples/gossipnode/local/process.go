package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// processes starts peers as so many processes of this program.
type processes int

// process is a peer that processes started. It begins to train at the first line of its
// standard input.
type process struct{ *cli.Child }

// begin cannot block: a pipe takes more than the one byte. A child that has gone
// will say so by its end.
func (p process) begin() { _, _ = io.WriteString(p.Life, "\n") }

func (p process) leave() { _ = p.Life.Close() }
func (p process) kill()  { _ = p.Kill() }

func (p processes) launch(number int, s settings.Settings, events chan<- event) (member, error) {
	s.Report = true
	child, err := cli.StartChild(int(p), append([]string{"run"}, s.Arguments()...),
		func(line string) { events <- reportEvent(number, line) },
		func(line string) { events <- event{number: number, line: line} },
		func(err error) { events <- event{number: number, end: endOf(err)} })
	if err != nil {
		return nil, fmt.Errorf("starting peer %d: %w", number, err)
	}
	return process{child}, nil
}

// reportEvent reads a line of a child's standard output. What is no report is
// shown as what it is.
func reportEvent(number int, line string) event {
	var r watch.Report
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
