package train

import "github.com/seed-97356399/murmuration/examples/gossipnode/result"

// textOf are the figures of a peer that has learned a text, by its loss on the held-out text.
// They are zero for other data.
func textOf(t *training, loss float64) result.TextFigures {
	if !t.IsText() {
		return result.TextFigures{}
	}
	return result.TextOf(t.peer.Counters().Samples*uint64(t.Sizes.Context), loss)
}
