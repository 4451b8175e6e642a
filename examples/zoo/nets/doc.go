// Package nets holds the models that the examples share, from a linear one to a
// small network of convolutions for photographs, made of the layers
// of tensor/nn. Models are functions of a flat vector of
// parameters, as package peer averages them.
//
//	model, err := nets.ByName("cnn", data.Shape(), data.Classes())
//	if err != nil { ... }
//	model.Init(1, params)
//	batches.Next(&batch)
//	loss := model.Gradient(params, &batch, grad)
//
// The same seed gives the same initial parameters in every process, so that the
// peers of a run start from one model without speaking to each other. A model
// computes on the caller's goroutine: one peer is one core, and the cores of a
// machine are filled by its peers. The same steps give the same bytes on one
// processor, and agree within rounding between processors.
//
// The memory of a model is bounded by a few pictures' worth of what its layers
// compute, however large the batch.
//
// The package exists for examples and tests. A service brings its own model and needs
// none of this; examples/embed shows it. Data comes from package dataset.
package nets
