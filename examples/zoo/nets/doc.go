// Package nets has the models of the examples, from a linear one to small networks of convolutions for photographs,
// made of the layers of tensor/nn. Models are functions of a flat vector of parameters, which package peer averages.
//
//	model, err := nets.ByName("cnn", data.Shape(), data.Classes())
//	if err != nil { ... }
//	model.Init(1, params)
//	batches.Next(&batch)
//	loss := model.Gradient(params, &batch, grad)
//
// The same seed gives the same initial parameters in every process, so the peers of a run start from one model
// without communication. A model computes on the caller's goroutine: one peer uses one core, and several peers use
// the cores of a machine. The same steps give the same bytes on one processor, and agree within rounding between
// processors.
//
// A model's memory is that of its layers' values for a few pictures, however large the batch.
//
// The package exists for examples and tests. A service brings its own model and does not need it: see examples/embed.
// Data come from package dataset.
package nets
