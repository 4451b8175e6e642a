package checkpoint

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	// CadenceFlag is the flag that a Cadence is read from, and CadenceAuto its default.
	CadenceFlag = "checkpoint-every"
	CadenceAuto = "auto"
	cadenceEnd  = "end"
	// autoCadence is the most time between two checkpoints of auto.
	autoCadence = time.Minute
)

// Cadence says how often checkpoints are saved: whenever any of these has passed since
// the last one. The zero value is never.
type Cadence struct {
	time   time.Duration
	epochs float64 // passes of all peers together over all data
	steps  uint64  // of this peer
}

// ParseCadence reads auto, end, a time such as 5m, epochs such as 2e, or steps.
func ParseCadence(text string) (Cadence, error) {
	switch text {
	case CadenceAuto:
		return Cadence{time: autoCadence, epochs: 1}, nil
	case cadenceEnd:
		return Cadence{}, nil
	}
	if epochs, ok := strings.CutSuffix(text, "e"); ok {
		if n, err := strconv.ParseFloat(epochs, 64); err == nil && n > 0 && !math.IsInf(n, 0) {
			return Cadence{epochs: n}, nil
		}
	}
	if steps, err := strconv.ParseUint(text, 10, 64); err == nil && steps > 0 {
		return Cadence{steps: steps}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return Cadence{time: d}, nil
	}
	return Cadence{}, cli.Faultf(CadenceFlag, "%q: want auto (each epoch or minute, whichever comes first), a time such as 5m, epochs such as 2e, a number of steps, or end", text)
}

// moment is where a run was at one time.
type moment struct {
	at         time.Time
	steps      uint64
	flockSteps uint64
}

// due tells whether it is time, from where the run was when it last was. An epoch has
// so many of the flock's steps.
func (c Cadence) due(last, now moment, epoch float64) bool {
	return c.time > 0 && now.at.Sub(last.at) >= c.time ||
		c.steps > 0 && now.steps-last.steps >= c.steps ||
		c.epochs > 0 && float64(now.flockSteps-min(last.flockSteps, now.flockSteps)) >= c.epochs*epoch
}
