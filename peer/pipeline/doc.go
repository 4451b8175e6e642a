// Package pipeline trains a model that is larger than one peer: the model is cut into stages (nn.Model.Stages), each member
// trains one of them, and the members of a stage are equals that average its parameters as any flock does. No member has a
// fixed partner in another stage: each micro-batch goes to the member of the next stage that is expected to be done first
// (SWARM: Ryabinin et al., 2023), and what a member that has died had is sent to another.
//
// A member is a node with a trainer of its stage (peer.Training.Stage) and a Pipeline beside it:
//
//	cut, err := pipeline.Cut(model, 2, nn.CrossEntropy(), 5)
//	t, err := node.Train(ctx, peer.Training{Params: cut.Init(stage, seed), Stage: cut.Stage(stage), ...})
//	p, err := pipeline.New(node, t, pipeline.Config{Plan: cut, Stage: stage, Feed: rows})
//	for err == nil {
//		err = p.Step(ctx)
//	}
//
// Any member may have rows, whatever its stage, and micro-batches of all sources mix at all stages. Gradients are of the
// parameters of the forward pass, and at most one step old (PipeDream-2BW: Narayanan et al., 2021). Which member computes
// what, and what becomes of losses, is decided by the machines of internal/stages (docs/design/058).
//
// Rows, or what stages make of them, and targets are seen by the members through which they go: the project's SECURITY says what they show.
// Limits: one stage a member; activations on their way are held in memory, by each member for as many micro-batches as it
// may hold.
package pipeline
