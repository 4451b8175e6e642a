package simulate

import (
	"encoding/hex"
	"fmt"
	"math"
	"runtime"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// Result is the output of simulate --json: the fields of local, and more.
type Result struct {
	result.Result
	// Events is the number of events in the world. WallSeconds is the time of the simulation on this machine, the
	// only field that may differ between two runs of a seed.
	Events      int     `json:"events"`
	WallSeconds float64 `json:"wall_seconds"`
	// TargetSeconds is the virtual time at which --target was first reached; null if it was not.
	TargetSeconds *float64 `json:"target_seconds"`
	// WaitedSeconds is how long the trainers waited for the algorithm; its spread is over the peers.
	WaitedSeconds result.Spread `json:"waited_seconds"`
	Curve         []CurvePoint  `json:"curve,omitempty"`
	// BytesAcross are those sent to other sites.
	BytesAcross uint64 `json:"bytes_across,omitempty"`
	// Stages are those of --stages K, and MicroBatches those of all peers' rows.
	Stages       []StageResult `json:"stages,omitempty"`
	MicroBatches *MicroBatches `json:"micro_batches,omitempty"`
	// Digest is a hash of all models at the end. Arithmetic names the architecture and the instructions in use:
	// others may round differently, so that all results may differ.
	Digest     string `json:"digest"`
	Arithmetic string `json:"arithmetic"`
}

// CurvePoint is the state of a run at a moment.
type CurvePoint struct {
	Seconds      float64         `json:"seconds"`
	Progress     float64         `json:"progress"`
	BytesSent    int64           `json:"bytes_sent"`
	BytesAcross  int64           `json:"bytes_across,omitempty"`
	TestAccuracy result.Accuracy `json:"test_accuracy"`
	Loss         cli.Number      `json:"loss"`
	Consensus    cli.Number      `json:"consensus_distance"`
}

// newResult is the result of a simulation with these settings.
func newResult(s Settings, o peertest.Outcome) Result {
	r := Result{
		BytesAcross: uint64(o.Traffic.Across),
		Events:      o.Events, Digest: hex.EncodeToString(o.Digest[:]), Arithmetic: runtime.GOARCH + " " + tensor.Instructions(),
	}
	r.Result = result.Result{
		Joined: true,
		Peers:  s.Peers, Strategy: s.Strategy, Codec: s.CodecName(), Dataset: s.Dataset, Model: s.Model,
		Steps: o.Steps, Seconds: o.Seconds, TestAccuracy: accuracyAt(o.Final),
		TestLoss: cli.Number(o.Final.TestLoss), Loss: cli.Number(o.Final.Loss), ConsensusDistance: cli.Number(o.Final.Consensus),
		Exchanges: o.Traffic.Exchanges, Refused: o.Traffic.Refused, Failed: o.Traffic.Failed, InDoubt: o.Traffic.InDoubt,
		PeersLost: o.Traffic.Lost, BytesSent: uint64(o.Traffic.Bytes), BitsPerParameter: cli.Number(o.Traffic.BitsPerParameter), GlobalBatch: s.GlobalBatch,
	}
	r.StoppedBy = s.StoppedBy(o.StoppedBy)
	if best := cli.Number(o.Best); o.Best >= 0 {
		r.BestAccuracy = &best
	}
	if s.IsText() {
		r.TextFigures = result.TextOf(o.Samples*uint64(s.Sizes.Context), o.Final.TestLoss)
		r.BitsPerByte.Min, r.BitsPerByte.Max = cli.Number(o.Final.LeastLoss/math.Ln2), cli.Number(o.Final.MostLoss/math.Ln2)
	}
	if o.Seconds > 0 {
		r.SamplesPerSecond = float64(o.Samples) / o.Seconds
	}
	if o.TargetSeconds >= 0 && s.Target > 0 {
		r.TargetSeconds = &o.TargetSeconds
	}
	var partners, waited []float64
	for _, p := range o.Each {
		partners, waited = append(partners, float64(p.Partners)), append(waited, p.Waited.Seconds())
	}
	r.Partners, r.WaitedSeconds = result.SpreadOf(partners...), result.SpreadOf(waited...)
	r.ConnectionsMax = int(r.Partners.Max)
	r.Stages, r.MicroBatches = stagesOf(o)
	for _, p := range o.Curve {
		r.Curve = append(r.Curve, CurvePoint{
			Seconds: p.Seconds, Progress: p.Progress, BytesSent: p.Bytes, BytesAcross: p.Across, TestAccuracy: accuracyAt(p),
			Loss: cli.Number(p.Loss), Consensus: cli.Number(p.Consensus),
		})
	}
	return r
}

func accuracyAt(p peertest.Point) result.Accuracy {
	return result.Accuracy{Mean: cli.Number(p.Mean), Min: cli.Number(p.Min), Max: cli.Number(p.Max)}
}

// String describes a result.
func (r Result) String() string {
	text := r.Result.String()
	if r.TargetSeconds != nil {
		text += fmt.Sprintf("The target was reached after %.2f s.\n", *r.TargetSeconds)
	}
	if r.BytesAcross > 0 {
		text += fmt.Sprintf("%s went from one site to another.\n", cli.Size(r.BytesAcross))
	}
	if r.WaitedSeconds.Max > 0 {
		text += fmt.Sprintf("Trainers were kept waiting for %.2f s of it, at most %.2f s.\n", r.WaitedSeconds.Mean, r.WaitedSeconds.Max)
	}
	text += stagesText(r.Stages, r.MicroBatches)
	return text + fmt.Sprintf("%d events in %.1f s here, %.1f µs each.\n", r.Events, r.WallSeconds, 1e6*r.WallSeconds/float64(max(r.Events, 1)))
}
