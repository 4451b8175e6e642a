package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/pipeline"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

const pagingFlag = "paging"

// What a peer holds of each parameter: itself, a snapshot, its gradient, and two vectors of the optimizer; and that of a stage
// the parameters of the step before, too.
const (
	vectors       = 5
	stagedVectors = 6
)

// megabyte is the unit of --paging, in bytes.
const megabyte = 1e6

// paging is the memory that a peer has for its part of the model, and what it costs to have less than that takes.
type paging struct {
	memory, rate float64 // bytes, and bytes a second
}

// parsePaging reads MB,MBPS.
func parsePaging(text string) (p paging, err error) {
	if text == "" {
		return p, nil
	}
	memory, rate, _ := strings.Cut(text, ",")
	mb, err := strconv.ParseFloat(memory, 64)
	mbps, err2 := strconv.ParseFloat(rate, 64)
	if err != nil || err2 != nil || !(mb > 0 && mb <= 1e9) || !(mbps > 0 && mbps <= 1e9) {
		return p, cli.Faultf(pagingFlag, "%q: want MB,MBPS, as in 40,100 for 40 MB and 100 MB a second", text)
	}
	return paging{mb * megabyte, mbps * megabyte}, nil
}

// takes is how much longer a step takes that needs so many bytes: what is beyond goes out and comes back once.
func (p paging) takes(bytes float64) time.Duration {
	if p.rate == 0 {
		return 0
	}
	return time.Duration(2 * max(bytes-p.memory, 0) / p.rate * float64(time.Second))
}

// needs is what a model, or a stage of one, takes in bytes: so many vectors of its parameters, and what is kept of so many
// examples on their way.
func needs(model *nn.Model, vectors, examples int) float64 {
	values := vectors * model.Layout().Len()
	for _, part := range model.Parts() {
		values += part.Values * examples
	}
	return tensor.ValueSize * float64(values)
}

// wholeTakes is how long a step of the whole model takes.
func wholeTakes(s *Settings, model *nn.Model) (time.Duration, error) {
	p, err := parsePaging(s.Paging)
	return s.StepTime + p.takes(needs(model, vectors, s.Batch)), err
}

// cut cuts the model into the stages of --stages, so that the slowest stage, or link, of this world takes the least time.
func cut(s *Settings, model *nn.Model, world peertest.World) (*peertest.Pipeline, error) {
	stages := s.ModelStages()
	examples, batches := s.MicroBatch()
	all := 0.0
	for _, part := range model.Parts() {
		all += part.Work
	}
	share := func(part nn.Part) float64 { return s.StepTime.Seconds() * part.Work / all }
	var costs []nn.Cost
	for _, part := range model.Parts() {
		costs = append(costs, nn.Cost{Seconds: share(part) / float64(batches), Across: 2 * tensor.ValueSize * float64(part.Out.Len()*examples)})
	}
	cuts, err := nn.Split(costs, stages, world.Links.Port, 0)
	if err != nil {
		return nil, cli.Usage(cli.Faultf("stages", "%d: %v", stages, err))
	}
	plan, err := pipeline.Cut(model, nn.CrossEntropy(), cuts...)
	if err != nil {
		return nil, cli.Usage(cli.Faultf("stages", "%v", err))
	}
	pages, err := parsePaging(s.Paging)
	if err != nil {
		return nil, err
	}
	p := &peertest.Pipeline{
		Plan: plan, Examples: examples, Batch: batches, Rounds: s.Strategy == settings.StrategyAllReduce, Codec: s.ActivationCodec(),
		Optimizer: func(stage int) optim.Optimizer { return s.NewOptimizer(plan.Stages[stage].Layout()) },
	}
	for i, stage := range plan.Stages {
		took, held := 0.0, 2*(stages-i)+1
		for _, part := range stage.Parts() {
			took += share(part)
		}
		p.StepTimes = append(p.StepTimes, time.Duration(took*float64(time.Second))+pages.takes(needs(stage, stagedVectors, held*examples)))
	}
	return p, nil
}

// StageResult is what became of a stage of the model.
type StageResult struct {
	Holders    int     `json:"holders"`
	Parameters int     `json:"parameters"`
	Busy       float64 `json:"busy"`
	Copies     int     `json:"copies"`
	MicroBatches
}

// MicroBatches are counts: those that came are done, dropped, or were under way at the end, or when their peer went.
type MicroBatches struct {
	Came     uint64 `json:"came"`
	Done     uint64 `json:"done"`
	Dropped  uint64 `json:"dropped"`
	UnderWay uint64 `json:"under_way"`
	Again    uint64 `json:"sent_again"`
	Late     uint64 `json:"late"`
}

func microBatches(m peertest.MicroBatches) MicroBatches {
	return MicroBatches{Came: m.Came, Done: m.Done, Dropped: m.Lost, UnderWay: m.Here, Again: m.Again, Late: m.Late}
}

// stagesOf are the figures of the stages, and of rows; none if the model is whole.
func stagesOf(o peertest.Outcome) (stages []StageResult, rows *MicroBatches) {
	for _, s := range o.Stages {
		stages = append(stages, StageResult{Holders: s.Holders, Parameters: s.Parameters, Busy: s.Busy, Copies: s.Copies, MicroBatches: microBatches(s.MicroBatches)})
	}
	if len(stages) > 0 {
		all := microBatches(o.Rows)
		rows = &all
	}
	return stages, rows
}

// stagesText describes the stages.
func stagesText(stages []StageResult, rows *MicroBatches) (text string) {
	for i, s := range stages {
		text += fmt.Sprintf("Stage %d of %d: %s, %d parameters, busy for %.0f %% of the time; %d micro-batches, %d sent on again, %d dropped.\n",
			i+1, len(stages), cli.Plural(uint64(s.Holders), "peer"), s.Parameters, 100*s.Busy, s.Done, s.Again, s.Dropped)
	}
	if m := rows; m != nil {
		text += fmt.Sprintf("Of %d micro-batches of rows, %d were learned, %d sent again, %d dropped.\n", m.Came, m.Done, m.Again, m.Dropped)
	}
	return text
}
