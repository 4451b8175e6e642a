package metrics

import (
	"bytes"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// Own is the text of metrics that are no peer's, in the format of Text. Each name gets the prefix of all metrics here.
// The zero value is empty.
type Own struct{ bytes.Buffer }

// Gauge adds a number that goes up and down.
func (o *Own) Gauge(name, help string, value float64) {
	e := &emitter{family: family{name: name, help: help}}
	e.gauge(value)
	e.write(&o.Buffer)
}

// Counter adds numbers that only grow: one for each value of the label, or that of "" without a label.
func (o *Own) Counter(name, help string, values map[string]uint64, label ...string) {
	e := &emitter{family: family{name: name, help: help, labels: label}}
	for value, n := range values {
		e.counter(n, value)
	}
	e.write(&o.Buffer)
}

// Times adds a histogram of durations, in seconds.
func (o *Own) Times(name, help string, h stats.Histogram) {
	e := &emitter{family: family{name: name, help: help}}
	e.times(h)
	e.write(&o.Buffer)
}
