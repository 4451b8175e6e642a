package watch

import (
	"bytes"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// somePeers are peers in several states.
func somePeers() []*Row {
	unknown := cli.Number(math.NaN())
	return []*Row{
		{ID: "12D3KooWAAAAAAAA", Phase: PhaseTraining, Status: Status{Role: "active", Step: 1200, Progress: 0.4, Loss: 0.25, Exchanges: 10, Distance: 0.5, Elapsed: 20 * time.Second, Counts: Counts{Initiated: 6}}},
		{ID: "12D3KooWBBBBBBBB", Phase: PhaseTraining, Status: Status{Role: "passive", Step: 1300, Progress: 0.5, Loss: 0.75, Exchanges: 9, Distance: unknown, Elapsed: 21 * time.Second}},
		{ID: "12D3KooWCCCCCCCC", Phase: PhaseLost, Status: Status{Step: 90, Progress: 0.1, Loss: 2, Exchanges: 1, Distance: 1, Elapsed: 2 * time.Second, Counts: Counts{Initiated: 4}}},
		{Phase: PhaseStarting},
	}
}

// tableLines is the table of peers that train.
func tableLines(title string, peers []*Row, width, height int) []string {
	return (&Display{title: title, view: &Training{}, peers: peers}).table(width, height)
}

// TestTable compares the table with testdata/table.txt.
func TestTable(t *testing.T) {
	const golden = "testdata/table.txt"
	var text strings.Builder
	for _, width := range []int{80, 64, 50, 30} {
		for _, line := range tableLines("run: 4 peers", somePeers(), width, 24) {
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
	table := &Display{out: &out, title: "title", view: &Training{}, size: func() (int, int) { return 80, 24 }}
	table.Line("a line before there are peers")
	if text := out.String(); text != "a line before there are peers\n" {
		t.Errorf("without a table: %q", text)
	}
	out.Reset()
	table.Update(somePeers())
	if text := out.String(); strings.Contains(text, "\x1b") {
		t.Errorf("the first table has control sequences though color is off: %q", text)
	}
	height := strings.Count(out.String(), "\n")
	out.Reset()
	table.Line("peer 1: \x1b[2Jhello")
	if text, want := out.String(), "\x1b[7A\r\x1b[Jpeer 1: [2Jhello\ntitle\n"; height != 7 || !strings.HasPrefix(text, want) {
		t.Errorf("a line above a table of %d lines: %q, want %q first", height, text, want)
	}
	table.color = true
	out.Reset()
	table.Update(somePeers())
	if text := out.String(); !strings.Contains(text, bold+"peer") || !strings.Contains(text, green+"###") {
		t.Errorf("no color in %q", text)
	}
}

// TestResized shows that a table is drawn over whole on a terminal that has become
// narrower and has wrapped it, and that it leaves out what does not fit.
func TestResized(t *testing.T) {
	var out bytes.Buffer
	width, height := 80, 24
	table := &Display{out: &out, title: strings.Repeat("t", 100), view: &Training{}, size: func() (int, int) { return width, height }}
	table.Update(somePeers())
	width = 50
	out.Reset()
	table.Update(somePeers())
	// The title, the head, two peers that train, one that is lost, and the bar took
	// two rows each, the peer without figures one.
	if text := out.String(); !strings.HasPrefix(text, "\x1b[13A\r\x1b[J") {
		t.Errorf("after narrowing: %q", text[:min(len(text), 20)])
	}
	many := make([]*Row, 100)
	for i := range many {
		many[i] = &Row{}
	}
	for _, height := range []int{3, 6, 10, 24, 103, 104} {
		lines := tableLines("title", many, width, height)
		if len(lines) >= height {
			t.Errorf("%d lines on a terminal of %d rows", len(lines), height)
		}
		if said := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "and ") }); said != (height > 4 && height < 104) {
			t.Errorf("%d rows: %q", height, lines)
		}
	}
	if lines := tableLines("title", many, width, 10); lines[len(lines)-2] != "and 95 more" {
		t.Errorf("10 rows: %q", lines)
	}
}

// TestOutlook shows the plain line: peers that are lost do not count.
func TestOutlook(t *testing.T) {
	if got, want := outlook(somePeers()), " 50 %  step 2500  loss 0.5000  exchanges 10  est. distance 0.5000  peers 2  21 s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := outlook([]*Row{{Phase: PhaseReady}, {Phase: PhaseJoining}}), "1 of 2 peers ready"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFinished: at the end it is told how many of the peers have finished, once when the work is
// done and once when all have ended.
func TestFinished(t *testing.T) {
	var out bytes.Buffer
	lines, peers := NewDisplay(&out, "", &Training{}), []*Row{}
	for i := range 4 {
		peers = append(peers, &Row{Phase: PhaseTraining, Status: Status{Step: uint64(i), Progress: 1, Elapsed: time.Second}})
	}
	for i, p := range peers {
		lines.Update(peers)
		if p.Phase = PhaseDone; i == 2 {
			p.Phase = PhaseLost
		}
	}
	lines.Update(peers)
	lines.Update(peers)
	said := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(said) != 2 || !strings.HasSuffix(said[0], "peers 4  "+othersAtWork) || !strings.HasSuffix(said[1], "peers 3  3 of 4 peers finished") {
		t.Errorf("it says\n%s", &out)
	}
	if text := (&Training{}).Foot(peers, 80); !strings.HasSuffix(text, " 100 %  3 of 4 peers finished") {
		t.Errorf("below the table is %q", text)
	}
}

// TestTimeLeft shows that a peer which comes late estimates from what it has seen.
func TestTimeLeft(t *testing.T) {
	late := Status{Progress: 0.6, Begun: 0.4, Elapsed: 10 * time.Second}
	if left, ok := late.left(); !ok || left.Round(time.Second) != 20*time.Second {
		t.Errorf("%s left (%v), want 20 s", left, ok)
	}
	if left, ok := (Status{Progress: 0.4, Begun: 0.4, Elapsed: 1}).left(); ok {
		t.Errorf("%s left although nothing has been seen yet", left)
	}
}
