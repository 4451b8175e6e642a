package search

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/search"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	points  = 3    // of a trial's curve between two rungs
	glanced = 1000 // held-out pictures for a point that is no rung
	// metBy bounds the wait for the others of a sub-flock before the first step: who comes later copies their model.
	metBy = 10 * time.Second
	// parts bounds the parts of the data that are kept: a sub-flock has one for each member.
	parts = 16
)

// neural trains models by gradients, as run does.
type neural struct {
	data map[string]*dataset.Data // by part
}

func (*neural) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(settings.Settings).RegisterTraining(flags)
	return flags
}

func (*neural) withheld() []string { return []string{"steps", "epochs", "until", "deadline"} }
func (*neural) fixed() []string {
	return []string{"dataset", "data", "shard", "normalize", "size", "memory", "init", "seed"}
}
func (*neural) anew() bool     { return false }
func (*neural) scores() string { return "accuracy" }

func (*neural) resource(steps int) map[string][]string {
	return map[string][]string{"steps": {fmt.Sprint(steps)}}
}

// settingsOf are the settings of run with these flags.
func settingsOf(given map[string][]string) (s settings.Settings, err error) {
	cmd := &cobra.Command{Use: "run"}
	s.RegisterTraining(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	if err := cli.SetAll(cmd.Flags(), given); err != nil {
		return s, err
	}
	from, err := s.Load(cmd)
	if err != nil {
		return s, err
	}
	s.Part = "0/1" // all the data
	var own cli.Faults
	own.If(s.IsTable(), "dataset", "%s: tables are for the learners of fit", s.Dataset)
	own.If(s.Gives() || s.TrainOnly, "hold", "and --train-only are for run: no rows travel here")
	own.If(s.Divides(), settings.GlobalBatchFlag, "and --balance divide a step among the peers: leave them out")
	policy, _ := s.CodecPolicy()
	own.If(policy.Choosing(), "codec", "auto: trials would differ by the links that are measured: name a codec")
	return s, errors.Join(from.Usage(own...), s.Validate(from))
}

func (*neural) fault(given map[string][]string, c search.Config) error {
	s, err := settingsOf(given)
	if err != nil {
		return err
	}
	if pace, _ := s.Pace(); c.Steps > 0 && s.Local() && c.Rungs()[0] < pace.Every {
		return fmt.Errorf("every %d: want at most the %d steps of the first rung", pace.Every, c.Rungs()[0])
	}
	return nil
}

func (n *neural) open(ctx context.Context, given map[string][]string, parts int) error {
	s, err := settingsOf(given)
	if err == nil {
		s.Part = fmt.Sprintf("0/%d", parts)
		_, err = n.load(ctx, s)
	}
	return err
}

// load loads the part of the data of a place in a sub-flock.
func (n *neural) load(ctx context.Context, s settings.Settings) (*dataset.Data, error) {
	if data := n.data[s.Part]; data != nil {
		return data, nil
	}
	data, _, err := workload.Load(ctx, s, make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err == nil && len(n.data) < parts {
		if n.data == nil {
			n.data = map[string]*dataset.Data{}
		}
		n.data[s.Part] = data
	}
	return data, err
}

// prepare makes the model as it was at the rung, and batches that are no earlier rung's.
func (n *neural) prepare(ctx context.Context, j slice) (s settings.Settings, work *workload.Workload, err error) {
	if s, err = settingsOf(j.given); err != nil {
		return s, nil, err
	}
	if j.shared {
		s.Part = fmt.Sprintf("%d/%d", j.number, len(j.Members))
	}
	data, err := n.load(ctx, s)
	if err != nil {
		return s, nil, err
	}
	s.Batch = min(s.Batch, data.Len())
	if work, err = workload.Equip(s, data, s.Order(j.number)+orderOf(j)); err != nil {
		return s, nil, err
	}
	if j.model != nil {
		_, err = work.Params.LoadSafetensors(bytes.NewReader(j.model))
	}
	return s, work, err
}

// orderOf is what the seeds of two rungs differ by.
func orderOf(j slice) uint64 { return uint64(j.From) << 20 }

// courseOf is the part of the learning rate's course that is between two rungs.
func courseOf(s settings.Settings, j slice) optim.Schedule {
	return s.Course().Part(float64(j.From)/float64(j.config.Steps), float64(j.To)/float64(j.config.Steps))
}

func (n *neural) train(ctx context.Context, j slice) (o search.Outcome, model []byte, err error) {
	s, work, err := n.prepare(ctx, j)
	if err != nil {
		return o, nil, err
	}
	defer func() { err = errors.Join(err, work.Batches.Close()) }()
	policy, err := work.Codecs(s)
	if err != nil {
		return o, nil, err
	}
	pace, _ := s.Pace() // fault has checked it
	began := time.Now()
	p, err := peer.Start(ctx, peer.Config{Network: j.network, Training: peer.Training{
		Params: work.Params, Optimizer: s.NewOptimizer(work.Params.Layout()), Schedule: courseOf(s, j), Work: peer.Work{StepsPerPeer: uint64(j.To - j.From)},
		Exchange: peer.Exchange{Pace: pace, Codec: policy, Topology: s.Shape(), Machine: s.Machine(s.Batch, s.Outer())},
	}})
	if err != nil {
		return o, nil, err
	}
	defer func() { _ = p.Close() }() // again, which does nothing
	o, failed := n.steps(ctx, j, s, work, p)
	if o.Seconds = time.Since(began).Seconds(); ctx.Err() != nil {
		return o, nil, ctx.Err()
	}
	if failed == nil {
		_ = p.Close() // serves the others until they have done their steps, and the model comes closer to theirs
		_, failed = p.Snapshot(work.Params.Vector(), 0)
	}
	o.Score, _ = work.Model.Evaluate(work.Params.Vector(), work.Data.HeldOut)
	return finish(o, j, work.Params, failed)
}

// steps makes the steps of one member.
func (n *neural) steps(ctx context.Context, j slice, s settings.Settings, work *workload.Workload, p *peer.Peer) (o search.Outcome, err error) {
	if len(j.Members) > 1 {
		bounded, cancel := context.WithTimeout(ctx, metBy)
		_ = p.WaitMembers(bounded, len(j.Members)) // trains with those that have come
		cancel()
	}
	var batch dataset.Batch
	step := peer.Accumulate(s.Accumulate, func(x, grad tensor.Vector) (peer.Result, error) {
		if err := work.Batches.Next(&batch); err != nil {
			return peer.Result{}, err
		}
		return peer.Result{Loss: work.Model.Gradient(x, &batch, grad), Samples: batch.Len()}, nil
	})
	if s.Overlaps() {
		work.Model.OnReady(func(from int) { p.Ready(from, batch.Len()) })
	}
	if s.Factors {
		work.Model.OnFactors(p.Factors)
	}
	some, seen := work.Data.HeldOut.Spread(glanced), make(tensor.Vector, work.Params.Layout().Len())
	for {
		if err := p.Step(ctx, step); errors.Is(err, peer.ErrRunOver) {
			return o, nil
		} else if err != nil {
			return o, err
		}
		o.Spent++
		j.made(j.From + o.Spent)
		if due := (j.To - j.From) * (len(o.Curve) + 1) / points; o.Spent >= due && due < j.To-j.From {
			if _, err := p.Snapshot(seen, 0); err != nil {
				return o, err
			}
			score, _ := work.Model.Evaluate(seen, some)
			o.Curve = append(o.Curve, search.Point{Steps: j.From + o.Spent, Score: score})
		}
	}
}

// finish is the outcome with its model, or with why there is none.
func finish(o search.Outcome, j slice, params *tensor.Params, failed error) (search.Outcome, []byte, error) {
	if failed == nil && (math.IsNaN(o.Score) || !tensor.Finite(params.Vector())) {
		failed = errors.New("the model is not finite any more: the rate is too high")
	}
	if failed != nil {
		o.Score, o.Failed = 0, cli.Cut(failed.Error(), maxWhy)
		return o, nil, nil
	}
	o.Curve = append(o.Curve, search.Point{Steps: j.To, Score: o.Score})
	if j.To == j.config.Steps {
		return o, nil, nil // nobody trains it on
	}
	var text bytes.Buffer
	err := params.WriteSafetensors(&text, nil)
	if err == nil && text.Len() > search.MaxModel {
		err = fmt.Errorf("the model has %s, and one that members hand each other at most %s: give least the number of steps, or a smaller model", cli.Size(uint64(text.Len())), cli.Size(search.MaxModel))
	}
	o.Model = hashOf(text.Bytes())
	return o, text.Bytes(), err
}

// maxWhy bounds the letters of why a trial has failed.
const maxWhy = 300

func hashOf(model []byte) string {
	hash := sha256.Sum256(model)
	return hex.EncodeToString(hash[:16])
}

// runOf names the run of a sub-flock, unlike any other's.
func runOf(search string, j search.Job) string {
	hash := sha256.Sum256([]byte(search + "/" + j.String()))
	return fmt.Sprintf("%s/%s", cli.Cut(strings.ReplaceAll(search, "/", "-"), 30), hex.EncodeToString(hash[:8]))
}

// placeOf is the number of a member in a sub-flock.
func placeOf(j search.Job, member string) int { return slices.Index(j.Members, member) }
