package settings

import (
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
)

// registerSizes adds the flags of a language model, and of an mlp.
func registerSizes(flags *pflag.FlagSet, s *nets.Sizes) {
	usual := nets.Sizes{}.WithDefaults()
	flags.IntVar(&s.Layers, "layers", usual.Layers, "blocks of a gpt; these four are the same for all peers")
	flags.IntVar(&s.Width, "width", usual.Width, "values that a gpt or gru has at each byte")
	flags.IntVar(&s.Heads, "heads", usual.Heads, "heads of a gpt's attention, of which the width is a multiple")
	flags.IntVar(&s.Hidden, "hidden", usual.Hidden, "units of the hidden layer of an mlp, the same for all peers")
	flags.IntVar(&s.Context, "context", usual.Context, "bytes that a gpt or gru looks back at")
}

// IsText tells whether the data set is a text.
func (s dataSettings) IsText() bool {
	return s.Dataset == dataset.Text || s.Dataset == dataset.GoSource
}

// textFaults are the errors in settings for a text, and in --model where it does not suit the data.
func textFaults(s dataSettings) []error {
	var faults cli.Faults
	faults.If(s.IsText() && !nets.ReadsText(s.Model), "model", "%s is for pictures: a text is learned by --model %s or %s", s.Model, nets.GPT, nets.GRU)
	faults.If(!s.IsText() && nets.ReadsText(s.Model), "model", "%s learns a text: give --dataset %s or --dataset %s --data FOLDER", s.Model, dataset.GoSource, dataset.Text)
	faults.Add(cli.Within("context", s.Sizes.Context, 1, dataset.MaxWindow))
	if err := s.Sizes.Validate(); err != nil {
		faults.If(true, "width", "(or another size of the model): %v", err)
	}
	faults.If(s.IsText() && s.Augment != augmentAuto && s.Augment != "none", "augment", "is for pictures: leave it out for %s", s.Dataset)
	faults.If(s.IsText() && s.Normalize != "", "normalize", "is for pictures: %s has none", s.Dataset)
	return faults
}
