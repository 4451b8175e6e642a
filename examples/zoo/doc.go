// Package zoo holds the data sets and models that the examples share: pictures
// of digits drawn on the spot (glyphs), MNIST and Fashion-MNIST from a folder,
// and two models, a linear one and a perceptron with one hidden layer, on
// gonum's blas32.
//
// Load is the entrance for data and ModelByName that for models:
//
//	data, err := zoo.Load(zoo.Config{Seed: 1, Part: 0, Parts: 4})
//	if err != nil { ... }
//	sampler, err := zoo.NewSampler(data.Train, 64, seed)
//	if err != nil { ... }
//	model, err := zoo.ModelByName("mlp", data.Train.Inputs(), data.Train.Classes())
//	if err != nil { ... }
//	model.Init(1, params)
//	sampler.Next(&batch)
//	loss := model.Gradient(params, &batch, grad)
//
// Everything is a function of its seeds: the same seed gives the same pictures,
// shards, order of batches and initial parameters in every process, which is
// what lets the peers of a run take disjoint shards and start from one model
// without speaking to each other. No global random source is used.
//
// The package exists for examples and tests. It is small rather than general: a
// picture is one grey plane of bytes, a label one byte, a data set lives in
// memory (47 MB for MNIST), and a model computes on the caller's goroutine. A
// service brings its own model and needs none of this; examples/embed shows it.
package zoo
