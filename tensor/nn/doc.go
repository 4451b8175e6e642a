// Package nn makes models of layers, for services that train them on the CPU: a few lines
// say what the layers are, and the weights are those of the same torch.nn.Sequential, in
// name, shape and order, so that a safetensors file serves on either side.
//
//	model, err := nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).Build(784)
//	params := model.Init(seed)                            // *tensor.Params, for peer.Config
//	trainer := model.Trainer(32, nn.CrossEntropy())
//	loss := trainer.Gradient(params.Vector(), grad, x, y) // within peer.Step
//	model.Predict(snapshot, logits, x)                    // from any goroutine
//
// A batch is its examples, one after the other, in a flat vector of float32; so are its
// targets. Pictures have their channels last, which torch has first; Flatten orders them
// as torch does.
//
// Build fits the layers to the shape of an example, and names the layer that does not
// fit. A Model holds no parameters: they are the caller's, a peer's as a rule. What
// computes it takes its memory when it is made and allocates nothing after that. Results
// depend on the arguments alone, not on the number of goroutines; those of different CPUs
// differ by the rounding of sums.
//
// A layer of a service's own implements Layer, which Residual shows best. Operations on
// vectors and matrices are those of package tensor; training with others is what package
// peer does.
package nn
