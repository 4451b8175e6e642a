package local

import (
	"cmp"
	"math"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// combine makes the result of a local run from the results of the peers that finished, at
// least one, and from the last reported counts of the others. Their work counts, since it is
// part of the models of the peers that finished.
func combine(shares []result.Share, counted []watch.Status, peers, lost int) result.Result {
	total := shares[0].Result
	total.Peers, total.PeersLost, total.Peer, total.Role = peers, lost, "", ""
	total.Steps, total.Exchanges, total.Refused, total.Failed, total.InDoubt, total.BytesSent, total.ResumedStep = 0, 0, 0, 0, 0, 0, 0
	total.SamplesPerSecond, total.Links = 0, nil
	var (
		loss, testLoss, bits       cli.Mean
		accuracy, partners, memory []float64
		areas, losses              []float64
		tokens                     uint64
		models                     []result.Sketch
	)
	for i, s := range shares {
		r := s.Result
		if i > 0 {
			total.Tasks = total.Tasks.And(r.Tasks)
		}
		counted = append(counted, watch.Status{Step: r.Steps, Resumed: r.ResumedStep, Counts: watch.Counts{
			Initiated: s.Initiated, Refused: r.Refused, Failed: r.Failed, InDoubt: r.InDoubt, BytesSent: r.BytesSent,
		}})
		total.Joined = total.Joined && r.Joined
		total.RanAway = total.RanAway || r.RanAway
		total.Ending.And(r.Ending)
		total.Cross = cmp.Or(total.Cross, r.Cross)
		total.SamplesPerSecond += r.SamplesPerSecond
		total.Seconds = max(total.Seconds, r.Seconds)
		total.JoinSeconds = max(total.JoinSeconds, r.JoinSeconds)
		total.ConnectionsMax = max(total.ConnectionsMax, r.ConnectionsMax)
		total.Every = max(total.Every, r.Every)
		total.FirstExchangeSeconds = max(total.FirstExchangeSeconds, r.FirstExchangeSeconds)
		total.LongestHold = max(total.LongestHold, r.LongestHold)
		total.Links = append(total.Links, r.Links...)
		loss.Add(r.Loss)
		testLoss.Add(r.TestLoss)
		models = append(models, s.Sketch)
		bits.Add(r.BitsPerParameter)
		accuracy, partners = append(accuracy, float64(r.TestAccuracy.Mean)), append(partners, r.Partners.Mean)
		if r.BitsPerByte != nil {
			losses, tokens = append(losses, float64(r.TestLoss)), tokens+r.Tokens
		}
		if r.AUC != nil {
			areas = append(areas, float64(r.AUC.Mean))
		}
		if r.PeakMemory.Mean > 0 {
			memory = append(memory, r.PeakMemory.Mean)
		}
	}
	total.FinalResult, total.Followed = finalOf(shares), result.FollowedOf(shares)
	total.Loss, total.TestLoss, total.BitsPerParameter = loss.Value(), testLoss.Value(), bits.Value()
	total.ConsensusDistance, total.ConsensusPeers = result.Distance(models), 0
	if !math.IsNaN(float64(total.ConsensusDistance)) {
		total.ConsensusPeers = len(models)
	}
	total.TestAccuracy = result.AccuracyOf(accuracy...)
	if losses != nil {
		total.TextFigures = result.TextOf(tokens, losses...)
	}
	if areas != nil {
		of := result.AccuracyOf(areas...)
		total.AUC = &of
	}
	total.Partners, total.PeakMemory = result.SpreadOf(partners...), result.SpreadOf(memory...)
	for _, s := range counted {
		total.Steps += s.Step
		total.ResumedStep += s.Resumed
		total.Exchanges += s.Initiated
		total.Refused += s.Refused
		total.Failed += s.Failed
		total.InDoubt += s.InDoubt
		total.BytesSent += s.BytesSent
	}
	return total
}

// finalOf combines the final models of several peers.
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

// travelled adds the counts of rows that holders handed out. For a holder that was lost, it uses the counts of the peers that
// took its rows.
func travelled(total *result.Result, shares, held []result.Share, holders int) {
	if total.Travelled = nil; holders == 0 {
		return
	}
	all, told := &result.Travelled{Holders: holders}, map[string]bool{}
	for _, s := range held {
		told[s.Result.Peer] = true
		all.Add(*s.Result.Travelled)
		total.BytesSent += s.Result.BytesSent
	}
	for _, s := range shares {
		for holder, c := range s.Taken {
			if !told[holder] {
				all.Add(c)
			}
		}
	}
	total.Travelled = all
}
