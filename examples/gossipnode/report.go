package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// The kinds of report.
const (
	reportStarted  = "started"  // it listens, and waits for others
	reportReady    = "ready"    // it has joined, and would train if it may
	reportProgress = "progress" // it trains
	reportResult   = "result"   // it is done; nothing follows
	reportFailed   = "failed"   // it has given up; nothing follows
)

// report is what a peer tells whoever watches it: this process's terminal, or
// the process of local that started it, as a line of JSON.
type report struct {
	Kind      string   `json:"kind"`
	Peer      string   `json:"peer,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Dashboard string   `json:"dashboard,omitempty"` // where to open it, token included
	Status    *status  `json:"status,omitempty"`
	Share     *share   `json:"share,omitempty"`
	// others are the other members, for a table in this process.
	others []*peerState
	// Failure and Code are what a peer that has given up says, and would exit
	// with; Interrupted tells that it was asked to.
	Failure     string `json:"failure,omitempty"`
	Code        int    `json:"code,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	// Unsaved is why the last checkpoint of a peer that has a result, or was asked to
	// end, could not be saved.
	Unsaved string `json:"unsaved,omitempty"`
}

// status is a peer's progress at one moment.
type status struct {
	Role      string     `json:"role"`
	Step      uint64     `json:"step"`
	Progress  float64    `json:"progress"`
	Loss      cli.Number `json:"loss"`
	Exchanges uint64     `json:"exchanges"`
	Distance  cli.Number `json:"distance"`
	Members   int        `json:"members"`
	Resumed   uint64     `json:"resumed,omitempty"` // of Step, those of earlier lives
	counts
	// Elapsed is the time since this peer's first step, and Begun the progress of
	// the flock at that time.
	Elapsed time.Duration `json:"elapsed"`
	Begun   float64       `json:"begun"`
}

// counts are what adds up over the peers. Exchanges are counted by those that
// initiated them, so that no exchange counts twice.
type counts struct {
	Initiated uint64 `json:"initiated"`
	Refused   uint64 `json:"refused"`
	Failed    uint64 `json:"failed"`
	InDoubt   uint64 `json:"in_doubt"`
	BytesSent uint64 `json:"bytes_sent"`
}

func statusOf(s peer.Stats, elapsed time.Duration) status {
	distance := s.Exchanges.ConsensusDistance
	if s.Exchanges.Completed() == 0 {
		distance = math.NaN()
	}
	return status{
		Role: s.Role, Step: s.Steps, Resumed: s.Resumed, Progress: s.Progress, Loss: cli.Number(s.Loss), Exchanges: s.Exchanges.Completed(),
		Distance: cli.Number(distance), Members: s.Members, Elapsed: elapsed,
		counts: counts{
			Initiated: s.Exchanges.Initiated, Refused: s.Exchanges.Refused, Failed: s.Exchanges.Failed,
			InDoubt: s.Exchanges.InDoubt + s.Exchanges.Lost, BytesSent: s.Exchanges.BytesSent,
		},
	}
}

// left estimates the time to go from the pace so far; false while it is unknown.
func (s status) left() (time.Duration, bool) {
	const known = 0.01
	seen := s.Progress - s.Begun
	if seen < known || s.Elapsed <= 0 {
		return 0, false
	}
	return time.Duration(float64(s.Elapsed) * (1 - s.Progress) / seen), true
}

// String is the line that run prints every few seconds.
func (s status) String() string {
	text := fmt.Sprintf("%3.0f %%  step %d  loss %s  exchanges %d  distance %s  %s  members %d",
		100*s.Progress, s.Step, figure(s.Loss), s.Exchanges, figure(s.Distance), s.Role, s.Members)
	if s.Progress >= 1 {
		return text + "  " + othersAtWork
	}
	if left, ok := s.left(); ok {
		text += "  " + duration(left) + " left"
	}
	return text
}

// othersAtWork is said when the work is done but the run has not ended.
const othersAtWork = "waiting for the others to finish"

// figure writes a number in few characters.
func figure(n cli.Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return fmt.Sprintf("%.4f", float64(n))
}

// reporter takes the reports of one peer, one at a time.
type reporter func(report)

// lineReporter writes reports as lines of JSON. A reader that has gone is
// noticed elsewhere: standard input ends with it.
func lineReporter(out io.Writer) reporter {
	encoder := json.NewEncoder(out)
	return func(r report) { _ = encoder.Encode(r) }
}

// textReporter writes reports for a person, a line of progress every interval.
func textReporter(out io.Writer, interval time.Duration) reporter {
	var (
		last time.Time
		over bool
	)
	return func(r report) {
		switch r.Kind {
		case reportStarted:
			fmt.Fprintf(out, "peer %s, to be joined at\n", r.Peer)
			for _, address := range r.Addresses {
				fmt.Fprintf(out, "  --join %s\n", address)
			}
			if r.Dashboard != "" {
				fmt.Fprintf(out, "dashboard at %s\n", r.Dashboard)
			}
		case reportProgress:
			done := r.Status.Progress >= 1
			if done && over {
				return
			}
			if done || time.Since(last) >= interval {
				last, over = time.Now(), done
				fmt.Fprintln(out, r.Status)
			}
		}
	}
}

// short is a peer's id as tables show it.
func short(id string) string { return seam.PeerID(id).Short() }
