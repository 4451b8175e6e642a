package dataset

import "errors"

// Data is what Load returns.
type Data struct {
	// Train is this peer's part if it is in memory, and nil if it is streamed from
	// files. Batches serves both.
	Train *Set
	// HeldOut is for evaluation, the same for all peers.
	HeldOut *Set
	// Total is the number of training pictures of all peers together: an epoch of
	// the flock. Those that turn out to be damaged once they are decoded count.
	Total int
	// Supply makes the batches of a peer whose training data is elsewhere, which has neither Train nor files.
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

// Shape is that of each picture.
func (d *Data) Shape() Shape { return d.HeldOut.Shape() }

// Classes is the number of classes.
func (d *Data) Classes() int { return d.HeldOut.Classes() }

// Batches supplies batches of this peer's part, varied as augment says, in an order
// that is a function of the seed. Its Close is to be called. The error is a
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

// Measured is the normalization if it was taken from the files of the folder, and
// nil if it was known: peers whose folders hold other files must be given it.
func (d *Data) Measured() []Normalization { return d.measured }

// Skipped is the number of damaged records that have been met so far, held-out ones
// included, and the first of them by name, but for as many as the caller has seen.
func (d *Data) Skipped(seen int) (total int, named []*RecordError) { return d.found.after(seen) }

// Resized is the number of pictures that have been cropped and resized so far to the
// Shape of all, held-out ones included.
func (d *Data) Resized() int {
	d.found.mu.Lock()
	defer d.found.mu.Unlock()
	return d.found.resized.total
}

// Batches is an endless supply of batches: a Sampler draws them from memory, a
// Stream reads them from files. Not safe for concurrent use, but for Close.
type Batches interface {
	// Next fills the batch. It may take the batch's slices and give it others in
	// their place: whoever wants to keep numbers copies them.
	Next(b *Batch) error
	// Close ends what stands behind the supply and waits for it; a Next that waits
	// returns ErrClosed. It may be called again.
	Close() error
}

// ErrClosed is what the Next of a Stream returns after Close.
var ErrClosed = errors.New("dataset: these batches are closed")
