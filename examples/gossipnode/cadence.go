package main

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

const (
	cadenceAuto = "auto"
	cadenceEnd  = "end"
	cadenceFlag = "checkpoint-every"
	// autoCadence is the most time between two checkpoints of auto.
	autoCadence = time.Minute
)

// cadence says how often something is done: whenever any of these has passed since it
// last was. The zero value is never.
type cadence struct {
	time   time.Duration
	epochs float64 // passes of all peers together over all data
	steps  uint64  // of this peer
}

// parseCadence reads auto, end, a time such as 5m, epochs such as 2e, or steps.
func parseCadence(text string) (cadence, error) {
	switch text {
	case cadenceAuto:
		return cadence{time: autoCadence, epochs: 1}, nil
	case cadenceEnd:
		return cadence{}, nil
	}
	if epochs, ok := strings.CutSuffix(text, "e"); ok {
		if n, err := strconv.ParseFloat(epochs, 64); err == nil && n > 0 && !math.IsInf(n, 0) {
			return cadence{epochs: n}, nil
		}
	}
	if steps, err := strconv.ParseUint(text, 10, 64); err == nil && steps > 0 {
		return cadence{steps: steps}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return cadence{time: d}, nil
	}
	return cadence{}, cli.Faultf(cadenceFlag, "%q: want auto (each epoch or minute, whichever comes first), a time such as 5m, epochs such as 2e, a number of steps, or end", text)
}

// moment is where a run was at one time.
type moment struct {
	at         time.Time
	steps      uint64
	flockSteps uint64
}

// due tells whether it is time, from where the run was when it last was. An epoch has
// so many of the flock's steps.
func (c cadence) due(last, now moment, epoch float64) bool {
	return c.time > 0 && now.at.Sub(last.at) >= c.time ||
		c.steps > 0 && now.steps-last.steps >= c.steps ||
		c.epochs > 0 && float64(now.flockSteps-min(last.flockSteps, now.flockSteps)) >= c.epochs*epoch
}
