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
	// copies of a model are its parameters, their gradient, a snapshot, the optimizer's vectors,
	// what a copy from the flock brings, and a checkpoint.
	copies = 8
	// passed is how many examples go through a model at once, and hidden how many values there
	// are at a pixel while they do, both at most about.
	passed = 8
	hidden = 512
	// unknownMemory is taken for a machine's where it is unknown.
	unknownMemory = 8 << 30
)

// needs is about how much memory a peer takes, in bytes, by its settings alone and, of a table, the
// numbers of a row; rather too much than too little. It computes in floating point, which does not overflow.
func needs(s settings.Settings, row int) (bytes, parameters float64) {
	c, _ := s.DataConfig(0) // faults have seen to it
	values := float64(max(3*c.Width*c.Height, 3*dataset.MixedSide*dataset.MixedSide, row))
	parameters, within := 256*values+1<<20, hidden*values
	if s.Model == nets.GPT {
		size := s.Sizes.WithDefaults()
		layers, width, heads, context := float64(size.Layers), float64(size.Width), float64(size.Heads), float64(size.Context)
		values = context
		parameters = width * (layers*(12*width+13) + 2*nets.Vocabulary + context)
		within = 2 * context * (layers*(16*width+heads*context) + nets.Vocabulary)
	}
	return tensor.ValueSize * (copies*parameters + passed*within + 2*values*float64(s.Batch)), parameters
}

// affordable refuses what this machine has no memory for, where it is a member's word and not the
// user's.
func affordable(s settings.Settings, row int, memory uint64) error {
	bytes, parameters := needs(s, row)
	if most := float64(cmp.Or(memory, unknownMemory)); s.TakenSize && bytes > most {
		return cli.Config(fmt.Errorf("the run that is joined asks for about %.1f GB (--model %s, %.3g parameters at most, --batch %d), and this machine has %.1f GB: ask who began it, or give --model, the sizes and --batch yourself if that is as it should be",
			bytes/1e9, s.Model, parameters, s.Batch, most/1e9))
	}
	return nil
}
