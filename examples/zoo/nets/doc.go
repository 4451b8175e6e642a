// Package nets holds the models that the examples share: a linear one and a
// perceptron with one hidden layer, on gonum's blas32. Models are functions of a flat
// vector of parameters, as package peer averages them.
//
//	model, err := nets.ByName("mlp", data.Train.Shape(), data.Train.Classes())
//	if err != nil { ... }
//	model.Init(1, params)
//	sampler.Next(&batch)
//	loss := model.Gradient(params, &batch, grad)
//
// The same seed gives the same initial parameters in every process, so that the
// peers of a run start from one model without speaking to each other. A model
// computes on the caller's goroutine.
//
// The package exists for examples and tests. A service brings its own model and needs
// none of this; examples/embed shows it. Data comes from package dataset.
package nets
