package workload

import (
	"cmp"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// copies is how many copies of a model there are at most: its parameters, their gradient, a snapshot, the
	// optimizer's vectors, a copy from the flock, and a checkpoint.
	copies = 8
	// passed is about how many examples go through a model at a time, and hidden about how many values a pixel has
	// then, at most.
	passed = 8
	hidden = 512
	// deepParameters and deepHidden are those of the deep models.
	deepParameters = 30e6
	deepHidden     = 2048
	// unknownMemory stands for the memory of a machine if it is unknown.
	unknownMemory = 8 << 30
)

// needs estimates the memory of a peer in bytes, from its settings and, for a table, the numbers in a row. It is too
// large rather than too small. Floating point cannot overflow here.
func needs(s settings.Settings, row int) (bytes, parameters float64) {
	c, _ := s.DataConfig(0) // Faults has checked it
	values := float64(max(3*c.Width*c.Height, 3*dataset.MixedSide*dataset.MixedSide, row))
	parameters, within := 256*values+1<<20, passed*hidden*values
	switch {
	case nets.Deep(s.Model):
		parameters, within = deepParameters+256*values, float64(s.Batch)*deepHidden*values
	case nets.ReadsText(s.Model):
		size := s.Sizes.WithDefaults()
		layers, width, heads, context := float64(size.Layers), float64(size.Width), float64(size.Heads), float64(size.Context)
		values = context
		parameters = width * (layers*(12*width+13) + 2*nets.Vocabulary + context)
		within = passed * 2 * context * (layers*(16*width+heads*context) + nets.Vocabulary)
	}
	copies := float64(copies)
	if s.Accumulate > 1 {
		copies++ // the gradient of one batch
	}
	return tensor.ValueSize * (copies*parameters + within + 2*values*float64(s.Batch)), parameters
}

// checkMemory returns an error if settings from another member, not from the user, need more memory than this machine
// has.
func checkMemory(s settings.Settings, row int, memory uint64) error {
	bytes, parameters := needs(s, row)
	if most := float64(cmp.Or(memory, unknownMemory)); s.TakenSize && bytes > most {
		return cli.Config(fmt.Errorf("the run that is joined asks for about %.1f GB (--model %s, %.3g parameters at most, --batch %d), and this machine has %.1f GB: ask who began it, or give --model, the sizes and --batch yourself if that is as it should be",
			bytes/1e9, s.Model, parameters, s.Batch, most/1e9))
	}
	return nil
}
