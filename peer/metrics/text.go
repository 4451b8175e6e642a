package metrics

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// prefix begins the name of every metric.
const prefix = "murmuration_"

// emitter takes the values of a metric.
type emitter struct {
	family
	kind  string
	lines []string
}

// write writes what the metric is and its values, if there are any: in the order of their
// labels, or of the bounds of a histogram.
func (e *emitter) write(out *bytes.Buffer) {
	if e.kind == "" {
		return
	}
	if e.kind != "histogram" {
		slices.Sort(e.lines)
	}
	help := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(e.help)
	fmt.Fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, e.name, help, prefix, e.name, e.kind)
	for _, line := range e.lines {
		out.WriteString(line)
	}
}

func (e *emitter) gauge(value float64, labels ...string) {
	e.kind = "gauge"
	e.line("", value, e.labels, labels)
}

func (e *emitter) counter(value uint64, labels ...string) {
	e.kind = "counter"
	e.line("", float64(value), e.labels, labels)
}

// line takes one value: of the metric's name and a suffix, with labels, which are sorted.
func (e *emitter) line(suffix string, value float64, names, values []string) {
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = name + `="` + escaped.Replace(values[i]) + `"`
	}
	slices.Sort(labels)
	text := prefix + e.name + suffix
	if len(labels) > 0 {
		text += "{" + strings.Join(labels, ",") + "}"
	}
	e.lines = append(e.lines, text+" "+number(value)+"\n")
}

// escaped makes of a text a label's value.
var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// number is a value as Prometheus reads it, and Go writes it: +Inf, -Inf and NaN too.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// bucket is how many values are at most a bound.
type bucket struct {
	bound float64
	seen  uint64
}

// histogram writes buckets, with the sum and the number of all values.
func (e *emitter) histogram(buckets []bucket, sum float64, all uint64) {
	e.kind = "histogram"
	for _, b := range append(buckets, bucket{math.Inf(1), all}) {
		e.line("_bucket", float64(b.seen), []string{"le"}, []string{number(b.bound)})
	}
	e.line("_sum", sum, nil, nil)
	e.line("_count", float64(all), nil, nil)
}

// The bounds of times that are handed out: each is four times the one before, so that
// a histogram has few series whatever the link is like.
const (
	firstTime = 1 << 12 // nanoseconds
	timeSteps = 13      // up to 69 s
)

// times hands out a histogram of durations. Its bounds are powers of two in
// nanoseconds, which are bounds of the histogram's own buckets.
func (e *emitter) times(h stats.Histogram) {
	var buckets []bucket
	bound, seen := time.Duration(firstTime), uint64(0)
	for i, n := range h.Counts {
		seen += n
		if h.Bound(i) == bound && len(buckets) < timeSteps {
			buckets = append(buckets, bucket{bound.Seconds(), seen})
			bound *= 4
		}
	}
	e.histogram(buckets, h.Sum.Seconds(), h.Count())
}

// ages hands out a histogram of steps.
func (e *emitter) ages(a stats.Ages) {
	var buckets []bucket
	seen := uint64(0)
	for i, n := range a.Counts {
		seen += n
		if i < len(a.Counts)-1 && i%2 == 0 { // 0, 3, 15, 63, …
			buckets = append(buckets, bucket{float64(a.Bound(i)), seen})
		}
	}
	e.histogram(buckets, float64(a.Sum), seen)
}
