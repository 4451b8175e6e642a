package metrics

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/peer/metrics"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// ruleFile is the part of a file of Prometheus' rules that a test reads.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

// TestAlarmRules: every metric that a rule names exists, with the label and the value that it asks for, or with the label
// alone where the value is another peer's; what rises all the time is asked for its increase, and what does not is not;
// and there is a rule for each alarm of the dashboard, with its bound.
func TestAlarmRules(t *testing.T) {
	text, err := os.ReadFile("alarms.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file ruleFile
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%+v, %v", file, err)
	}
	told := string(metrics.Text(busyPeer(), func() (time.Duration, bool) { return time.Second, true }))
	selector := regexp.MustCompile(`(\w+\()?(murmuration_\w+)(?:\{(\w+)="(\w+)"\})?(\[\w+\])?`)
	bounds := map[string]string{ // what the rules of package peer/stats have, and where a rule has it
		"MurmurationPeerLost": "[10m]) > 0", "MurmurationDistanceGrows": "> 2 * avg_over_time((murmuration_consensus_distance > 0)[10m:])", "MurmurationNoExchange": "[2m])) == 0",
		"MurmurationCheckpointOld": "> 60 ", "MurmurationLossRises": "> 2 *", "MurmurationOverBudget": "> 1.1 *",
	}
	for _, r := range file.Groups[0].Rules {
		if bound := bounds[r.Alert]; bound == "" || !strings.Contains(r.Expr, bound) || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["remedy"] == "" {
			t.Errorf("%+v, want %q in it", r, bound)
		}
		delete(bounds, r.Alert)
		found := selector.FindAllStringSubmatch(r.Expr, -1)
		if len(found) == 0 || strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") {
			t.Errorf("%s: %s", r.Alert, r.Expr)
		}
		for _, part := range found {
			function, name, label, value, window := part[1], part[2], part[3], part[4], part[5]
			series := name + ` `
			if label != "" {
				series = name + `{[^}]*\b` + label + `="` + value + `"[^}]*} `
			} else if !strings.Contains(told, "\n"+series) {
				series = name + `{`
			}
			if ok, _ := regexp.MatchString(`(?m)^`+series, told); !ok {
				t.Errorf("%s: no %s with %s=%q is told", r.Alert, name, label, value)
			}
			if rises := strings.HasSuffix(name, "_total"); rises != (function == "increase(") || (window != "") != strings.HasSuffix(function, "e(") {
				t.Errorf("%s: %q of %s over %q", r.Alert, function, name, window)
			}
		}
	}
	if len(bounds) > 0 {
		t.Errorf("no rules %q", slices.Collect(maps.Keys(bounds)))
	}
	var a stats.Alarms
	now := time.Unix(1e9, 0)
	for _, before := range []time.Duration{2 * time.Minute, time.Minute} {
		a.See(stats.Reading{At: now.Add(-before), Distance: 1, Accuracy: 1, Exchanges: true, Exchanged: now.Add(-time.Hour)})
	}
	raised := a.See(stats.Reading{At: now, Lost: 1, Distance: 9, Exchanges: true, Exchanged: now.Add(-time.Hour), Saved: 61 * time.Second, SaveEvery: 30 * time.Second, Moved: 1e6, Budget: 1})
	if len(raised) != len(file.Groups[0].Rules) {
		t.Errorf("the dashboard raises %d alarms, Prometheus %d: %+v", len(raised), len(file.Groups[0].Rules), raised)
	}
}
