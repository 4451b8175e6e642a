package watch

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestRunDisplay shows what somebody at a terminal sees of a run: addresses and logs
// that stay, below them a row for each peer and the progress with the time left.
func TestRunDisplay(t *testing.T) {
	var out bytes.Buffer
	d := &runDisplay{show: &liveTable{out: &out, title: "digits", size: func() (int, int) { return 80, 24 }}}
	d.tell(Report{Kind: ReportStarted, Peer: "12D3KooWAAAAAAAA", Addresses: []string{"192.0.2.7:4001"}, Dashboard: "http://127.0.0.1:8080/"})
	d.Line("a warning\x1b[2J")
	d.tell(Report{Kind: ReportReady})
	d.tell(Report{
		Kind:   ReportProgress,
		Status: &Status{Role: "active", Step: 1200, Progress: 0.6, Begun: 0.4, Loss: 0.25, Exchanges: 10, Distance: 0.5, Elapsed: 10 * time.Second},
		Others: []*Row{
			{ID: "12D3KooWBBBBBBBB", Phase: PhaseTraining, Status: Status{Role: "passive", Step: 900, Elapsed: 1}},
			{ID: "12D3KooWCCCCCCCC", Phase: PhaseJoining, Status: Status{Elapsed: 1}},
		},
	})
	text := out.String()
	for _, want := range []string{"--join 192.0.2.7:4001\n", "dashboard at http://127.0.0.1:8080/\n", "a warning[2J\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	last := text[strings.LastIndex(text, clearBelow)+len(clearBelow):]
	for _, want := range []string{"digits\n", "AAAAAAAA  active         1200", "BBBBBBBB  passive         900", "CCCCCCCC  joining", " 60 %  20 s left\n"} {
		if !strings.Contains(last, want) {
			t.Errorf("no %q in the table\n%s", want, last)
		}
	}
	if strings.Contains(last, "warning") || strings.Contains(text, bold) {
		t.Errorf("the table is\n%s", text)
	}
}

// TestRunDisplayElsewhere shows that there is no table where nobody can see it.
func TestRunDisplayElsewhere(t *testing.T) {
	var out bytes.Buffer
	s := settings.Settings{}
	_, tell, everybody := NewRun("", s.NewLog, &out)
	tell(Report{Kind: ReportProgress, Status: &Status{Progress: 0.5}})
	if text := out.String(); everybody || !strings.HasPrefix(text, " 50 %  step 0") || strings.Contains(text, "\x1b") {
		t.Errorf("everybody %v, text %q", everybody, text)
	}
}
