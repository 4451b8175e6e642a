package fit

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/table"
)

// watched is peers that are under way, whose stops are counted.
func watched(peers int) (l *local, stops *int) {
	stops = new(int)
	l = &local{board: newBoard(new(bytes.Buffer))}
	for range peers {
		l.peers = append(l.peers, &row{begun: true, stop: func() { *stops++ }})
	}
	return l, stops
}

func (l *local) tell(number int, r report) { l.handle(event{Number: number, Report: &r}) }

// One that was killed is lost, and the result is that of the others.
func TestKilledPeerIsLost(t *testing.T) {
	l, stops := watched(3)
	l.handle(event{Number: 1, End: &cli.End{Killed: true, Err: errors.New("signal: killed")}})
	for _, number := range []int{0, 2} {
		l.tell(number, outcome(Result{Hash: "a", BytesSent: 10, Seconds: float64(number)}, nil))
		l.handle(event{Number: number, End: &cli.End{}})
	}
	r, err := l.combine()
	if err != nil || *stops != 0 || r.PeersLost != 1 || r.BytesSent != 20 || r.Seconds != 2 {
		t.Errorf("%+v, %v, %d stopped", r, err, *stops)
	}
	l.out = "m"
	if _, err := l.combine(); err == nil || !strings.Contains(err.Error(), "not in m") {
		t.Errorf("%v; want it to say that there is no model", err)
	}
}

// The fault that counts is that of the peer which has it, also when another tells of it first.
func TestFaultIsThatOfItsPeer(t *testing.T) {
	l, stops := watched(2)
	l.tell(1, outcome(Result{}, table.ErrMember))
	if *stops != 0 {
		t.Error("the peer with the fault was stopped before it could tell it")
	}
	l.tell(0, outcome(Result{}, cli.Config(errors.New("line 7 is torn"))))
	_, err := l.combine()
	if err == nil || err.Error() != "peer 0: line 7 is torn" || cli.ExitCode(err) != cli.ExitConfig || *stops == 0 {
		t.Errorf("%v, exit code %d, %d stopped", err, cli.ExitCode(err), *stops)
	}
}

// Two models where there should be one are no result.
func TestUnlikeModelsAreNoResult(t *testing.T) {
	l, _ := watched(2)
	l.tell(0, outcome(Result{Hash: "a"}, nil))
	l.tell(1, outcome(Result{Hash: "b"}, nil))
	if _, err := l.combine(); err == nil || !strings.Contains(err.Error(), "another model") {
		t.Error(err)
	}
}

// Before the first sum a line says what a peer is about, too.
func TestBoardBeforeTheFirstSum(t *testing.T) {
	out := new(bytes.Buffer)
	b := newBoard(out)
	b.last = b.last.Add(-lineEvery)
	b.draw([]*row{{}})
	if !strings.HasSuffix(out.String(), "0 sums, reading, or waiting for others\n") {
		t.Errorf("%q", out)
	}
}
