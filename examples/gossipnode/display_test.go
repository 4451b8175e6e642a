package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// somePeers are peers in several states.
func somePeers() []*peerState {
	unknown := number(math.NaN())
	return []*peerState{
		{id: "12D3KooWAAAAAAAA", phase: phaseTraining, status: status{Role: "active", Step: 1200, Progress: 0.4, Loss: 0.25, Exchanges: 10, Distance: 0.5, Elapsed: 20 * time.Second}},
		{id: "12D3KooWBBBBBBBB", phase: phaseTraining, status: status{Role: "passive", Step: 1300, Progress: 0.5, Loss: 0.75, Exchanges: 9, Distance: unknown, Elapsed: 21 * time.Second}},
		{id: "12D3KooWCCCCCCCC", phase: phaseLost, status: status{Step: 90, Progress: 0.1, Loss: 2, Exchanges: 1, Distance: 1, Elapsed: 2 * time.Second}},
		{phase: phaseStarting},
	}
}

// TestTable compares the table with testdata/table.txt.
func TestTable(t *testing.T) {
	const golden = "testdata/table.txt"
	var text strings.Builder
	for _, width := range []int{80, 50} {
		for _, line := range tableLines("run: 4 peers", somePeers(), width, false) {
			if n := len([]rune(line)); n > width {
				t.Errorf("a line of %d characters on a terminal of %d: %q", n, width, line)
			}
			text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		text.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("the table is\n%s\nwant\n%s", &text, want)
	}
}

// TestRedraw shows that a table is drawn over the one before, that lines stay
// above it, and that they cannot steer the terminal.
func TestRedraw(t *testing.T) {
	var out bytes.Buffer
	table := &liveTable{out: &out, title: "title", width: func() int { return 80 }}
	table.update(somePeers())
	if text := out.String(); strings.Contains(text, "\x1b") {
		t.Errorf("the first table has control sequences though color is off: %q", text)
	}
	height := strings.Count(out.String(), "\n")
	out.Reset()
	table.line("peer 1: \x1b[2Jhello")
	if text, want := out.String(), "\x1b[7A\r\x1b[Jpeer 1: [2Jhello\ntitle\n"; height != 7 || !strings.HasPrefix(text, want) {
		t.Errorf("a line above a table of %d lines: %q, want %q first", height, text, want)
	}
	if colored := tableLines("title", somePeers(), 80, true); !strings.Contains(colored[1], bold) {
		t.Errorf("no color in %q", colored[1])
	}
}

// TestOutlook shows the plain line: peers that are lost do not count.
func TestOutlook(t *testing.T) {
	if got, want := outlook(somePeers()), " 50 %  step 2500  loss 0.5000  exchanges 10  distance 0.5000  peers 2  21 s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := outlook([]*peerState{{phase: phaseJoining}, {}}), "1 of 2 peers are ready"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTimeLeft shows that a peer which comes late estimates from what it has seen.
func TestTimeLeft(t *testing.T) {
	late := status{Progress: 0.6, Begun: 0.4, Elapsed: 10 * time.Second}
	if left, ok := late.left(); !ok || left.Round(time.Second) != 20*time.Second {
		t.Errorf("%s left (%v), want 20 s", left, ok)
	}
	if left, ok := (status{Progress: 0.4, Begun: 0.4, Elapsed: 1}).left(); ok {
		t.Errorf("%s left although nothing has been seen yet", left)
	}
}
