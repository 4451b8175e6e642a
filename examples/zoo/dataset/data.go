package dataset

import (
	"context"
	"errors"
	"fmt"
)

// Data is what Load returns.
type Data struct {
	// Train is this peer's part if it is in memory, and nil if it is streamed from
	// files. Batches works in both cases.
	Train *Set
	// HeldOut is for evaluation, the same for all peers.
	HeldOut *Set
	// Total is the number of training pictures of all peers together: an epoch of
	// the flock. It includes pictures that cannot be decoded.
	Total int
	// Supply makes the batches of a peer that has neither Train nor files, since other peers hold its training data.
	Supply func(batch int, seed uint64, augment Augment) (Batches, error)

	stream   streamConfig
	measured []Normalization
	found    findings
}

// Len is the number of training pictures of this peer.
func (d *Data) Len() int {
	if d.Train != nil {
		return d.Train.Len()
	}
	return len(d.stream.part)
}

// Shape is the shape of each picture.
func (d *Data) Shape() Shape { return d.HeldOut.Shape() }

// Classes is the number of classes.
func (d *Data) Classes() int { return d.HeldOut.Classes() }

// Batches supplies batches of this peer's part, varied as augment says. The seed
// decides their order. The caller calls Close of the result. The error is a
// *BatchError.
func (d *Data) Batches(batch int, seed uint64, augment Augment) (Batches, error) {
	if d.Supply != nil {
		return d.Supply(batch, seed, augment)
	}
	if d.Train != nil && d.Train.text != nil {
		return newWindows(d.Train.text, batch, seed)
	}
	if d.Train != nil {
		return newSampler(d.Train, batch, seed, augment)
	}
	if batch < 1 || batch > d.Len() {
		return nil, &BatchError{Batch: batch, Have: d.Len()}
	}
	c := d.stream
	c.batch, c.seed, c.augment = batch, seed, augment
	return newStream(c), nil
}

// Given are this peer's training examples, to be given to others. Pictures that are streamed from files are decoded into
// memory if Config.Memory has room for them. Otherwise those in folders of classes are decoded each time they are asked
// for; archives and batches, of which no part can be read alone, are a *DataError.
func (d *Data) Given(ctx context.Context) (Examples, error) {
	if d.Train != nil {
		return Stored{d.Train}, nil
	}
	c := &d.stream
	if size := int64(d.Len()) * int64(c.shape.Values()); size > c.memory {
		if folders, apart := c.index.source.(*classFolders); apart {
			return folderExamples{c, folders}, nil
		}
		return nil, c.index.blameAll(fmt.Errorf("%w: %d MiB of pictures in archives, of which others take some at any place, and memory for %d MiB: allow more, or unpack them into a folder for each class", ErrTooLarge, size>>20, c.memory>>20))
	}
	set, err := c.index.all(ctx, c.part, d.Classes(), d.HeldOut.norm, c.found)
	return Stored{set}, err
}

// Measured is the normalization if it was measured over the files of the folder, else
// nil. It must be given to peers whose folders have other files.
func (d *Data) Measured() []Normalization { return d.measured }

// Skipped is the number of damaged records found so far, held-out ones included. Named
// has the first of them, without the first seen, which the caller knows already.
func (d *Data) Skipped(seen int) (total int, named []*RecordError) { return d.found.after(seen) }

// Resized is the number of pictures that were cropped and resized to Shape so far,
// held-out ones included.
func (d *Data) Resized() int {
	d.found.mu.Lock()
	defer d.found.mu.Unlock()
	return d.found.resized.total
}

// Batches is an endless supply of batches: a Sampler draws them from memory, a
// Stream reads them from files. Only Close is safe for concurrent use.
type Batches interface {
	// Next fills the batch. It may exchange the batch's slices for others. A caller
	// that keeps numbers must copy them.
	Next(b *Batch) error
	// Close ends the goroutine behind the supply, if any, and waits for it. A Next
	// that waits returns ErrClosed. Close may be called again.
	Close() error
}

// ErrClosed is the error of a Stream's Next after Close.
var ErrClosed = errors.New("dataset: these batches are closed")
