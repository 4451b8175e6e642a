package supervise

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// TestReportLine shows that a report comes through the pipe whole, and that what
// is none is passed on as text.
func TestReportLine(t *testing.T) {
	var out strings.Builder
	watch.LineReporter(&out)(watch.Report{Kind: watch.ReportProgress, Status: &watch.Status{Step: 5, Loss: 0.5}})
	if e := eventOf(2, out.String()); e.Number != 2 || e.Report == nil || e.Report.Status.Step != 5 || e.Report.Status.Loss != 0.5 {
		t.Errorf("%q became %+v", out.String(), e)
	}
	for _, text := range []string{"panic: oh", "panic: x", "{}", "3", ""} {
		if e := eventOf(2, text); e.Report != nil || e.Line != text {
			t.Errorf("%q became %+v", text, e)
		}
	}
}

// A child that was killed is told from one that failed.
func TestAKilledChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals: who was killed looks as one that failed")
	}
	killed := exec.Command("sleep", "60")
	if err := killed.Start(); err != nil {
		t.Skipf("no program \"sleep\" here to stand for a peer that is killed: %v", err)
	}
	_ = killed.Process.Kill()
	if end := endOf(killed.Wait()); !end.Killed || end.Err == nil {
		t.Errorf("killed: %+v", end)
	}
	if end := endOf(exec.Command("sleep", "never").Run()); end.Killed || end.Err == nil {
		t.Errorf("failed: %+v", end)
	}
	if end := endOf(nil); end.Killed || end.Err != nil {
		t.Errorf("done: %+v", end)
	}
}
