package describe

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// TestAColumnOfOneNumber has no range, and says nothing of how exact the quantiles of others are.
func TestAColumnOfOneNumber(t *testing.T) {
	one := &summary.Numbers{Min: 3, Max: 3, Quantiles: []summary.Quantile{{Share: 0.5, Value: 3}}}
	many := &summary.Numbers{Min: 0, Max: 10, Quantiles: []summary.Quantile{{Share: 0.5, Value: 5, Error: 1}}}
	for _, columns := range [][]summary.Column{{{Numbers: many}, {Numbers: one}}, {{Numbers: one}, {Numbers: many}}} {
		if head := (Result{Summary: &summary.Summary{Columns: columns}}).head(); !strings.Contains(head, "off by at most 0.1 ") {
			t.Error(head)
		}
	}
	if head := (Result{Summary: &summary.Summary{Columns: []summary.Column{{Numbers: one}}}}).head(); !strings.Contains(head, "are exact") {
		t.Error(head)
	}
}
