package result

import (
	"strings"
	"testing"
)

// TestLinkSummaryIsBounded shows that a large flock does not fill the terminal.
func TestLinkSummaryIsBounded(t *testing.T) {
	text := linkSummary(make([]LinkResult, 3*maxShownLinks))
	if n := strings.Count(text, "\n"); n != maxShownLinks+1 || !strings.Contains(text, "and 64 more links") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if linkSummary(nil) != "" {
		t.Error("something is said of no links")
	}
}
