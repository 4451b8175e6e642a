package main

import (
	"fmt"
	"io"
	"math"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// runDisplay shows a person at a terminal the run as one peer sees it: a table of the
// peers below, what is logged above it, where it stays. Any goroutine may log.
type runDisplay struct {
	mu    sync.Mutex
	show  display
	own   peerState
	shown []*peerState
}

// watchRun gives a peer that a person watches its log and its reporter: a live table
// on a terminal, lines elsewhere.
func (s *settings) watchRun(out io.Writer) (log *zap.Logger, tell reporter) {
	table := newLiveTable(out, fmt.Sprintf("%s: %s with %s, %s, %s", s.Run, s.Dataset, s.Model, s.Strategy, s.codecName()))
	if table == nil {
		return s.newLog(out), textReporter(out, printEvery)
	}
	s.everybody = true
	d := &runDisplay{show: table}
	return s.newLog(&cli.LineWriter{Take: d.line}), d.tell
}

func (d *runDisplay) line(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.show.line(text)
}

// tell takes the peer's reports.
func (d *runDisplay) tell(r report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r.Kind {
	case reportStarted:
		textReporter(&cli.LineWriter{Take: d.show.line}, printEvery)(r)
		d.own.id, d.own.phase = r.Peer, phaseJoining
	case reportReady:
		d.own.phase = phaseTraining
	case reportProgress:
		d.own.status, d.own.phase = *r.Status, phaseTraining
	}
	d.shown = append([]*peerState{&d.own}, r.others...)
	d.show.update(d.shown)
}

// others are the other members as the table shows them: what they tell, if they do.
func (t *training) others() (rows []*peerState) {
	if !t.everybody {
		return nil
	}
	told := make(map[seam.PeerID]peer.Digest)
	for _, d := range t.peer.Digests() {
		told[d.Peer] = d
	}
	for _, m := range t.peer.Members() {
		if m.ID == t.peer.Self() {
			continue
		}
		unknown := cli.Number(math.NaN())
		row := &peerState{id: string(m.ID), phase: phaseTraining, status: status{
			Role: m.Role.String(), Step: m.Steps, Loss: unknown, Distance: unknown, Elapsed: 1, // it has begun
		}}
		switch m.State {
		case peer.StateJoining, peer.StateCopying:
			row.phase = phaseJoining
		case peer.StateOver:
			row.phase = phaseDone
		}
		if d, heard := told[m.ID]; heard {
			row.status.Loss, row.status.Distance, row.status.Exchanges = cli.Number(d.Loss), cli.Number(d.ConsensusDistance), d.Exchanges
		}
		rows = append(rows, row)
	}
	return rows
}
