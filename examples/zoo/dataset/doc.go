// Package dataset has the data that the examples learn from: generated pictures of digits (glyphs), MNIST and
// Fashion-MNIST from their files, CIFAR-10, CIFAR-100 and a user's own pictures in several formats.
//
// Load is the entry:
//
//	data, err := dataset.Load(dataset.Config{Seed: 1, Part: 0, Parts: 4})
//	if err != nil { ... }
//	batches, err := data.Batches(64, seed, dataset.Augment{})
//	if err != nil { ... }
//	defer batches.Close()
//	err = batches.Next(&batch)
//
// Small sets are in memory (47 MB for MNIST), and a Sampler draws batches from them. A Stream reads pictures in files
// on its own goroutine with bounded memory, so a set may be larger than memory. Formats are binary batches of
// CIFAR-10 and CIFAR-100, WebDataset shards (tar, gzipped or not, with KEY.jpg or .png and KEY.cls), and folders of class folders.
// The contents of the folder decide which:
//
//	data_batch_*.bin            test_batch*.bin
//	train.bin                   test.bin (CIFAR-100)
//	train*.tar, train*.tar.gz   test*.tar, test*.tar.gz
//	train/CLASS/*.jpg, *.png    test/CLASS/*.jpg, *.png
//
// A damaged record is skipped and named (Data.Skipped); a damaged file is an error. In a pass of all peers over their
// parts every record comes exactly once. Peers with the same files agree on the parts without communication. They
// must also agree on the normalization: see Normalization.
//
// Everything depends on seeds alone: the same seed gives the same pictures, shards and order of batches in every
// process. No global random source is used.
//
// The package exists for examples and tests; models are in package nets. A picture is bytes, with a pixel's channels
// side by side, and a label is one byte. All pictures of a set have one size, at most MaxPixels. Pictures in files of
// different sizes are cropped to their middle and resized: to the size of most of them, to MixedSide, or to
// Config.Width and Height. Data.Resized counts them, and the result is the same on every processor. The camera's
// orientation (EXIF) is ignored.
package dataset
