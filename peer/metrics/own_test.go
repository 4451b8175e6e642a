package metrics

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestOwn shows the text of a service's own metrics: what has no value yet is left out, and the
// values of a label come in its order whatever the map's.
func TestOwn(t *testing.T) {
	var o Own
	o.Gauge("model_version", "Of the model that answers.", 3)
	o.Counter("answers_total", "Answers given.", map[string]uint64{"": 7})
	o.Counter("refused_total", "Requests refused.", map[string]uint64{"size": 2, "late": 1, "form": 3}, "reason")
	o.Counter("failed_total", "Never seen.", nil, "reason")
	const want = `# HELP murmuration_model_version Of the model that answers.
# TYPE murmuration_model_version gauge
murmuration_model_version 3
# HELP murmuration_answers_total Answers given.
# TYPE murmuration_answers_total counter
murmuration_answers_total 7
# HELP murmuration_refused_total Requests refused.
# TYPE murmuration_refused_total counter
murmuration_refused_total{reason="form"} 3
murmuration_refused_total{reason="late"} 1
murmuration_refused_total{reason="size"} 2
`
	if got := o.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOwnTimes: each bucket counts what the ones before it do, and the last is of all.
func TestOwnTimes(t *testing.T) {
	var h stats.Histogram
	for _, d := range []time.Duration{time.Millisecond, time.Second, 2 * time.Second} {
		h.Add(d)
	}
	var o Own
	o.Times("answer_seconds", "Of an answer.", h)
	families := samples(t, o.String())
	before := 0.0
	for _, bound := range families["murmuration_answer_seconds_bucket"] {
		if bound < before {
			t.Errorf("a bucket of %v comes after one of %v", bound, before)
		}
		before = bound
	}
	if sum, all := families["murmuration_answer_seconds_sum"], families["murmuration_answer_seconds_count"]; sum[0] != 3.001 || all[0] != 3 || before != 3 {
		t.Errorf("sum %v, count %v, last bucket %v", sum, all, before)
	}
}

// samples is the values of each metric in a text, in the text's order.
func samples(t *testing.T, text string) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, _, _ = strings.Cut(name, "{"); name == "#" {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[name] = append(all[name], v)
	}
	return all
}
