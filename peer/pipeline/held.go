package pipeline

import (
	"context"

	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// held is a micro-batch at this member. Its schedule says who uses it: the goroutine that computes, between a job and
// Computed, or who holds the pipeline's lock. What has been coded does not change any more.
type held struct {
	id          stages.ID
	in, targets tensor.Vector
	labels      coded           // the targets, as they travel
	codec       quant.Codec     // of what goes back
	life        context.Context // ends when nothing is held of it
	end         context.CancelFunc
	answer      chan outcome // to whom it came from

	flow    *nn.Flow         // its memory on the way; nil before it is computed
	params  tensor.Vector    // of its forward pass; nil before it
	onwards coded            // its outputs
	errors  tensor.Vector    // over its outputs
	from    transport.PeerID // who sent them; nobody if they are of this stage
	back    coded            // the errors over its inputs, or the outputs that were asked for
	loss    float64
}

// returned is what goes back with an answer.
func (h *held) returned(answer stages.Answer) coded {
	if answer == stages.Done {
		return h.back
	}
	return coded{codec: h.codec}
}
