package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// everyDrift begins an --every that counts in how far the model has moved.
const everyDrift = "drift="

// pace is what --every, --budget and --consensus ask for.
func (s trainSettings) pace() (averaging.Pace, error) {
	pace := averaging.Pace{Consensus: s.Consensus, BySpeed: s.Balance && s.Strategy == strategyADPSGD}
	var faults []error
	switch drift, counts := strings.CutPrefix(s.Every, everyDrift); {
	case counts:
		c, err := strconv.ParseFloat(drift, 64)
		if err != nil || !(c > 0 && c <= maxDrift) {
			faults = append(faults, cli.Faultf("every", "%q: want drift=C with C above 0, in lengths of a step, such as drift=4", s.Every))
		}
		pace.Drift = c
	case s.Every != everyAuto:
		every, err := strconv.Atoi(s.Every)
		if err != nil || every < 1 {
			faults = append(faults, cli.Faultf("every", "%q: want auto, a number of steps, at least 1, or drift=C", s.Every))
		}
		pace.Every = every
	}
	if s.Budget != "" {
		perHour, err := parseBudget(s.Budget)
		if err != nil {
			faults = append(faults, err)
		}
		pace.BytesPerHour = perHour
	}
	return pace, errors.Join(faults...)
}

// maxDrift bounds drift=C: beyond, no run would ever exchange.
const maxDrift = 1e6

// parseBudget reads an amount of bytes an hour, such as 2GB/h or 500MB/h.
func parseBudget(text string) (bytesPerHour float64, err error) {
	amount, timed := strings.CutSuffix(text, "/h")
	for _, unit := range []struct {
		name  string
		bytes float64
	}{{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		number, found := strings.CutSuffix(amount, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if timed && err == nil && n > 0 && n < 1e9 {
			return n * unit.bytes, nil
		}
	}
	return 0, cli.Faultf("budget", "%q: want an amount an hour, such as 2GB/h or 500MB/h", text)
}
