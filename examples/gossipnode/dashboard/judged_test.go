package dashboard

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestWhoIsTrustedLessIsSeen: of a member whose exchanges do harm the page is told how much, and how
// far this peer trusts it; of one that is trusted in full nothing.
func TestWhoIsTrustedLessIsSeen(t *testing.T) {
	p := newCalm()
	p.stats.Exchanges.Harms = []stats.Harm{{Partner: "b", Harm: 1.5, Trust: 0.375, Exchanges: 9}, {Partner: "c", Harm: 0.5, Trust: 1, Exchanges: 9}}
	text, err := json.Marshal(newView(p, About{}, nil))
	if err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Members []struct {
			ID     string
			Judged *struct{ Harm, Trust float64 }
		}
	}
	if err := json.Unmarshal(text, &seen); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, m := range seen.Members {
		if m.Judged != nil {
			told[m.ID] = fmt.Sprint(*m.Judged)
		}
	}
	if fmt.Sprint(told) != "map[b:{1.5 0.375}]" {
		t.Errorf("the page is told %v", told)
	}
}
