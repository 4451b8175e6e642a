package settings

import (
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

const activationsFlag = "activations"

// EndsStayFlag is the name of --ends-stay.
const EndsStayFlag = "ends-stay"

// microBatches is about how many micro-batches make a step of a peer that trains a stage of a model.
const microBatches = 8

// activationCodecs are the codecs for what goes from stage to stage.
func activationCodecs() []string { return []string{"raw", "bf16", "fp16", "int8"} }

// MicroBatch is the number of examples of a micro-batch, and how many of them make a step. A window of a text is one by itself:
// layers see each of its bytes, and a member holds several micro-batches on their way.
func (s Settings) MicroBatch() (examples, batches int) {
	if examples = max(s.Batch/microBatches, 1); s.IsText() {
		examples = 1
	}
	return examples, max(s.Batch/examples, 1)
}

// pipelined are the faults of settings where the model is cut into stages.
func pipelined(s Settings) []error {
	var faults cli.Faults
	faults.Add(cli.OneOf(activationsFlag, s.Activations, activationCodecs()))
	if s.ModelStages() == 1 {
		faults.If(s.Activations != activationCodecs()[0], activationsFlag, "is for --stages K, with which the model is cut into stages")
		faults.If(s.EndsStay, EndsStayFlag, "is for --stages K, of 3 at least, with which the model is cut into stages")
		return faults
	}
	if s.EndsStay {
		faults.If(s.ModelStages() < 3, EndsStayFlag, "wants --stages 3 at least, since the first and the last are with the data: here are %d", s.ModelStages())
		faults.If(s.Steps == 0, EndsStayFlag, "wants --steps N, since peers without data do not know how many an epoch has")
		faults.If(!dataset.Known(s.Dataset), EndsStayFlag, "%s: peers without data know the shape of %s only", s.Dataset, cli.List(dataset.Knowns()))
		faults.If(s.Init != "" && s.TrainOnly, "init", "has the ends too, which stay with the data: leave it out, or --train-only")
	}
	for what, given := range map[string]bool{
		"--hold, --hold-and-train":                  s.Hold || s.HoldAndTrain,
		"--train-only (without --ends-stay)":        s.TrainOnly && !s.EndsStay,
		"--tasks":                                   s.TaskFile != "",
		"--until, --history (only --deadline goes)": len(s.Until) > 0 || s.History != "",
		"--serve":                   s.Serve != "",
		"--cross-evaluate":          s.CrossEvaluate,
		"--strategy " + s.Strategy:  s.Strategy != StrategyADPSGD && s.Strategy != StrategyAllReduce,
		"--global-batch, --balance": s.Divides(),
		"a table (a model of layers for rows is small)":   s.IsTable(),
		"--accumulate (micro-batches make the step)":      s.Accumulate > 1,
		"--policy, whose rules are for layers of a whole": s.Policy != "" && !s.follows(),
	} {
		faults.If(given, stagesFlag, "%d: leave out %s: a peer has one stage of the model", s.ModelStages(), what)
	}
	return faults
}
