// Package watch shows the progress of peers: their reports, and the table or lines for a person.
package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// The kinds of report.
const (
	ReportStarted  = "started"  // it listens, and waits for other peers
	ReportNews     = "news"     // news for a person, in words
	ReportReady    = "ready"    // it has joined, and waits for permission to train
	ReportTraining = "training" // its first step begins
	ReportProgress = "progress" // it trains
	ReportResult   = "result"   // it is done; nothing follows
	ReportFailed   = "failed"   // it has failed; nothing follows
)

// Report is a message of a peer to its watcher: the terminal of this process, or, as a line of JSON, the command
// local that started it.
type Report struct {
	Kind      string        `json:"kind"`
	Peer      string        `json:"peer,omitempty"`
	Addresses []string      `json:"addresses,omitempty"`
	Token     string        `json:"token,omitempty"`     // for another machine to join
	Keyed     bool          `json:"keyed,omitempty"`     // joining also needs the run's key, which the token does not have
	Dashboard string        `json:"dashboard,omitempty"` // its URL, with the token
	Said      string        `json:"said,omitempty"`      // for a person
	Status    *Status       `json:"status,omitempty"`
	Share     *result.Share `json:"share,omitempty"`
	// Fitted is the result of a peer in a fit.
	Fitted json.RawMessage `json:"fitted,omitempty"`
	// Failure and Code are the error and the exit code of a peer that has failed; Interrupted tells that it was asked
	// to end.
	Failure     string `json:"failure,omitempty"`
	Code        int    `json:"code,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	// Echo tells that the error is another peer's, which reports it itself.
	Echo bool `json:"echo,omitempty"`
	// Unsaved is why the last checkpoint could not be saved, for a peer that has a result or was asked to end.
	Unsaved string `json:"unsaved,omitempty"`
}

// Failed is the report of a peer that has failed. An error that another member reports of itself is an echo.
func Failed(err error) Report {
	return Report{
		Kind: ReportFailed, Failure: err.Error(), Code: cli.ExitCode(err),
		Interrupted: errors.Is(err, cli.ErrInterrupted), Echo: errors.Is(err, table.ErrMember),
	}
}

// Invitation is the command with which another machine joins.
func (r Report) Invitation() string {
	command := "gossipnode run --join " + r.Token
	if r.Keyed {
		command += " --run-key FILE"
	}
	return command
}

// Status is a peer's progress at one moment.
type Status struct {
	Role      string     `json:"role"`
	Step      uint64     `json:"step"`
	Progress  float64    `json:"progress"`
	Loss      cli.Number `json:"loss"`
	Exchanges uint64     `json:"exchanges"`
	Distance  cli.Number `json:"distance"`
	Members   int        `json:"members"`
	Resumed   uint64     `json:"resumed,omitempty"` // the part of Step from earlier incarnations
	Counts
	// Sums is how many sums a peer of a fit has taken part in; Doing is the name of the last one.
	Sums  int    `json:"sums,omitempty"`
	Doing string `json:"doing,omitempty"`
	// Elapsed is the time since this peer's first step, and Begun the flock's progress at that step.
	Elapsed time.Duration `json:"elapsed"`
	Begun   float64       `json:"begun"`
}

// Counts are added up over the peers. Exchanges are counted by their initiator, so that each counts once.
type Counts struct {
	Initiated uint64 `json:"initiated"`
	Refused   uint64 `json:"refused"`
	Failed    uint64 `json:"failed"`
	InDoubt   uint64 `json:"in_doubt"`
	BytesSent uint64 `json:"bytes_sent"`
}

func StatusOf(s stats.Peer, elapsed time.Duration) Status {
	distance := s.Exchanges.ConsensusDistance
	if s.Exchanges.Completed() == 0 {
		distance = math.NaN()
	}
	return Status{
		Role: s.Role, Step: s.Steps, Resumed: s.Resumed, Progress: s.Progress, Loss: cli.Number(s.Loss), Exchanges: s.Exchanges.Completed(),
		Distance: cli.Number(distance), Members: s.Members, Elapsed: elapsed,
		Counts: Counts{
			Initiated: s.Exchanges.Initiated, Refused: s.Exchanges.Refused, Failed: s.Exchanges.Failed,
			InDoubt: s.Exchanges.InDoubt + s.Exchanges.Lost, BytesSent: s.Exchanges.BytesSent,
		},
	}
}

// left estimates the remaining time from the pace so far; false if unknown.
func (s Status) left() (time.Duration, bool) {
	const known = 0.01
	seen := s.Progress - s.Begun
	if seen < known || s.Elapsed <= 0 {
		return 0, false
	}
	return time.Duration(float64(s.Elapsed) * (1 - s.Progress) / seen), true
}

// String is the line that run prints every few seconds.
func (s Status) String() string {
	if s.Role == result.Holder {
		return fmt.Sprintf("%s  members %d", s.Role, s.Members)
	}
	text := fmt.Sprintf("%3.0f %%  step %d  loss %s  exchanges %d  est. distance %s  %s  members %d",
		100*s.Progress, s.Step, cli.Figure(s.Loss), s.Exchanges, cli.Figure(s.Distance), s.Role, s.Members)
	if s.Progress >= 1 {
		return text + "  " + othersAtWork
	}
	if left, ok := s.left(); ok {
		text += "  " + cli.Duration(left) + " left"
	}
	return text
}

// othersAtWork is shown when the work is done but the run has not ended.
const othersAtWork = "waiting for the others to finish"

// Reporter takes the reports of one peer, one at a time.
type Reporter func(Report)

// LineReporter writes reports as lines of JSON. It ignores write errors: if the reader has gone, standard input ends
// too.
func LineReporter(out io.Writer) Reporter {
	encoder := json.NewEncoder(out)
	return func(r Report) { _ = encoder.Encode(r) }
}

// TextReporter writes reports for a person: lines when the peer listens, has its model and begins to train, and then
// a line of progress from time to time.
func TextReporter(out io.Writer) Reporter {
	var (
		last time.Time
		over bool
	)
	return func(r Report) {
		switch r.Kind {
		case ReportStarted:
			if r.Token != "" {
				fmt.Fprintf(out, "listening as %s; another machine joins with its data and: %s\n", transport.PeerID(r.Peer).Short(), r.Invitation())
			}
			if r.Dashboard != "" {
				fmt.Fprintf(out, "dashboard at %s\n", r.Dashboard)
			}
			if r.Said != "" {
				fmt.Fprintln(out, r.Said)
			}
		case ReportNews, ReportReady, ReportTraining:
			fmt.Fprintln(out, r.Said)
		case ReportProgress:
			done := r.Status.Progress >= 1
			if done && over {
				return
			}
			if done || time.Since(last) >= printEvery {
				last, over = time.Now(), done
				fmt.Fprintln(out, r.Status)
			}
		}
	}
}

// printEvery is the time between two lines of progress.
const printEvery = 2 * time.Second
