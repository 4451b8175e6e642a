package watch

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestStatusOf: the exchanges of a passive peer are those that it served, in its line and in
// its row; proposals that were refused are no failures; and there is no distance to tell
// before an exchange.
func TestStatusOf(t *testing.T) {
	s := StatusOf(stats.Peer{Role: "passive", Exchanges: stats.Exchanges{Served: 41, Refused: 7, Failed: 2, ConsensusDistance: 0.5}}, time.Second)
	if s.Exchanges != 41 || s.Initiated != 0 || s.Refused != 7 || s.Failed != 2 || s.Distance != 0.5 {
		t.Errorf("a peer that serves: %+v", s)
	}
	if line := s.String(); !strings.Contains(line, "exchanges 41  est. distance 0.5") {
		t.Errorf("its line: %q", line)
	}
	if line := (Status{Role: result.Holder, Members: 3}).String(); line != "holder  members 3" {
		t.Errorf("the line of one that trains nothing: %q", line)
	}
	row := (&Training{}).Row(0, &Row{ID: "a", Phase: PhaseTraining, Status: s}, 80)
	if fields := strings.Fields(row); len(fields) < 2 || fields[len(fields)-2] != "41" {
		t.Errorf("its row: %q", row)
	}
	if s := StatusOf(stats.Peer{Exchanges: stats.Exchanges{Refused: 7}}, time.Second); s.Exchanges != 0 || !math.IsNaN(float64(s.Distance)) {
		t.Errorf("a peer that was only refused: %+v", s)
	}
}

// TestTextReporter shows what a person is told of a start: a line when it has happened.
func TestTextReporter(t *testing.T) {
	var out strings.Builder
	tell := TextReporter(&out)
	for _, c := range []struct {
		report Report
		want   string
	}{
		{
			Report{Kind: ReportStarted, Peer: "12D3KooWoKpno9B5", Token: "murmuration1x", Said: "waiting"},
			"listening as oKpno9B5; another machine joins with its data and: gossipnode run --join murmuration1x\nwaiting\n",
		},
		{
			Report{Kind: ReportStarted, Peer: "12D3KooWoKpno9B5", Token: "murmuration1x", Keyed: true},
			"listening as oKpno9B5; another machine joins with its data and: gossipnode run --join murmuration1x --run-key FILE\n",
		},
		{Report{Kind: ReportStarted, Dashboard: "http://x/"}, "dashboard at http://x/\n"},
		{Report{Kind: ReportNews, Said: "resuming"}, "resuming\n"},
		{Report{Kind: ReportReady, Said: "joined 3 peers; model copied from 2 of them"}, "joined 3 peers; model copied from 2 of them\n"},
		{Report{Kind: ReportTraining, Said: "training mlp on glyphs"}, "training mlp on glyphs\n"},
		{Report{Kind: ReportResult}, ""},
	} {
		out.Reset()
		tell(c.report)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.report.Kind, &out, c.want)
		}
	}
}
