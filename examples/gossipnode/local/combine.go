package local

import (
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// combine makes the result of a local run from those of the peers that finished,
// at least one, and what the others had done when they were last heard: it lives
// on in the models of those that finished.
func combine(shares []result.Share, gone []watch.Status, peers, lost int) result.Result {
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
	total.FinalResult = finalOf(shares)
	total.PeakMemory, total.Partners = memoryOf(shares), *spreadOf(shares, func(r result.Result) *result.Spread { return &r.Partners })
	for _, s := range gone {
		total.Steps += s.Step
		total.ResumedStep += s.Resumed
		total.Exchanges += s.Initiated
		total.Refused += s.Refused
		total.Failed += s.Failed
		total.InDoubt += s.InDoubt
		total.BytesSent += s.BytesSent
	}
	total.Loss = meanOf(shares, func(r result.Result) cli.Number { return r.Loss })
	total.TestLoss = meanOf(shares, func(r result.Result) cli.Number { return r.TestLoss })
	total.ConsensusDistance = meanOf(shares, func(r result.Result) cli.Number { return r.ConsensusDistance })
	total.BitsPerParameter = meanOf(shares, func(r result.Result) cli.Number { return r.BitsPerParameter })
	total.TestAccuracy = result.Accuracy{
		Mean: meanOf(shares, func(r result.Result) cli.Number { return r.TestAccuracy.Mean }),
		Min:  slices.MinFunc(shares, byAccuracy).Result.TestAccuracy.Min,
		Max:  slices.MaxFunc(shares, byAccuracy).Result.TestAccuracy.Max,
	}
	return total
}

func byAccuracy(a, b result.Share) int {
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
func meanOf(shares []result.Share, of func(result.Result) cli.Number) cli.Number {
	sum, known := 0.0, 0
	for _, s := range shares {
		if v := float64(of(s.Result)); !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	return cli.Number(sum / float64(known))
}

// spreadOf is the spread of the peers that know a figure; nil if none does.
func spreadOf(shares []result.Share, of func(result.Result) *result.Spread) *result.Spread {
	var all result.Spread
	known := 0
	for _, s := range shares {
		one := of(s.Result)
		if one == nil {
			continue
		}
		if known == 0 {
			all.Min, all.Max = one.Min, one.Max
		}
		all.Min, all.Max = min(all.Min, one.Min), max(all.Max, one.Max)
		all.Mean += one.Mean
		known++
	}
	if known == 0 {
		return nil
	}
	all.Mean /= float64(known)
	return &all
}

func memoryOf(shares []result.Share) *result.Spread {
	return spreadOf(shares, func(r result.Result) *result.Spread { return r.PeakMemory })
}

// finalOf puts together what peers have ended with.
func finalOf(shares []result.Share) result.FinalResult {
	first := shares[0].Result
	all := result.FinalResult{Final: first.Final, ModelHash: first.ModelHash}
	for _, s := range shares {
		all.Hashes = append(all.Hashes, s.Result.ModelHash)
		if s.Result.Final != all.Final {
			all.Final = settings.FinalUnmerged
		}
		if s.Result.ModelHash != all.ModelHash {
			all.ModelHash = ""
		}
	}
	return all
}
