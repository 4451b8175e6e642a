// Package nn makes models of layers, for services that train them on the CPU. A few lines list the layers. The weights
// have the names, shapes and order of the same torch.nn.Sequential, so both can read one safetensors file. Named makes them those of other Modules.
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
// Build fits the layers to the shape of an example; its error names the layer that does not fit. A Model holds no
// parameters: the caller has them, usually from a peer. A Trainer allocates its memory when it is made, and nothing
// after that. Results depend on the arguments alone, not on the number of goroutines; different CPUs round sums
// differently.
//
// A service's own layer implements Layer: Residual is a good example. Operations on vectors and matrices are in
// package tensor; package peer trains with others.
package nn
