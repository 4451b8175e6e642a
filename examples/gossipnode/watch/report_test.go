package watch

import (
	"strings"
	"testing"
)

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
