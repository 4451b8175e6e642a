package watch

import (
	"strings"
	"testing"
)

// TestPlainLines shows that the end of the work is said once, and nothing of
// peers that have ended before they trained.
func TestPlainLines(t *testing.T) {
	var out strings.Builder
	lines := NewDisplay(&out, "", &Training{})
	peers := []*Row{{Phase: PhaseDone, Status: Status{Progress: 1, Elapsed: 1}}, {Phase: PhaseTraining, Status: Status{Progress: 1, Elapsed: 1}}}
	for range 3 {
		lines.Update(peers)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, othersAtWork) {
		t.Errorf("all work done:\n%s", text)
	}
	out.Reset()
	NewDisplay(&out, "", &Training{}).Update([]*Row{{Phase: PhaseLeft}, {Phase: PhaseLeft}})
	if out.Len() > 0 {
		t.Errorf("nobody is there: %q", &out)
	}
}
