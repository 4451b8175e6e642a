// Package dataset holds the data that the examples learn from: pictures of digits
// drawn on the spot (glyphs), MNIST and Fashion-MNIST from their files, CIFAR-10 and
// anybody's own pictures from whichever format a folder has.
//
// Load is the entrance:
//
//	data, err := dataset.Load(dataset.Config{Seed: 1, Part: 0, Parts: 4})
//	if err != nil { ... }
//	batches, err := data.Batches(64, seed, dataset.Augment{})
//	if err != nil { ... }
//	defer batches.Close()
//	err = batches.Next(&batch)
//
// Sets that are small are in memory (47 MB for MNIST), and a Sampler draws batches
// from them. Pictures in files are read by a Stream, on a goroutine of its own and
// with bounded memory, so that a set may be larger than the machine: binary batches
// of CIFAR-10, WebDataset shards (tar, gzipped or not, of KEY.jpg or .png and
// KEY.cls), and folders of class folders. What the folder holds says which:
//
//	data_batch_*.bin            test_batch*.bin
//	train*.tar, train*.tar.gz   test*.tar, test*.tar.gz
//	train/CLASS/*.jpg, *.png    test/CLASS/*.jpg, *.png
//
// A damaged record is skipped and named (Data.Skipped); a damaged file is an error.
// In a pass of all peers over their parts every record comes exactly once, and where
// the peers have the same files they agree on the parts without speaking to each
// other. They must agree on the normalization too: see Normalization.
//
// Everything is a function of its seeds: the same seed gives the same pictures,
// shards and order of batches in every process. No global random source is used.
//
// The package exists for examples and tests; models are in package nets. A picture is
// bytes, a pixel's channels side by side, and a label one byte; all pictures of a set
// are of one size, at most MaxPixels. Pictures in files whose sizes differ are cropped in
// their middle and resized to that which most of them have, or to MixedSide
// (Data.Resized counts them, Config.Width and Height say otherwise), to the same values on
// every processor. How a camera was held (EXIF) is not heeded.
package dataset
