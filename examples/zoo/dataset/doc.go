// Package dataset holds the data that the examples learn from: pictures of digits
// drawn on the spot (glyphs), MNIST and Fashion-MNIST from a folder.
//
// Load is the entrance:
//
//	data, err := dataset.Load(dataset.Config{Seed: 1, Part: 0, Parts: 4})
//	if err != nil { ... }
//	sampler, err := dataset.NewSampler(data.Train, 64, seed)
//	if err != nil { ... }
//	sampler.Next(&batch)
//
// Everything is a function of its seeds: the same seed gives the same pictures,
// shards and order of batches in every process, which is what lets the peers of a run
// take disjoint shards without speaking to each other. No global random source is
// used.
//
// The package exists for examples and tests; models are in package nets. A picture is
// bytes, a label one byte, and a data set lives in memory (47 MB for MNIST).
package dataset
