package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// result is what --json prints: of one peer, or of all peers of a local run. The
// contract for the names is in the design.
type result struct {
	Peers    int    `json:"peers"`
	Strategy string `json:"strategy"`
	Codec    string `json:"codec"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	// Steps is the number of gradient steps, those of earlier lives that a checkpoint
	// has kept included; of all peers together in local.
	Steps uint64 `json:"steps"`
	// Seconds is the time from the first step until the run's work was done.
	Seconds      float64  `json:"seconds"`
	TestAccuracy accuracy `json:"test_accuracy"`
	// TestLoss is that on the held-out data, Loss a running mean of the last steps
	// on the training data.
	TestLoss cli.Number `json:"test_loss"`
	Loss     cli.Number `json:"loss"`
	// ConsensusDistance is as measured by the last exchanges; a mean in local.
	ConsensusDistance cli.Number `json:"consensus_distance"`
	Exchanges         uint64     `json:"exchanges"`
	Refused           uint64     `json:"refused"`
	Failed            uint64     `json:"failed"`
	InDoubt           uint64     `json:"in_doubt"`
	PeersLost         int        `json:"peers_lost"`
	JoinSeconds       float64    `json:"join_seconds"`
	ConnectionsMax    int        `json:"connections_max"`
	BytesSent         uint64     `json:"bytes_sent"`
	BitsPerParameter  cli.Number `json:"bits_per_parameter"`
	// ResumedStep is how many of the steps are behind the checkpoint that was taken up,
	// 0 without one; of all peers together in local.
	ResumedStep uint64 `json:"resumed_step"`

	// SamplesPerSecond is the number of pictures learned from, by Seconds; Every
	// the last number of steps between two exchanges; FirstExchangeSeconds the
	// time from the peer's start to the end of its first exchange; LongestHold the
	// longest time in seconds for which the trainer was kept from its work, or the
	// process stood still.
	SamplesPerSecond     float64 `json:"samples_per_second"`
	Every                int     `json:"every"`
	FirstExchangeSeconds float64 `json:"first_exchange_seconds"`
	LongestHold          float64 `json:"longest_hold"`
	// Links are those on whose measures a codec was chosen, with --codec auto, as seen
	// by the peers that initiate.
	Links []linkResult `json:"links,omitempty"`
	// PeakMemory is the most memory that a process had resident, in bytes, left out
	// where the system does not tell; with --in-process it is that of all peers.
	// Partners is the number of peers that a peer completed exchanges with.
	PeakMemory *spread `json:"peak_memory,omitempty"`
	Partners   spread  `json:"partners"`
	finalResult
	// Peer and Role are there for one peer only.
	Peer string `json:"peer,omitempty"`
	Role string `json:"role,omitempty"`
	// idle are the peers of a local run that finished without a step of their own.
	idle []int
}

// accuracy is the share of held-out pictures classified rightly, over the peers.
type accuracy struct {
	Mean cli.Number `json:"mean"`
	Min  cli.Number `json:"min"`
	Max  cli.Number `json:"max"`
}

// share is what one peer contributes to the result of a local run.
type share struct {
	Result result `json:"result"`
	// Initiated counts the exchanges that this peer began, so that those of all
	// peers can be added without counting any twice.
	Initiated uint64 `json:"initiated"`
	// unsaved is why the last checkpoint could not be saved.
	unsaved error
}

// combine makes the result of a local run from those of the peers that finished,
// at least one, and what the others had done when they were last heard: it lives
// on in the models of those that finished.
func combine(shares []share, gone []status, peers, lost int) result {
	total := shares[0].Result
	total.Peers, total.PeersLost, total.Peer, total.Role = peers, lost, "", ""
	total.Steps, total.Exchanges, total.Refused, total.Failed, total.InDoubt, total.BytesSent, total.ResumedStep = 0, 0, 0, 0, 0, 0, 0
	total.SamplesPerSecond, total.Links = 0, nil
	for _, s := range shares {
		r := s.Result
		total.Steps += r.Steps
		total.Exchanges += s.Initiated
		total.Refused += r.Refused
		total.Failed += r.Failed
		total.InDoubt += r.InDoubt
		total.BytesSent += r.BytesSent
		total.SamplesPerSecond += r.SamplesPerSecond
		total.Seconds = max(total.Seconds, r.Seconds)
		total.JoinSeconds = max(total.JoinSeconds, r.JoinSeconds)
		total.ConnectionsMax = max(total.ConnectionsMax, r.ConnectionsMax)
		total.ResumedStep += r.ResumedStep
		total.Every = max(total.Every, r.Every)
		total.FirstExchangeSeconds = max(total.FirstExchangeSeconds, r.FirstExchangeSeconds)
		total.LongestHold = max(total.LongestHold, r.LongestHold)
		total.Links = append(total.Links, r.Links...)
	}
	total.finalResult = finalOf(shares)
	total.PeakMemory, total.Partners = memoryOf(shares), *spreadOf(shares, func(r result) *spread { return &r.Partners })
	for _, s := range gone {
		total.Steps += s.Step
		total.ResumedStep += s.Resumed
		total.Exchanges += s.Initiated
		total.Refused += s.Refused
		total.Failed += s.Failed
		total.InDoubt += s.InDoubt
		total.BytesSent += s.BytesSent
	}
	total.Loss = meanOf(shares, func(r result) cli.Number { return r.Loss })
	total.TestLoss = meanOf(shares, func(r result) cli.Number { return r.TestLoss })
	total.ConsensusDistance = meanOf(shares, func(r result) cli.Number { return r.ConsensusDistance })
	total.BitsPerParameter = meanOf(shares, func(r result) cli.Number { return r.BitsPerParameter })
	total.TestAccuracy = accuracy{
		Mean: meanOf(shares, func(r result) cli.Number { return r.TestAccuracy.Mean }),
		Min:  slices.MinFunc(shares, byAccuracy).Result.TestAccuracy.Min,
		Max:  slices.MaxFunc(shares, byAccuracy).Result.TestAccuracy.Max,
	}
	return total
}

func byAccuracy(a, b share) int {
	switch x, y := a.Result.TestAccuracy.Mean, b.Result.TestAccuracy.Mean; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// meanOf is the mean over the peers for which the number is known; NaN if it is
// for none.
func meanOf(shares []share, of func(result) cli.Number) cli.Number {
	sum, known := 0.0, 0
	for _, s := range shares {
		if v := float64(of(s.Result)); !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	return cli.Number(sum / float64(known))
}

// summary tells a result in words.
func (r result) summary() string {
	a := r.TestAccuracy
	text := fmt.Sprintf("%s with %s", percent(a.Mean), r.Model)
	if r.Peers > 1 && a.Min != a.Max {
		text += fmt.Sprintf(" (%s to %s)", percent(a.Min), percent(a.Max))
	}
	text = fmt.Sprintf("Held-out accuracy on %s: %s, after %s in %.1f s of training.\n", r.Dataset, text, cli.Plural(r.Steps, "step"), r.Seconds)
	text += fmt.Sprintf("%s, %s: %s (%d refused, %d failed), %s sent as %s", cli.Plural(uint64(r.Peers), "peer"), r.Strategy, cli.Plural(r.Exchanges, "exchange"), r.Refused, r.Failed, cli.Size(r.BytesSent), r.Codec)
	if d := float64(r.ConsensusDistance); r.Exchanges > 0 && !math.IsNaN(d) {
		text += fmt.Sprintf(", models %.3g apart", d)
	}
	text += ".\n" + r.footprint() + linkSummary(r.Links) + r.finalResult.summary()
	if r.PeersLost > 0 {
		text += fmt.Sprintf("%d lost on the way.\n", r.PeersLost)
	}
	for _, number := range r.idle {
		text += fmt.Sprintf("Peer %d took no step: the others had done the work before it began.\n", number)
	}
	return text
}

func percent(n cli.Number) string {
	if math.IsNaN(float64(n)) {
		return "unknown"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n))
}

// duration writes a time to go as people do.
func duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()+0.5))
	}
	return d.Round(time.Second).String()
}
